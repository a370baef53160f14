"""X21: how much do a better plan, and sharing, speed up Graspan's points-to analysis?

Plain and optimised, as collections and as Datalog programs (`kpg/bench/programs`): both run in the recursion operator,
which keeps the indexes that it needs. As loops, plain, optimised, and optimised with an index for each reader: the
figures with bars are theirs. With `--data`, on a file in Graspan's format (labels a and d).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from kpg.api.collection import Collection
from kpg.bench import graspan_analyses, programs, reference_answers
from kpg.bench.data.analysed_programs import AnalysedProgram, pointer_program
from kpg.bench.data.file_graphs import read_program
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import LAPTOP, Experiment, PaperFigure, at_least, graspan
from kpg.bench.run import Run
from kpg.columns.functions import lit
from kpg.opening import open as open_database
from kpg.query.installed_program import InstalledProgram

VARIABLES = 400_000
CHECKED_NODES = 6_000  # matrices of more need too much memory
REPEATS = 4
Analysis = Callable[[Collection, Collection], graspan_analyses.Pair]
Answers = tuple[Ints, Ints]
VERSIONS: tuple[tuple[str, Analysis], ...] = (
    ("optimised, collections", graspan_analyses.points_to_optimised),
    ("plain, collections", graspan_analyses.points_to),
    ("optimised, loop", partial(graspan_analyses.points_to_optimised, as_loop=True)),
    ("optimised, not shared, loop", partial(graspan_analyses.points_to_optimised, share=False, as_loop=True)),
    ("plain, loop", partial(graspan_analyses.points_to, as_loop=True)),
)


def run(run: Run) -> None:
    """Run each version on the same program; all answers must agree."""
    analysed = analysed_program(run)
    run.note(f"{len(analysed.assign):,} assignments, {len(analysed.deref):,} dereferences")
    small = pointer_program(min(CHECKED_NODES, run.size(VARIABLES, least=300)) // 3, run.seed + 1)
    check_small(run, small)
    seconds: dict[str, float] = {}
    first: Answers | None = None
    for name, analysis in VERSIONS * REPEATS:  # in turn, so that none has warmer memory or a busier machine
        run.progress(name, 0, 0)
        took, answer = by_collections(analysed, analysis)
        run.check(first is None or same(first, answer), f"{name} has the same answer")
        first, seconds[name] = answer, min(took, seconds.get(name, took))
    assert first is not None
    for name, least in seconds.items():
        run.record(name, cpu_seconds=least, value_flows=len(first[0]), memory_aliases=len(first[1]))
    for name, program in (("optimised", "points_to_optimised"), ("plain", "points_to")):
        run.progress(f"{name}, Datalog", 0, 0)
        took, answer = by_datalog(analysed, program)
        run.check(same(first, answer), f"{name} as Datalog has the same answer")
        run.record(f"{name}, Datalog", cpu_seconds=took, value_flows=len(answer[0]), memory_aliases=len(answer[1]))
    run.figure("plain_by_optimised", seconds["plain, loop"] / seconds["optimised, loop"])
    run.figure("not_shared_by_shared", seconds["optimised, not shared, loop"] / seconds["optimised, loop"])


def analysed_program(run: Run) -> AnalysedProgram:
    """Return the program of the file, or a generated one."""
    if run.data is None:
        return pointer_program(run.size(VARIABLES, least=300), run.seed)
    nodes, (assign, deref) = read_program(run.data, "a", "d")
    return AnalysedProgram(assign, deref, np.zeros((0, 2), np.int64), nodes)


def check_small(run: Run, analysed: AnalysedProgram) -> None:
    """Check both versions against sparse matrices, on a small program."""
    expected = reference_answers.points_to(analysed.assign, analysed.deref, analysed.nodes)
    run.check(
        same(expected, by_collections(analysed, graspan_analyses.points_to_optimised)[1]), "optimised, by matrices"
    )
    run.check(same(expected, by_collections(analysed, graspan_analyses.points_to)[1]), "plain, by matrices")


def by_collections(analysed: AnalysedProgram, analysis: Analysis) -> tuple[float, Answers]:
    """Return the CPU seconds and both answers of an analysis on collections."""
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
    codes = table["x"].to_numpy() * analysed.nodes + table["y"].to_numpy()
    return seconds, (np.sort(codes[kind == 0]), np.sort(codes[kind == 1]))


def by_datalog(analysed: AnalysedProgram, program: str) -> tuple[float, Answers]:
    """Return the CPU seconds and both answers of a Datalog program."""
    with open_database() as db, InstalledProgram(db, programs.load(program), distinct_inputs=False) as installed:
        began = time.process_time()
        installed.inputs["assign"].insert(analysed.assign)
        installed.inputs["deref"].insert(analysed.deref)
        db.advance()
        seconds = time.process_time() - began
        return seconds, (
            coded(installed.table("value_flow"), analysed.nodes),
            coded(installed.table("memory_alias"), analysed.nodes),
        )


def coded(table: pa.Table, nodes: int) -> Ints:
    """Return rows (x, y) as sorted codes."""
    return np.sort(table["x"].to_numpy() * nodes + table["y"].to_numpy())


def same(one: Answers, other: Answers) -> bool:
    """Return whether both answers agree."""
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


EXPERIMENT = Experiment(
    id="X21",
    title="program analysis: points-to",
    paper="Shared Arrangements, figure 10; K-Pg, table 4",
    claim="A plan that reuses relations is far faster than the plain one, and loses much of that without sharing.",
    size="400,000 variables, 196,000 assignments, 400,000 dereferences",
    printed=(
        PaperFigure("linux / psql / httpd, plain, 1 core", "241.0 s / 151.2 s / 185.6 s", LAPTOP),
        PaperFigure("optimised, 1 core", "121.1 s / 52.3 s / 51.8 s", LAPTOP),
        PaperFigure("K-Pg: plain", "423.1 s / 362.0 s / 536.3 s", LAPTOP),
        PaperFigure("K-Pg: optimised", "191.3 s / 75.9 s / 77.4 s", LAPTOP),
        PaperFigure("K-Pg: optimised, not shared", "401.7 s / 94.3 s / 91.9 s", LAPTOP),
        PaperFigure("Graspan, 4 cores", "99.7 min / 353.1 min / 479.9 min"),
    ),
    memory=lambda scale: int(2.5e9 * scale**1.1 + 4e8),
    run=run,
    limits=(at_least("plain_by_optimised", 2), at_least("not_shared_by_shared", 1.3)),
    reads=graspan(600_000, "a and d"),
)
