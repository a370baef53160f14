"""X20: how long does Graspan's dataflow analysis take, and how long does it take to remove one null assignment?

As a Datalog program (`kpg/bench/programs/dataflow.dl`) and as collections. Then the first 1,000 null assignments are
removed one by one. With `--data`, on a file in Graspan's format (labels n and e).
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from kpg.bench import graspan_analyses, programs, reference_answers
from kpg.bench.data.analysed_programs import AnalysedProgram, dataflow_program
from kpg.bench.data.file_graphs import read_program
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import LAPTOP, Experiment, PaperFigure, at_least, graspan
from kpg.bench.measure import Stopwatch
from kpg.bench.run import Run
from kpg.opening import open as open_database
from kpg.query.installed_program import InstalledProgram

VARIABLES, RETRACTIONS = 4_000_000, 1_000


def run(run: Run) -> None:
    """Run both versions on the same program, then remove null assignments."""
    run.progress("generating a program", 0, 0)
    analysed = analysed_program(run)
    run.note(f"{len(analysed.assign):,} assignments, {len(analysed.null):,} null assignments")
    expected = reference_answers.closure(analysed.null, analysed.assign, analysed.nodes)
    datalog(run, analysed, expected)
    with open_database() as db:
        assign, null = db.input("assign", x=int, y=int), db.input("null", x=int, y=int)
        output = graspan_analyses.flows(null, assign).output("flows")
        run.progress("collections", 0, 0)
        began = time.perf_counter()
        assign.insert(analysed.assign)
        null.insert(analysed.null)
        db.advance()
        seconds = time.perf_counter() - began
        run.check(np.array_equal(coded(output.snapshot(), analysed.nodes), expected), "the flows, as collections")
        run.record("whole analysis, collections", seconds=seconds, flows=len(expected))
        stopwatch, times = (
            Stopwatch("retracting one"),
            min(run.scaled_rounds(RETRACTIONS, least=10), len(analysed.null) - 1),
        )
        for number in range(times):
            if number % 100 == 0:
                run.progress("retracting", number, times)
            with stopwatch:
                null.remove(analysed.null[number : number + 1])
                db.advance()
        left = reference_answers.closure(analysed.null[times:], analysed.assign, analysed.nodes)
        run.check(np.array_equal(coded(output.snapshot(), analysed.nodes), left), "the flows after retractions")
    run.latencies("retracting one null assignment", stopwatch.seconds)
    run.figure("whole_by_median_retraction", seconds / float(np.median(stopwatch.seconds)))


def analysed_program(run: Run) -> AnalysedProgram:
    """Return the program of the file, or a generated one."""
    if run.data is None:
        return dataflow_program(run.size(VARIABLES, least=200), run.seed)
    nodes, (assign, null) = read_program(run.data, "e", "n")
    return AnalysedProgram(assign, np.zeros((0, 2), np.int64), null, nodes)


def datalog(run: Run, analysed: AnalysedProgram, expected: Ints) -> None:
    """Run the analysis as a Datalog program."""
    run.progress("Datalog", 0, 0)
    with open_database() as db, InstalledProgram(db, programs.load("dataflow"), distinct_inputs=False) as installed:
        began = time.perf_counter()
        installed.inputs["assign"].insert(analysed.assign)
        installed.inputs["null"].insert(analysed.null)
        db.advance()
        run.record("whole analysis, Datalog", seconds=time.perf_counter() - began, flows=len(expected))
        run.check(np.array_equal(coded(installed.table("flows"), analysed.nodes), expected), "the flows, as Datalog")


def coded(table: pa.Table, nodes: int) -> Ints:
    """Return rows (node, source) as sorted codes."""
    return np.sort(table["node"].to_numpy() * nodes + table["source"].to_numpy())


EXPERIMENT = Experiment(
    id="X20",
    title="program analysis: dataflow",
    paper="Shared Arrangements, figure 9; K-Pg, table 3",
    claim="Minutes of Graspan become seconds; removing one null assignment takes milliseconds.",
    size="4M variables, 5M assignments, 1.4M null assignments",
    printed=(
        PaperFigure("linux / psql / httpd, 1 core", "65.8 s / 32.0 s / 8.9 s", LAPTOP),
        PaperFigure("Graspan, 4 cores", "713.8 min / 143.8 min / 11.3 min"),
        PaperFigure("retraction, median", "1.05 ms / 143 ms / 18.1 ms", LAPTOP),
        PaperFigure("retraction, most", "7.34 ms / 1.21 s / 201 ms", LAPTOP),
    ),
    memory=lambda scale: int(3.5e9 * scale + 4e8),
    run=run,
    limits=(at_least("whole_by_median_retraction", 1000),),
    reads=graspan(6_600_000, "e and n"),
)
