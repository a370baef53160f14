"""X21: what does a better plan, and what does sharing, do for Graspan's points-to analysis?

Plain, optimised, and optimised with an index for each reader; as collections, and the first two as Datalog programs
too (`kpg/bench/programs`). With `--data`, on a file in Graspan's format (labels a and d).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from kpg.api.collection import Collection
from kpg.bench import analyses, answers, programs
from kpg.bench.data.given import program as program_of
from kpg.bench.data.graphs import Ints
from kpg.bench.data.programs import Analysed, pointer_program
from kpg.bench.experiment import LAPTOP, Experiment, Printed, at_least, graspan
from kpg.bench.run import Run
from kpg.columns.functions import lit
from kpg.opening import open as open_database
from kpg.query.installed_program import InstalledProgram

VARIABLES = 400_000
CHECKED_NODES = 6_000  # more are too many for matrices
REPEATS = 4
Analysis = Callable[[Collection, Collection], analyses.Pair]
Answers = tuple[Ints, Ints]


def run(run: Run) -> None:
    """Each way on the same program; all must say the same."""
    analysed = made(run)
    run.note(f"{len(analysed.assign):,} assignments, {len(analysed.deref):,} dereferences")
    small = pointer_program(min(CHECKED_NODES, run.size(VARIABLES, least=300)) // 3, run.seed + 1)
    check_small(run, small)
    not_shared: Analysis = partial(analyses.points_to_optimised, share=False)
    seconds: dict[str, float] = {}
    found: Answers | None = None
    ways: tuple[tuple[str, Analysis], ...] = (
        ("optimised", analyses.points_to_optimised),
        ("optimised, not shared", not_shared),
        ("plain", analyses.points_to),
    )
    for name, analysis in ways * REPEATS:  # in turn, so that none has the warmer memory or the busier machine
        run.say(name, 0, 0)
        took, answer = by_collections(analysed, analysis)
        run.check(found is None or same(found, answer), f"{name} says the same")
        found, seconds[name] = answer, min(took, seconds.get(name, took))
    assert found is not None
    for name, least in seconds.items():
        run.record(f"{name}, collections", cpu_seconds=least, value_flows=len(found[0]), memory_aliases=len(found[1]))
    for name, program in (("optimised", "points_to_optimised"), ("plain", "points_to")):
        run.say(f"{name}, Datalog", 0, 0)
        took, answer = by_datalog(analysed, program)
        run.check(same(found, answer), f"{name} as Datalog says the same")
        run.record(f"{name}, Datalog", cpu_seconds=took, value_flows=len(answer[0]), memory_aliases=len(answer[1]))
    run.figure("plain_by_optimised", seconds["plain"] / seconds["optimised"])
    run.figure("not_shared_by_shared", seconds["optimised, not shared"] / seconds["optimised"])


def made(run: Run) -> Analysed:
    """The program of a file, or one from the seed."""
    if run.data is None:
        return pointer_program(run.size(VARIABLES, least=300), run.seed)
    nodes, (assign, deref) = program_of(run.data, "a", "d")
    return Analysed(assign, deref, np.zeros((0, 2), np.int64), nodes)


def check_small(run: Run, analysed: Analysed) -> None:
    """On a small program, what sparse matrices say."""
    expected = answers.points_to(analysed.assign, analysed.deref, analysed.nodes)
    run.check(same(expected, by_collections(analysed, analyses.points_to_optimised)[1]), "optimised, by matrices")
    run.check(same(expected, by_collections(analysed, analyses.points_to)[1]), "plain, by matrices")


def by_collections(analysed: Analysed, analysis: Analysis) -> tuple[float, Answers]:
    """CPU seconds and both answers."""
    with open_database() as db:
        assign, deref = db.input("assign", x=int, y=int), db.input("deref", x=int, y=int)
        flow, alias = analysis(assign, deref)
        both = flow.select("x", "y", kind=lit(0)).concat(alias.select("x", "y", kind=lit(1)))
        output = both.output("both", keep=False)
        began = time.process_time()
        assign.insert(analysed.assign)
        deref.insert(analysed.deref)
        db.advance()
        seconds = time.process_time() - began
        table = output.take_changes().to_arrow()
    kind = table["kind"].to_numpy()
    numbers = table["x"].to_numpy() * analysed.nodes + table["y"].to_numpy()
    return seconds, (np.sort(numbers[kind == 0]), np.sort(numbers[kind == 1]))


def by_datalog(analysed: Analysed, program: str) -> tuple[float, Answers]:
    """The same for a program of a file."""
    with open_database() as db, InstalledProgram(db, programs.load(program), distinct_inputs=False) as running:
        began = time.process_time()
        running.inputs["assign"].insert(analysed.assign)
        running.inputs["deref"].insert(analysed.deref)
        db.advance()
        seconds = time.process_time() - began
        return seconds, (
            coded(running.table("value_flow"), analysed.nodes),
            coded(running.table("memory_alias"), analysed.nodes),
        )


def coded(table: pa.Table, nodes: int) -> Ints:
    """Rows (x, y) as sorted numbers."""
    return np.sort(table["x"].to_numpy() * nodes + table["y"].to_numpy())


def same(one: Answers, other: Answers) -> bool:
    """Whether both answers agree."""
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


EXPERIMENT = Experiment(
    id="X21",
    title="program analysis: points-to",
    paper="Shared Arrangements, figure 10; K-Pg, table 4",
    claim="A plan that reuses relations is far faster than the plain one, and loses much of that without sharing.",
    size="400,000 variables, 196,000 assignments, 400,000 dereferences",
    printed=(
        Printed("linux / psql / httpd, plain, 1 core", "241.0 s / 151.2 s / 185.6 s", LAPTOP),
        Printed("optimised, 1 core", "121.1 s / 52.3 s / 51.8 s", LAPTOP),
        Printed("K-Pg: plain", "423.1 s / 362.0 s / 536.3 s", LAPTOP),
        Printed("K-Pg: optimised", "191.3 s / 75.9 s / 77.4 s", LAPTOP),
        Printed("K-Pg: optimised, not shared", "401.7 s / 94.3 s / 91.9 s", LAPTOP),
        Printed("Graspan, 4 cores", "99.7 min / 353.1 min / 479.9 min"),
    ),
    memory=lambda scale: int(2.5e9 * scale**1.1 + 4e8),
    run=run,
    bars=(at_least("plain_by_optimised", 2), at_least("not_shared_by_shared", 1.3)),
    reads=graspan(600_000, "a and d"),
)
