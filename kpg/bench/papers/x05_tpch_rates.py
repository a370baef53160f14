"""X5: how many rows a second maintain each query of TPC-H, in logical batches of 100,000 rows?

Each query is alone in a db. The tables that it reads are streamed round-robin, with the columns that it reads; then the
older half of the orders is deleted with its lineitems. The answer is compared with DuckDB's at five points. Rates are
rows by CPU time, with and without encoding from Arrow. A rate is level with the paper's if it reaches it on a machine
that sorts 10M int64 in 0.16 s; slower machines are charged in proportion. Scale factor 1 and a newer CPU favour us.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from kpg.bench.experiment import Experiment, PaperFigure, at_least
from kpg.bench.run import Run
from kpg.bench.tpch_speed import machine_slowdown
from kpg.bench.tpch_views import StreamedQuery, batch_size, loaded_for, measured_queries
from kpg.sql.tpch.tpch_queries import NUMBERS

BATCH_ROWS = 100_000
LARGE_SCALE, LARGE_QUERIES = 10, (1, 3, 6, 18)  # queries that are also measured at ten times the scale
FULL_SCALE = 1.0  # from which on larger scales and more workers are measured
# tuples a second on one worker, table 5
PAPER_RATES = {
    1: 9_341_713, 2: 4_388_761, 3: 11_049_606, 4: 9_046_854, 5: 5_802_513, 6: 33_090_863, 7: 7_551_628, 8: 4_949_412,
    9: 2_932_421, 10: 9_708_371, 11: 1_720_655, 12: 11_258_702, 13: 1_446_223, 14: 21_908_762, 15: 5_057_397,
    16: 4_435_818, 17: 5_218_907, 18: 5_854_293, 19: 22_696_357, 20: 16_089_949, 21: 1_968_771, 22: 1_843_397,
}  # fmt: skip


def run(run: Run) -> None:
    """Measure all queries; at full size also four of them at ten times the scale, and all on two workers."""
    slowdown = machine_slowdown(run)
    rates = {number: measure(run, number, run.scale) for number in measured_queries(run)}
    run.figure("geometric_mean_tuples_per_second", geometric_mean(rates.values()))
    run.figure("scaled_geometric_mean", geometric_mean(rates.values()) * slowdown)
    run.figure("queries_level_or_ahead", sum(rates[n] * slowdown >= PAPER_RATES[n] for n in rates))
    draw(run, "one worker", rates)
    draw(run, "paper, one worker", {number: float(rate) for number, rate in PAPER_RATES.items()})
    if run.kind != "measurement" or run.scale < FULL_SCALE:
        return
    for number in LARGE_QUERIES:
        measure(run, number, run.scale * LARGE_SCALE)
    draw(run, "two workers", {number: measure(run, number, run.scale, workers=2) for number in NUMBERS})


def measure(run: Run, number: int, scale_factor: float, workers: int = 1) -> float:
    """Stream one query; report its rates and return the one with encoding."""
    size = batch_size(run, BATCH_ROWS)
    with StreamedQuery(number, loaded_for(number, scale_factor), workers) as query:
        loads = -(-query.stream.rows() // size)
        leaves = query.stream.leaving_batches(size)
        points = (2, 3) if leaves else (0, 5)
        query.apply_all(query.stream.loading(size), run, spread(loads, points[1]), "loading")
        loading = query.rows / query.seconds
        query.apply_all(query.stream.leaving(size), run, spread(leaves, points[0]), "leaving")
        rate = query.rows / query.seconds
        run.record(
            case(number, scale_factor / run.scale, workers), rows=query.rows, rows_per_second=rate,
            without_encoding=query.rows / query.working.total, loading=loading, seconds=query.seconds,
            batches=loads + leaves, batch_rows=size, paper=PAPER_RATES[number] if scale_factor == run.scale else None,
        )  # fmt: skip
    return rate


def case(number: int, times: float, workers: int) -> str:
    """Return the name of a row."""
    return (
        f"Q{number}" + (f", {times:g} times the scale" if times != 1 else "") + (", two workers" if workers > 1 else "")
    )


def spread(batches: int, points: int) -> set[int]:
    """Return the numbers of some batches, evenly spaced, with the last among them."""
    return {max(1, round(batches * point / points)) for point in range(1, points + 1)} if batches else set()


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def draw(run: Run, name: str, rates: dict[int, float]) -> None:
    """Add a line of rates by query."""
    run.line("rates", name, [(float(n), rate) for n, rate in rates.items()], x="query", y="tuples/s", log_y=True)


EXPERIMENT = Experiment(
    id="X5",
    title="TPC-H: rates in logical batches",
    paper="K-Pg, table 5; Shared Arrangements, figure 12",
    claim="All 22 queries are maintained at a uniformly high rate, some five orders of magnitude above re-evaluation.",
    size="scale factor 1, batches of 100,000 rows (the paper: scale factor 10)",
    printed=(
        PaperFigure("geometric mean of 22 queries, one worker", "6.4M tuples/s"),
        *(PaperFigure(f"Q{number}", f"{rate:,} tuples/s") for number, rate in PAPER_RATES.items()),
    ),
    memory=lambda scale: int(6e9 * scale + 8e8),
    run=run,
    limits=(at_least("scaled_geometric_mean", 6_400_000), at_least("queries_level_or_ahead", 15)),
    rehearsal_scale=0.001,
)
