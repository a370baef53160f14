"""Q1 and Q2: how long do tc and sg take as Datalog, kept updatable, and how long one edge that goes and comes back?

tc on G(2,000, p = 0.005); sg on the complete binary tree of depth 11 and on the grid of 151 x 151 nodes. The clock of
the first answer includes arranging the edges. DuckDB's recursive SQL on the same edges in the same run says how many
rows each answer must have, and is the bar: at most twice its CPU time. After all edges came back it is the same again.
Then the same insert-only (`q01_insert_only`).
"""

from __future__ import annotations

import numpy as np

import kpg
from benchmarks import peers_duckdb, q01_insert_only
from benchmarks.lines import Reference, Run, at_most
from benchmarks.measure import cpu_clock, resident_bytes, wall_clock
from benchmarks.recursions import DECLARED, Question, questions
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile


def run(run: Run) -> None:
    """The three questions of the table, and the tc of the grid where nothing is removed."""
    q01_insert_only.measure_grid(run)  # first: its memory is the peak of the process
    for question in questions(run):
        _, seconds, table = peers_duckdb.measured(question.sql, edges=question.edges)
        duckdb = Reference(f"{peers_duckdb.NAME}, recursive SQL", seconds)
        expected = int(table["n"].to_numpy()[0])
        q01_insert_only.measure(run, question, duckdb, expected)
        measure(run, question, duckdb, expected)


def measure(run: Run, question: Question, duckdb: Reference, expected: int) -> None:
    """The first answer, then edges that go and come back."""
    program = compile(parse(DECLARED + question.rules))
    cpu, live = cpu_clock(f"{question.name}, first answer"), wall_clock(f"{question.name}, 1 edge")
    before = resident_bytes()
    for last in (False, True):
        with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False) as running:
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
    run.report(
        f"{question.name}, first answer", "at most 2 times DuckDB's recursive SQL", [at_most("ratio", 2)], duckdb,
        rows=expected, seconds=cpu.least, rows_per_second=expected / cpu.least, bytes=held,
    )  # fmt: skip
    bar, bars = "p50 at most 50 ms", [at_most("p50_ms", 50)]
    run.report(f"{question.name}, 1 edge", bar, bars, duckdb, latency=live, rows=1)
