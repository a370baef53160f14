"""Recursions as one operator in worker processes: the answers of one worker, also after a worker was lost."""

import os
import signal

import pytest

import kpg
from kpg import graphs
from kpg.columns.rows import rows_of
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile

PROGRAM = """
.decl e(x: symbol, y: symbol) input
.decl tc(x: symbol, y: symbol)
.decl sg(x: symbol, y: symbol)
.decl named(x: symbol, y: symbol)
.output tc
.output named
.output sg
tc(x, y) :- e(x, y). tc(x, z) :- tc(x, y), e(y, z).
sg(x, y) :- e(a, x), e(a, y), x != y. sg(x, y) :- e(a, x), sg(a, b), e(b, y).
named(x, y) :- e(x, y), x != "3". named("new", z) :- named(x, y), e(y, z), !e(x, "1"). named(x, "7") :- named(x, "2").
"""
FIRST = [(n, (3 * n + 1) % 17) for n in range(17)] + [(n, n // 2) for n in range(1, 30)]
CHANGES = [([], FIRST[3:9]), (FIRST[3:6], FIRST[20:30]), ([(40, 1), (2, 40)], [])]


def answers(workers, path):
    """Yield all answers after each change; between two of them, lose a worker."""
    with kpg.open(path, workers=workers) as db, InstalledProgram(db, compile(parse(PROGRAM))) as program:
        edges, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        outputs = [
            graphs.reach(edges, roots).output("reach"),
            graphs.bfs(edges, roots).output("bfs"),
            graphs.wcc(edges).output("wcc"),
            graphs.scc(edges).nodes.output("scc"),
        ]
        e, recursions = program.inputs["e"], {of: program.answer(of) for of in ("tc", "sg")}
        readers = {of: answer.semijoin(e, on=("x", "y")).output(f"edges in {of}") for of, answer in recursions.items()}
        followers = {of: answer.output(f"changes of {of}", keep=False) for of, answer in recursions.items()}
        roots.insert([(5,), (40,)])
        for number, (more, fewer) in enumerate([(FIRST, []), *CHANGES]):
            for source, row_of in ((edges, tuple), (program.inputs["e"], lambda row: tuple(map(str, row)))):
                source.insert(list(map(row_of, more)))
                source.remove(list(map(row_of, fewer)))
            db.advance()
            yield [sorted(output.rows()) for output in outputs] + [
                sorted(program.rows(of)) for of in ("tc", "sg", "named")
            ]
            keys = [(str(x), str(y)) for x in range(3) for y in range(5)]
            for of, answer in recursions.items():
                yield [
                    sorted(readers[of].rows()),
                    sorted(rows_of(answer.lookup_many(keys))),
                    sorted(rows_of(answer.scan(as_of=db.epoch - 1))),
                    sorted(followers[of].changes()),
                ]
            if workers > 1 and number == 1:
                os.kill(db.coordinator.members[1].pid, signal.SIGKILL)


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_have_the_answers_of_one(workers, tmp_path):
    assert list(answers(workers, tmp_path / "several")) == list(answers(1, tmp_path / "one"))
