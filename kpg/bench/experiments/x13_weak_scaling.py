"""X13: do latencies stay when workers, keys and load grow together?"""

from __future__ import annotations

from kpg.bench.clocks import percentile_ms
from kpg.bench.experiment import Experiment, Printed
from kpg.bench.experiments.x12_strong_scaling import SECONDS, named, numbers_of_workers
from kpg.bench.rolling import serve
from kpg.bench.run import Run
from kpg.bench.warming import opened

KEYS, UPDATES_PER_SECOND = 2_500_000, 250_000  # for each worker


def run(run: Run) -> None:
    """As much for each worker."""
    tails = []
    for workers in numbers_of_workers(run):
        run.say(named(workers), 0, 0)
        rate = workers * max(2_000, UPDATES_PER_SECOND * min(1.0, run.scale * 10))
        keys = workers * run.size(KEYS, least=100)
        with opened(workers) as db:
            served = serve(run, db, keys, rate, run.rounds(1000, least=30) / 1000 * SECONDS)
        name = f"{named(workers)}, {keys:,} keys, {rate:,.0f} updates/s"
        run.latencies(name, served.latencies, saturated=served.saturated)
        tails.append(percentile_ms(served.latencies, 99))
    run.figure("p99_of_most_by_p99_of_one", tails[-1] / tails[0])


EXPERIMENT = Experiment(
    id="X13",
    title="arrange: weak scaling",
    paper="Shared Arrangements, figure 7c",
    claim="With workers, keys and load growing together, tails grow at first and then stay.",
    size="2.5M keys and 250k updates/s for each worker (the paper: 10M and 1M, --scale 4)",
    printed=(Printed("p99 as workers grow", "stays at 100 to 200 ms"),),
    memory=lambda scale: int(1.5e9 * scale + 6e8),
    run=run,
)
