"""X4: how do the rates of TPC-H's queries grow with the size of a batch, and with a second worker?

Each query is alone in a db and loaded in batches of 100,000 rows. Then up to 2,000 batches of 1,000 rows, and up to
2,000 of one row, leave and return, from the tables in proportion to their sizes. Rates are rows by CPU time, on two
workers by wall time. The answer is compared with DuckDB's after each part.
"""

from __future__ import annotations

from kpg.bench.experiment import Experiment, PaperFigure
from kpg.bench.measure import Stopwatch
from kpg.bench.papers.x05_tpch_rates import BATCH_ROWS, FULL_SCALE
from kpg.bench.run import Run
from kpg.bench.tpch_views import StreamedQuery, batch_size, loaded_for, measured_queries

SMALL_BATCHES = 2_000
SIZES = (1_000, 1)


def run(run: Run) -> None:
    """Measure all queries on one worker; at full size also on two."""
    for workers in (1, 2) if run.kind == "measurement" and run.scale >= FULL_SCALE else (1,):
        points: dict[int, list[tuple[float, float]]] = {}
        for number in measured_queries(run):
            points[number] = measure(run, number, workers)
            name = "one worker" if workers == 1 else "two workers"
            x, y = "rows in a batch", "tuples/s"
            run.line(f"batching, {name}", f"Q{number}", points[number], x=x, y=y, log_x=True, log_y=True)


def measure(run: Run, number: int, workers: int) -> list[tuple[float, float]]:
    """Measure one query with each size of batches; return the rates by size."""
    full = batch_size(run, BATCH_ROWS)
    suffix = ", two workers" if workers > 1 else ""
    with StreamedQuery(number, loaded_for(number, run.scale), workers) as query:
        query.apply_all(query.stream.loading(full), run, set(), "loading")
        rates = {full: query.rows / query.seconds}
        run.record(f"Q{number}, {full:,} rows{suffix}", rows_per_second=rates[full], batches=len(query.working.seconds))
        for size in SIZES:
            rates[size] = churn(run, query, size, suffix)
    return sorted((float(size), rate) for size, rate in rates.items())


def churn(run: Run, query: StreamedQuery, size: int, suffix: str) -> float:
    """Let batches of one size leave and return; report and return the rate."""
    before, seconds = query.rows, query.seconds
    done = len(query.working.seconds)
    for batch in query.stream.churning(size, run.scaled_rounds(SMALL_BATCHES, least=4)):
        query.apply(batch)
    query.check(run, f"after batches of {size}")
    rate = (query.rows - before) / (query.seconds - seconds)
    latencies = Stopwatch()
    latencies.seconds, latencies.cpu_seconds = query.working.seconds[done:], query.working.cpu_seconds[done:]
    run.record(
        f"Q{query.number}, {size:,} rows{suffix}", rows_per_second=rate, batches=len(latencies.seconds),
        p50_ms=latencies.p50_ms, p99_ms=latencies.p99_ms,
    )  # fmt: skip
    return rate


EXPERIMENT = Experiment(
    id="X4",
    title="TPC-H: rates by batching and workers",
    paper="K-Pg, figures 4a to 4c",
    claim="Larger batches and more workers increase the rates of most queries; global aggregates gain little.",
    size="scale factor 1; batches of 100,000, 1,000 and 1 rows (the paper: scale factor 10)",
    printed=(
        PaperFigure("batches of 1M by batches of 1", "two to three orders of magnitude"),
        PaperFigure("16 workers by one", "most queries in proportion; global aggregates less"),
    ),
    memory=lambda scale: int(6e9 * scale + 8e8),
    run=run,
    rehearsal_scale=0.001,
)
