"""Q1, insert-only: tc and sg where no edge is ever removed, next to DuckDB, clingo and Cozo.

The bars: at most DuckDB's CPU time, a tenth of clingo's and Cozo's, and for tc on the grid of 151 x 151 nodes, whose
closure has 131,675,775 facts, 60 seconds and 6 GB. The clock includes arranging the edges and the answer.
"""

from __future__ import annotations

import resource

import numpy as np

import kpg
from benchmarks import peers_logic
from benchmarks.lines import Reference, Run, at_most
from benchmarks.measure import Clock, cpu_clock
from benchmarks.recursions import DECLARED, TC, Question, grid, grid_side
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile


def measure(run: Run, question: Question, duckdb: Reference, expected: int) -> None:
    """The first answer of one question, and what others take."""
    cpu = cpu_clock(f"{question.name}, insert-only")
    for _ in range(2):
        answer(question, cpu, expected)
    name = f"{question.name}, insert-only"
    run.report(
        name, "at most DuckDB's recursive SQL", [at_most("ratio", 1)], duckdb,
        rows=expected, seconds=cpu.least, rows_per_second=expected / cpu.least,
    )  # fmt: skip
    for peer in peers_logic.references(run, question, expected):
        case = f"{name}, next to {peer.name.split()[0]}"
        bars = [at_most("ratio", 0.1)] if peer.seconds else []
        run.report(case, "a tenth of what it takes", bars, peer, rows=expected, seconds=cpu.least)


def measure_grid(run: Run) -> None:
    """The closure of the grid: its size is known, since what is right of and below a node is reached."""
    side = grid_side(run)
    expected = (side * (side + 1) // 2) ** 2 - side**2
    cpu = cpu_clock("tc grid, insert-only")
    answer(Question("tc grid", TC, "", grid(side)), cpu, expected)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    run.report(
        "tc grid, insert-only", "60 s and 6 GB", [at_most("seconds", 60), at_most("bytes", 6e9)],
        rows=expected, seconds=cpu.least, rows_per_second=expected / cpu.least, bytes=peak,
    )  # fmt: skip


def answer(question: Question, cpu: Clock, expected: int) -> None:
    """Compute an answer, and check how many rows it has."""
    program = compile(parse(DECLARED + question.rules))
    with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False, insert_only=True) as running:
        with cpu:
            running.inputs["e"].insert(np.ascontiguousarray(question.edges))
            db.advance()
        assert running.answer("answer").rows == expected
