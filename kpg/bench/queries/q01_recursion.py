"""Q1: how long do tc and sg take as Datalog, insert-only and updatable, and how long does one changed edge take?

tc on G(2,000, p = 0.005); sg on the complete binary tree of depth 11 and on the grid of 151 x 151 nodes. The clock of
the first answer includes arranging the edges and the answer. NumPy computes how many rows each answer must have.
DuckDB's recursive SQL on the same edges is the bar: at most its CPU time insert-only, at most twice its CPU time with
removals. clingo and Cozo must take ten times as long. For tc on the grid, whose closure has 131,675,775 rows, the bar
is 60 seconds and 6 GB.

Then single edges are removed and inserted again. The latency runs from before the change is inserted until the
changes of the answer are in hand. After that the answer must be the first one again.

All three programs run in the recursion operator, insert-only and with removals. Q2 has programs that do not.
"""

from __future__ import annotations

import numpy as np

import kpg
from kpg.bench.data.graphs import grid
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import (
    Stopwatch,
    collected_resident_bytes,
    cpu_stopwatch,
    peak_resident_bytes,
    wall_stopwatch,
)
from kpg.bench.output_values import columns
from kpg.bench.peers import duckdb_recompute
from kpg.bench.peers.datalog_engines import ENGINES, TITLES, engine_name
from kpg.bench.peers.peer_process import PeerProcess
from kpg.bench.queries.recursion_programs import DECLARED, TC, RecursionCase, cases, grid_side
from kpg.bench.run import Figures, PeerTimeout, Reference, Run
from kpg.plan.nodes import SaturatedNode
from kpg.query.installed_program import InstalledProgram

REPEATS = 2
CHANGED_EDGES = 20
PEER_TIMEOUT_SECONDS = 120.0


def run(run: Run) -> None:
    """Measure the tc of the grid, then the three programs."""
    measure_grid(run)  # first: its memory is the peak of the process
    with PeerProcess(PEER_TIMEOUT_SECONDS) as process:
        for case in cases(run):
            duckdb = ask_duckdb(run, case)
            measure_insert_only(run, case, duckdb, "at most DuckDB's recursive SQL", 1.0, process)
            measure_updatable(run, case, duckdb, "at most 2 times DuckDB's recursive SQL", 2.0)


def ask_duckdb(run: Run, case: RecursionCase) -> Reference | None:
    """Return DuckDB's CPU seconds for the same question."""
    answer = run.ask("duckdb", lambda: duckdb_recompute.measured(case.sql, {"edges": case.edges, **case.facts}))
    if answer is None:
        return None
    _, seconds, table = answer
    run.check(table["n"].to_pylist() == [case.expected], f"DuckDB has the same number of rows for {case.name}")
    return Reference(f"{duckdb_recompute.name()}, recursive SQL", seconds)


def measure_insert_only(
    run: Run, case: RecursionCase, duckdb: Reference | None, bar: str, times: float, process: PeerProcess | None = None
) -> None:
    """Measure the first answer where no edge is ever removed, beside DuckDB, clingo and Cozo."""
    name = f"{case.name}, insert-only"
    cpu = cpu_stopwatch(name)
    for _ in range(REPEATS):
        evaluation = answer(run, case, cpu)
    figures: Figures = {"rows": case.expected, "seconds": cpu.least, "evaluation": evaluation}
    rate = case.expected / cpu.least
    run.report(name, bar, [at_most("ratio", times)], duckdb, rows_per_second=rate, **figures)
    for peer in ENGINES if run.peers and process is not None else ():
        if peer == "duckdb":
            continue
        reference = ask_engine(run, peer, case, process)
        limits = [at_most("ratio", 0.1)] if reference.seconds else []
        run.report(
            f"{name}, next to {TITLES.get(peer, peer)}", "a tenth of what it takes", limits, reference, **figures
        )


def ask_engine(run: Run, peer: str, case: RecursionCase, process: PeerProcess | None) -> Reference:
    """Return the CPU seconds of a Datalog engine in a process of its own, or why there are none."""
    assert process is not None
    try:
        answer = run.ask(peer, lambda: process.ask(ENGINES[peer], case.kind, case.edges))
    except PeerTimeout:
        return Reference(engine_name(peer), None, note=f"not done after {PEER_TIMEOUT_SECONDS:g} s")
    if answer is None:
        return Reference(peer, None, note=run.result.notes[-1] if run.result.notes else "not installed")
    run.check(answer.rows == case.expected, f"{peer} has the same number of rows for {case.name}")
    return Reference(engine_name(peer), answer.cpu_seconds)


def answer(run: Run, case: RecursionCase, cpu: Stopwatch) -> str:
    """Compute an answer insert-only, check its row count, and return how the recursion was evaluated."""
    with kpg.open() as db, InstalledProgram(db, case.program, distinct_inputs=False, insert_only=True) as installed:
        with cpu:
            case.insert(installed)
            db.advance()
        run.check(installed.answer("answer").rows == case.expected, f"the rows of {case.name}, insert-only")
        return evaluation_of(installed)


def evaluation_of(installed: InstalledProgram) -> str:
    """Return whether a program's answer is computed by the recursion operator or by a loop."""
    is_operator = isinstance(installed.collections["answer"].node, SaturatedNode)
    return "recursion operator" if is_operator else "loop"


def measure_grid(run: Run) -> None:
    """Measure the closure of the grid. Each node reaches what is right of and below it, so its size is known."""
    side = grid_side(run)
    expected = (side * (side + 1) // 2) ** 2 - side**2
    cpu = cpu_stopwatch("tc grid, insert-only")
    evaluation = answer(run, RecursionCase("tc grid", DECLARED + TC, "", grid(side - 1), expected), cpu)
    run.report(
        "tc grid, insert-only", "60 s and 6 GB", [at_most("seconds", 60), at_most("bytes", 6e9)],
        rows=expected, seconds=cpu.least, rows_per_second=expected / cpu.least, bytes=peak_resident_bytes(),
        evaluation=evaluation,
    )  # fmt: skip


def measure_updatable(
    run: Run, case: RecursionCase, duckdb: Reference | None, bar: str, times: float, edge_ms: int = 50
) -> None:
    """Measure the first answer with removals allowed, then single edges that are removed and inserted again."""
    cpu, live = cpu_stopwatch(f"{case.name}, first answer"), wall_stopwatch(f"{case.name}, 1 edge")
    before = collected_resident_bytes()
    for repeat in range(REPEATS):
        with kpg.open() as db, InstalledProgram(db, case.program, distinct_inputs=False) as installed:
            with cpu:
                case.insert(installed)
                db.advance()
            run.check(installed.answer("answer").scan().num_rows == case.expected, f"the first answer of {case.name}")
            held = collected_resident_bytes() - before
            evaluation = evaluation_of(installed)
            if repeat == REPEATS - 1:
                change_edges(run, db, installed, case, live)
    run.report(
        f"{case.name}, first answer", bar, [at_most("ratio", times)], duckdb, rows=case.expected, seconds=cpu.least,
        rows_per_second=case.expected / cpu.least, bytes=held, evaluation=evaluation,
    )  # fmt: skip
    edge, bar = f"{case.name}, 1 edge", f"p50 at most {edge_ms} ms"
    limits = [at_most("p50_ms", edge_ms)]
    run.report(edge, bar, limits, duckdb, latency=live, rows=1, evaluation=evaluation)


def change_edges(run: Run, db: kpg.Database, installed: InstalledProgram, case: RecursionCase, live: Stopwatch) -> None:
    """Remove single edges and insert them again; the clock runs until the changes of the answer are in hand."""
    output = installed.answer("answer").output("changes of the answer", keep=False)
    db.advance()
    output.take_changes()
    changed_rows = 0
    for position in np.random.default_rng(3).permutation(len(case.edges))[: run.fixed_rounds(CHANGED_EDGES)]:
        edge = case.edges[position : position + 1]
        for change in (installed.inputs["e"].remove, installed.inputs["e"].insert):
            with live:
                change(edge)
                db.advance()
                changes = output.take_changes()
            changed_rows += int(columns(changes)[1].sum())
    output.release()
    run.check(changed_rows == 0, f"the changes of {case.name}, summed up")
    run.check(installed.answer("answer").scan().num_rows == case.expected, f"the last answer of {case.name}")


EXPERIMENT = engine_experiment(
    "Q1",
    "tc and sg, in the recursion operator",
    "G(2,000), a tree of depth 11, a grid of 151 x 151 nodes",
    lambda scale: int(7e9 * scale + 5e8),
    run,
    ("duckdb", "clingo", "cozo"),
)
