"""Q6: how long does one argument of tc(x, ?), tc(?, x) or sg(x, ?) take, next to the full answer?

On the three graphs of Q1. Arguments are random. Each is inserted, answered, checked and removed again, while the edges
stay loaded and the dataflow installed. The latency runs from before the argument is inserted until the changes of the
answer are in hand. The reference is the full answer of the same rules in the same run, insert-only and with the edges
arranged on the clock: the fastest way to have it. A question that takes long is asked with fewer arguments: on G(2,000)
every node is of the generation of every other, so one argument of sg demands everything. The bar: on tc of G(2,000),
at least 50 times faster than the full answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import kpg
from kpg.bench.data.graphs import Ints, bernoulli_graph, binary_tree, grid
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import cpu_stopwatch, wall_stopwatch
from kpg.bench.output_values import rows_after
from kpg.bench.queries.recursion_programs import DECLARED, SG, TC, grid_side, tree_depth
from kpg.bench.run import Reference, Run
from kpg.query.datalog import parse
from kpg.query.installed_program import InstalledProgram
from kpg.query.ir.compile import compile
from kpg.query.ir.program import Program

ARGUMENTS = 100
LIMIT_SECONDS = 20.0  # after which no more arguments are asked
RowCount = Callable[[int], int]  # the number of rows of an argument


def run(run: Run) -> None:
    """Measure three questions on three graphs."""
    nodes = run.size(2_000)
    graphs = {
        "G(2,000)": bernoulli_graph(nodes, 10 / nodes),
        "tree": binary_tree(tree_depth(run)),
        "grid": grid(grid_side(run) - 1),
    }
    for name, edges in graphs.items():
        for rules, columns in ((TC, ("x", "y")), (SG, ("x",))):
            program = compile(parse(DECLARED + rules))
            has_formula = name == "grid" and rules is TC
            reference, counts = full_answer(program, edges, None if has_formula else columns)
            for column in columns:
                expected = on_the_grid(grid_side(run), column) if has_formula else looked_up(counts[column])
                measure(run, f"{question(rules, column)} {name}", program, edges, column, reference, expected)


def question(rules: str, column: str) -> str:
    """Return a question in words."""
    return f"{'tc' if rules is TC else 'sg'}({'x, ?' if column == 'x' else '?, x'})"


def full_answer(
    program: Program, edges: Ints, columns: tuple[str, ...] | None
) -> tuple[Reference, dict[str, dict[int, int]]]:
    """Return the CPU seconds of the full answer, and the number of rows of each value of some columns."""
    cpu = cpu_stopwatch()
    counts: dict[str, dict[int, int]] = {}
    with kpg.open() as db, InstalledProgram(db, program, distinct_inputs=False, insert_only=True) as installed:
        with cpu:
            installed.inputs["e"].insert(edges)
            db.advance()
        if columns is not None:
            table = installed.table("answer")
            for column in columns:
                values, times = np.unique(table.column(column).to_numpy(), return_counts=True)
                counts[column] = dict(zip(values.tolist(), times.tolist(), strict=True))
    return Reference("the full answer, insert-only", cpu.least), counts


def looked_up(counts: dict[int, int]) -> RowCount:
    """Return a function that looks up the rows of a value, counted in the full answer."""
    return lambda node: counts.get(node, 0)


def on_the_grid(side: int, column: str) -> RowCount:
    """Return a function that counts the nodes right of and below a node, or left of and above it."""

    def reached(node: int) -> int:
        row, position = divmod(node, side)
        return (side - row) * (side - position) - 1 if column == "x" else (row + 1) * (position + 1) - 1

    return reached


def measure(
    run: Run, name: str, program: Program, edges: Ints, column: str, reference: Reference, expected: RowCount
) -> None:
    """Ask for one argument after the other."""
    live = wall_stopwatch(name)
    arguments = np.random.default_rng(7).choice(np.unique(edges), ARGUMENTS).tolist()
    with (
        kpg.open() as db,
        InstalledProgram(db, program, distinct_inputs=False, demand={"answer": (column,)}) as installed,
    ):
        installed.inputs["e"].insert(edges)
        output = installed.answer("answer").output("changes of the answer", keep=False)
        db.advance()
        output.take_changes()
        began = time.monotonic()
        for number, argument in enumerate(arguments[: run.fixed_rounds(ARGUMENTS)]):
            if number and time.monotonic() - began > LIMIT_SECONDS:
                break
            with live:
                installed.arguments["answer"].insert([(argument,)])
                db.advance()
                changes = output.take_changes()
            rows = rows_after([changes])
            asked = rows[0 if column == "x" else 1]
            correct = rows.shape[1] == expected(argument) and bool((asked == argument).all())
            run.check(correct, f"the answer of {name} for {argument}")
            installed.arguments["answer"].remove([(argument,)])
            db.advance()
            output.take_changes()
        run.check(installed.table("answer").num_rows == 0, f"the answer of {name} without arguments")
        output.release()
    limits = [at_most("ratio", 1 / 50)] if name.startswith("tc") and name.endswith("G(2,000)") else []
    bar = "at least 50 times faster than the full answer" if limits else None
    run.report(name, bar, limits, reference, latency=live, rows=1)


EXPERIMENT = engine_experiment(
    "Q6",
    "one argument more, next to the full answer",
    "tc and sg on the graphs of Q1, 100 arguments each",
    lambda scale: int(7e9 * scale + 5e8),
    run,
)
