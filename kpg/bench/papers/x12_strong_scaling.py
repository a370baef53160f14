"""X12: do more workers make the tail shorter, under the same load?

10M keys, on one worker and on as many as the machine has cores: with the paper's 1M updates a second, which leave one
of our workers mostly idle, and with four times as many.
"""

from __future__ import annotations

from kpg.bench.experiment import Experiment, PaperFigure
from kpg.bench.measure import percentile_ms
from kpg.bench.rolling_keys import in_words, serve, worker_counts
from kpg.bench.run import Run
from kpg.bench.warm_workers import warm_database

KEYS, UPDATES_PER_SECOND, SECONDS = 10_000_000, 1_000_000, 4.0
LOADS = {"": 1, ", 4 times the load": 4}


def run(run: Run) -> None:
    """Serve the same load on more and more workers."""
    rate = max(2_000, UPDATES_PER_SECOND * min(1.0, run.scale * 10))
    for load, times in LOADS.items():
        tails = []
        for workers in worker_counts(run):
            case = in_words(workers) + load
            run.progress(case, 0, 0)
            with warm_database(workers) as db:
                seconds = run.scaled_rounds(1000, least=30) / 1000 * SECONDS
                served = serve(run, db, run.size(KEYS, least=100), times * rate, seconds)
            run.latencies(case, served.latencies, saturated=served.saturated)
            tails.append(percentile_ms(served.latencies, 99))
        suffix = "" if times == 1 else f"_at_{times}_times_the_load"
        run.figure(f"p99_of_one_by_p99_of_most{suffix}", tails[0] / tails[-1])


EXPERIMENT = Experiment(
    id="X12",
    title="arrange: strong scaling",
    paper="Shared Arrangements, figure 7b",
    claim="More workers shorten the tail under a fixed load.",
    size="10M keys, 1M updates/s (the paper's size) and 4M, 1 worker up to the cores",
    printed=(PaperFigure("p99 on 1 worker", "500 ms"), PaperFigure("p99 on 8 workers", "6 ms")),
    memory=lambda scale: int(2.0e9 * scale + 6e8),
    run=run,
)
