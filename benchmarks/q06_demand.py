"""Q6: how long does one argument take that is added to tc(x, ?), tc(?, x) or sg(x, ?), next to the full answer?

On the three graphs of Q1. Arguments are chosen at random; each is inserted, answered, checked and removed again, the
edges staying loaded and the dataflow installed. The reference is the full answer of the same rules in the same run,
edges arranged and all, insert-only, which is the quickest way to have it. A question that takes long is asked with
fewer arguments: on G(2,000) every node is of the generation of every other, so one argument of sg demands everything.
The bar: on tc of G(2,000), at least 50 times quicker than the full answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import kpg
from benchmarks.lines import Reference, Run, at_most
from benchmarks.measure import cpu_clock, wall_clock
from benchmarks.recursions import DECLARED, SG, TC, grid, grid_side, random_graph, tree, tree_depth
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Program

ARGUMENTS = 100
PATIENCE_SECONDS = 20.0
Expected = Callable[[int], int]  # how many rows an argument has


def run(run: Run) -> None:
    """Three questions on three graphs."""
    nodes = run.size(2_000)
    graphs = {"G(2,000)": random_graph(nodes, 10 / nodes), "tree": tree(tree_depth(run)), "grid": grid(grid_side(run))}
    for name, edges in graphs.items():
        for rules, columns in ((TC, ("x", "y")), (SG, ("x",))):
            program = compile(parse(DECLARED + rules))
            closed = name == "grid" and rules is TC
            reference, counts = full_answer(program, edges, None if closed else columns)
            for column in columns:
                expected = on_the_grid(grid_side(run), column) if closed else looked_up(counts[column])
                measure(run, f"{question(rules, column)} {name}", program, edges, column, reference, expected)


def question(rules: str, column: str) -> str:
    """A question as it is written."""
    return f"{'tc' if rules is TC else 'sg'}({'x, ?' if column == 'x' else '?, x'})"


def full_answer(
    program: Program, edges: np.ndarray, columns: tuple[str, ...] | None
) -> tuple[Reference, dict[str, dict[int, int]]]:
    """How long everything takes, and how many rows each value of some columns has."""
    cpu = cpu_clock()
    counts: dict[str, dict[int, int]] = {}
    with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False, insert_only=True) as running:
        with cpu:
            running.inputs["e"].insert(edges)
            db.advance()
        if columns is not None:
            table = running.table("answer")
            for column in columns:
                values, times = np.unique(table.column(column).to_numpy(), return_counts=True)
                counts[column] = dict(zip(values.tolist(), times.tolist(), strict=True))
    return Reference("the full answer, insert-only", cpu.least), counts


def looked_up(counts: dict[int, int]) -> Expected:
    """The rows of each value, counted in the full answer."""
    return lambda node: counts.get(node, 0)


def on_the_grid(side: int, column: str) -> Expected:
    """What is right of and below a node, or left of and above it."""

    def reached(node: int) -> int:
        row, place = divmod(node, side)
        return (side - row) * (side - place) - 1 if column == "x" else (row + 1) * (place + 1) - 1

    return reached


def measure(
    run: Run, name: str, program: Program, edges: np.ndarray, column: str, reference: Reference, expected: Expected
) -> None:
    """Arguments one after the other."""
    live = wall_clock(name)
    arguments = np.random.default_rng(7).choice(np.unique(edges), ARGUMENTS).tolist()
    with (
        kpg.open() as db,
        InstalledProgram(db, program, distinct_inputs=False, demand={"answer": (column,)}) as running,
    ):
        running.inputs["e"].insert(edges)
        db.advance()
        began = time.monotonic()
        for number, argument in enumerate(arguments[: run.times(ARGUMENTS)]):
            if number and time.monotonic() - began > PATIENCE_SECONDS:
                break
            running.arguments["answer"].insert([(argument,)])
            with live:
                db.advance()
            assert running.table("answer").num_rows == expected(argument), (name, argument)
            running.arguments["answer"].remove([(argument,)])
            db.advance()
    bars = [at_most("ratio", 1 / 50)] if name.startswith("tc") and name.endswith("G(2,000)") else []
    run.report(
        name, "at least 50 times quicker than the full answer" if bars else None, bars, reference, latency=live, rows=1
    )
