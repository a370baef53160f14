"""X20: how long does Graspan's dataflow analysis take, and how long to take one null assignment back?

As a Datalog program (`kpg/bench/programs/dataflow.dl`) and as collections. Then the first 1,000 null assignments go
one by one. With `--data`, on a file in Graspan's format (labels n and e).
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from kpg.bench import analyses, answers, programs
from kpg.bench.clocks import Clock
from kpg.bench.data.given import program
from kpg.bench.data.graphs import Ints
from kpg.bench.data.programs import Analysed, dataflow_program
from kpg.bench.experiment import LAPTOP, Experiment, Printed, at_least, graspan
from kpg.bench.run import Run
from kpg.opening import open as open_database
from kpg.query.installed_program import InstalledProgram

VARIABLES, RETRACTIONS = 4_000_000, 1_000


def run(run: Run) -> None:
    """Both ways of writing it, on the same program; then retractions."""
    run.say("making a program", 0, 0)
    analysed = made(run)
    run.note(f"{len(analysed.assign):,} assignments, {len(analysed.null):,} null assignments")
    expected = answers.closure(analysed.null, analysed.assign, analysed.nodes)
    datalog(run, analysed, expected)
    with open_database() as db:
        assign, null = db.input("assign", x=int, y=int), db.input("null", x=int, y=int)
        output = analyses.flows(null, assign).output("flows")
        run.say("collections", 0, 0)
        began = time.perf_counter()
        assign.insert(analysed.assign)
        null.insert(analysed.null)
        db.advance()
        seconds = time.perf_counter() - began
        run.check(np.array_equal(coded(output.snapshot(), analysed.nodes), expected), "the flows, as collections")
        run.record("whole analysis, collections", seconds=seconds, flows=len(expected))
        clock, times = Clock(), min(run.rounds(RETRACTIONS, least=10), len(analysed.null) - 1)
        for each in range(times):
            if each % 100 == 0:
                run.say("retracting", each, times)
            with clock:
                null.remove(analysed.null[each : each + 1])
                db.advance()
        left = answers.closure(analysed.null[times:], analysed.assign, analysed.nodes)
        run.check(np.array_equal(coded(output.snapshot(), analysed.nodes), left), "the flows after retractions")
    run.latencies("retracting one null assignment", clock.seconds)
    run.figure("whole_by_median_retraction", seconds / float(np.median(clock.seconds)))


def made(run: Run) -> Analysed:
    """The program of a file, or one from the seed."""
    if run.data is None:
        return dataflow_program(run.size(VARIABLES, least=200), run.seed)
    nodes, (assign, null) = program(run.data, "e", "n")
    return Analysed(assign, np.zeros((0, 2), np.int64), null, nodes)


def datalog(run: Run, analysed: Analysed, expected: Ints) -> None:
    """The program as it is shipped."""
    run.say("Datalog", 0, 0)
    with open_database() as db, InstalledProgram(db, programs.load("dataflow"), distinct_inputs=False) as running:
        began = time.perf_counter()
        running.inputs["assign"].insert(analysed.assign)
        running.inputs["null"].insert(analysed.null)
        db.advance()
        run.record("whole analysis, Datalog", seconds=time.perf_counter() - began, flows=len(expected))
        run.check(np.array_equal(coded(running.table("flows"), analysed.nodes), expected), "the flows, as Datalog")


def coded(table: pa.Table, nodes: int) -> Ints:
    """Rows (node, source) as sorted numbers."""
    return np.sort(table["node"].to_numpy() * nodes + table["source"].to_numpy())


EXPERIMENT = Experiment(
    id="X20",
    title="program analysis: dataflow",
    paper="Shared Arrangements, figure 9; K-Pg, table 3",
    claim="Minutes of Graspan become seconds; taking one null assignment back takes milliseconds.",
    size="4M variables, 5M assignments, 1.4M null assignments",
    printed=(
        Printed("linux / psql / httpd, 1 core", "65.8 s / 32.0 s / 8.9 s", LAPTOP),
        Printed("Graspan, 4 cores", "713.8 min / 143.8 min / 11.3 min"),
        Printed("retraction, median", "1.05 ms / 143 ms / 18.1 ms", LAPTOP),
        Printed("retraction, most", "7.34 ms / 1.21 s / 201 ms", LAPTOP),
    ),
    memory=lambda scale: int(3.5e9 * scale + 4e8),
    run=run,
    bars=(at_least("whole_by_median_retraction", 1000),),
    reads=graspan(6_600_000, "e and n"),
)
