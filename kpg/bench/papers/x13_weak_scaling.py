"""X13: do latencies stay constant when workers, keys and load grow together?"""

from __future__ import annotations

from kpg.bench.experiment import Experiment, PaperFigure
from kpg.bench.measure import percentile_ms
from kpg.bench.papers.x12_strong_scaling import SECONDS
from kpg.bench.rolling_keys import in_words, serve, worker_counts
from kpg.bench.run import Run
from kpg.bench.warm_workers import warm_database

KEYS, UPDATES_PER_SECOND = 2_500_000, 250_000  # for each worker


def run(run: Run) -> None:
    """Serve the same load for each worker, on more and more workers."""
    tails = []
    for workers in worker_counts(run):
        run.progress(in_words(workers), 0, 0)
        rate = workers * max(2_000, UPDATES_PER_SECOND * min(1.0, run.scale * 10))
        keys = workers * run.size(KEYS, least=100)
        with warm_database(workers) as db:
            served = serve(run, db, keys, rate, run.scaled_rounds(1000, least=30) / 1000 * SECONDS)
        name = f"{in_words(workers)}, {keys:,} keys, {rate:,.0f} updates/s"
        run.latencies(name, served.latencies, saturated=served.saturated)
        tails.append(percentile_ms(served.latencies, 99))
    run.figure("p99_of_most_by_p99_of_one", tails[-1] / tails[0])


EXPERIMENT = Experiment(
    id="X13",
    title="arrange: weak scaling",
    paper="Shared Arrangements, figure 7c",
    claim="With workers, keys and load growing together, tails grow at first and then stay constant.",
    size="2.5M keys and 250k updates/s for each worker (the paper: 10M and 1M, --scale 4)",
    printed=(PaperFigure("p99 as workers grow", "stays at 100 to 200 ms"),),
    memory=lambda scale: int(1.5e9 * scale + 6e8),
    run=run,
)
