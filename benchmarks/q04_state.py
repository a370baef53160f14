"""Q4: how many tuples do star joins of 2 to 7 relations keep beyond the indexes of the relations themselves?

    p(k, x0, …) :- r0(k, x0), r1(k, x1), …        100k rows each, one for each k

Binary joins index each result in between; delta queries keep nothing, whatever the number of relations. Both are asked
for the same answer, which is not kept; then one row changes.
"""

from __future__ import annotations

import numpy as np

import kpg
from benchmarks.lines import Run, at_most
from benchmarks.measure import cpu_clock, wall_clock
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.operators.arrange import Publisher
from kpg.query.datalog import parse
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Program
from kpg.query.lower.lower_program import LoweredProgram


def run(run: Run) -> None:
    """Two to seven relations, by binary joins and by delta queries."""
    rows = run.size(100_000)
    for ways in range(2, 8):
        program = star_join(ways)
        for joins in ("binary", "delta"):
            measure(run, program, ways, rows, joins)


def measure(run: Run, program: Program, ways: int, rows: int, joins: str) -> None:
    """What is kept after the first answer, and how long that and a change take."""
    random = np.random.default_rng(1)
    tables = [np.stack([np.arange(rows), random.integers(0, 1000, rows)], axis=1) for _ in range(ways)]
    first, live = cpu_clock(f"{ways}-way, {joins}"), wall_clock(f"{ways}-way, 1 row, {joins}")
    with kpg.open() as db:
        lowered = LoweredProgram(db, program, distinct_inputs=False, joins=joins)
        inputs = lowered.inputs_of_db()
        output = lowered.collections["p"].output("p", keep=False)
        with first:
            for number, table in enumerate(tables):
                inputs[f"r{number}"].insert(table)
            db.advance()
        assert len(output.take_changes()) == rows
        kept = kept_by(db, "p")
        for place in range(run.times(50)):
            row = tables[place % ways][place : place + 1]
            for change in (inputs[f"r{place % ways}"].remove, inputs[f"r{place % ways}"].insert):
                change(row)
                with live:
                    db.advance()
                assert len(output.take_changes()) == 1
        kept = max(kept, kept_by(db, "p"))
    bars = [at_most("kept_tuples", 0)] if joins == "delta" else []
    run.report(
        f"{ways}-way star, {joins}", "no tuple beyond the indexes of relations" if bars else None, bars,
        latency=live, rows=ways * rows, seconds=first.least, kept_tuples=kept,
    )  # fmt: skip


def kept_by(db: kpg.Database, name: str) -> int:
    """The tuples that the operators of a dataflow keep; indexes of relations are kept by those."""
    assert isinstance(db, EmbeddedDatabase)
    (dataflow,) = [each for each in db.worker.dataflows.values() if each.name == name]
    found = sum(len(rows) for each in dataflow.operators if isinstance(each, Publisher) for rows in each.state())
    return found + sum(len(rows) for each in dataflow.operators for rows in each.state() if not each.has_readers)


def star_join(ways: int) -> Program:
    """The program that joins so many relations on one column."""
    values = [f"x{number}" for number in range(ways)]
    lines = [f".decl r{number}(k: number, x: number)\n.input r{number}" for number in range(ways)]
    lines.append(f".decl p(k: number, {', '.join(f'{value}: number' for value in values)})\n.output p")
    atoms = [f"r{number}(k, {value})" for number, value in enumerate(values)]
    lines.append(f"p(k, {', '.join(values)}) :- {', '.join(atoms)}.")
    return compile(parse("\n".join(lines)))
