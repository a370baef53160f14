"""Q1 and Q2: how long do tc and sg take as Datalog, kept updatable, and how long one edge that goes and comes back?

tc on G(2,000, p = 0.005); sg on the complete binary tree of depth 11 and on the grid of 151 x 151 nodes. The clock of
the first answer includes arranging the edges. DuckDB's recursive SQL on the same edges in the same run says how many
rows each answer must have, and is the bar: at most twice its CPU time. After all edges came back it is the same again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import kpg
from benchmarks import data, peers_duckdb
from benchmarks.lines import Reference, Run, at_most
from benchmarks.measure import cpu_clock, resident_bytes, wall_clock
from kpg.query.datalog import parse
from kpg.query.ir.compile import compile
from kpg.query.running import Running

DECLARED = """
.decl e(x: number, y: number)
.input e
.decl answer(x: number, y: number)
.output answer
"""
TC = "answer(x, y) :- e(x, y). answer(x, z) :- answer(x, y), e(y, z)."
SG = "answer(x, y) :- e(p, x), e(p, y), x != y. answer(x, y) :- e(a, x), answer(a, b), e(b, y)."
SQL_TC = """
    WITH RECURSIVE t(x, y) AS (SELECT src, dst FROM edges UNION SELECT t.x, dst FROM t JOIN edges ON t.y = src)
    SELECT count(*) AS n FROM t"""
SQL_SG = """
    WITH RECURSIVE s(x, y) AS (
        SELECT a.dst, b.dst FROM edges a JOIN edges b ON a.src = b.src WHERE a.dst != b.dst
        UNION SELECT a.dst, b.dst FROM s JOIN edges a ON a.src = s.x JOIN edges b ON b.src = s.y
    ) SELECT count(*) AS n FROM s"""


@dataclass(frozen=True)
class Question:
    """A program on some edges, to kpg and to DuckDB."""

    name: str
    rules: str
    sql: str
    edges: data.Ints


def run(run: Run) -> None:
    """The three questions of the table."""
    nodes, depth, side = run.size(2_000), max(2, int(11 + np.log2(run.scale))), max(3, int(151 * run.scale**0.5))
    measure(run, Question("tc G(2,000)", TC, SQL_TC, random_graph(nodes, 10 / nodes)))
    measure(run, Question("sg tree", SG, SQL_SG, tree(depth)))
    measure(run, Question("sg grid", SG, SQL_SG, grid(side)))


def measure(run: Run, question: Question) -> None:
    """The first answer, then edges that go and come back."""
    _, seconds, table = peers_duckdb.measured(question.sql, edges=question.edges)
    expected = int(table["n"].to_numpy()[0])
    program = compile(parse(DECLARED + question.rules))
    cpu, live = cpu_clock(f"{question.name}, first answer"), wall_clock(f"{question.name}, 1 edge")
    before = resident_bytes()
    for last in (False, True):
        with kpg.open() as db, Running(db, program, distinct_inputs=False) as running:
            with cpu:
                running.inputs["e"].insert(question.edges)
                db.advance()
            assert running.answer("answer").scan().num_rows == expected
            held = resident_bytes() - before
            if last:
                for place in np.random.default_rng(3).permutation(len(question.edges))[: run.times(20)]:
                    edge = question.edges[place : place + 1]
                    for change in (running.inputs["e"].remove, running.inputs["e"].insert):
                        change(edge)
                        with live:
                            db.advance()
                assert running.answer("answer").scan().num_rows == expected
    duckdb = Reference(f"{peers_duckdb.NAME}, recursive SQL", seconds)
    run.report(
        f"{question.name}, first answer", "at most 2 times DuckDB's recursive SQL", [at_most("ratio", 2)], duckdb,
        rows=expected, seconds=cpu.least, rows_per_second=expected / cpu.least, bytes=held,
    )  # fmt: skip
    bar, bars = "p50 at most 50 ms", [at_most("p50_ms", 50)]
    run.report(f"{question.name}, 1 edge", bar, bars, duckdb, latency=live, rows=1)


def random_graph(nodes: int, probability: float) -> data.Ints:
    """Each of all pairs with some probability."""
    chosen = np.random.default_rng(1).random((nodes, nodes)) < probability
    return np.argwhere(chosen).astype(np.int64)


def tree(depth: int) -> data.Ints:
    """The complete binary tree, from parents to children."""
    children = np.arange(1, 2 ** (depth + 1) - 1)
    return np.stack([(children - 1) // 2, children], axis=1).astype(np.int64)


def grid(side: int) -> data.Ints:
    """A square of nodes with edges right and down."""
    nodes = np.arange(side * side).reshape(side, side)
    right = np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()], axis=1)
    down = np.stack([nodes[:-1].ravel(), nodes[1:].ravel()], axis=1)
    return np.concatenate([right, down]).astype(np.int64)
