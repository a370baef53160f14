"""X12: do more workers make the tail shorter, under the same load?

10M keys, on one worker and on as many as the machine has cores: with the paper's 1M updates a second, and with four
times as many, since what one of its workers hardly bore leaves one of ours mostly idle.
"""

from __future__ import annotations

import os

from kpg.bench.clocks import percentile_ms
from kpg.bench.experiment import Experiment, Printed
from kpg.bench.rolling import serve
from kpg.bench.run import Run
from kpg.bench.warming import opened

KEYS, UPDATES_PER_SECOND, SECONDS = 10_000_000, 1_000_000, 4.0
LOADS = {"": 1, ", 4 times the load": 4}


def run(run: Run) -> None:
    """The same load on more and more workers."""
    numbers = numbers_of_workers(run)
    rate = max(2_000, UPDATES_PER_SECOND * min(1.0, run.scale * 10))
    for load, times in LOADS.items():
        tails = []
        for workers in numbers:
            case = named(workers) + load
            run.say(case, 0, 0)
            with opened(workers) as db:
                seconds = run.rounds(1000, least=30) / 1000 * SECONDS
                served = serve(run, db, run.size(KEYS, least=100), times * rate, seconds)
            run.latencies(case, served.latencies, saturated=served.saturated)
            tails.append(percentile_ms(served.latencies, 99))
        at = "" if times == 1 else f"_at_{times}_times_the_load"
        run.figure(f"p99_of_one_by_p99_of_most{at}", tails[0] / tails[-1])


def numbers_of_workers(run: Run) -> list[int]:
    """1, 2, 4, ... up to the cores, or what was asked for; only one where the data are too few for a process."""
    most = (run.workers or os.cpu_count() or 1) if run.scale >= 0.001 else 1
    found = [1 << each for each in range(most.bit_length())]
    return found if found[-1] == most else [*found, most]


def named(workers: int) -> str:
    """So many workers, in words."""
    return "1 worker" if workers == 1 else f"{workers} workers"


EXPERIMENT = Experiment(
    id="X12",
    title="arrange: strong scaling",
    paper="Shared Arrangements, figure 7b",
    claim="More workers shorten the tail under a fixed load.",
    size="10M keys, 1M updates/s (the paper's size) and 4M, 1 worker up to the cores",
    printed=(Printed("p99 on 1 worker", "500 ms"), Printed("p99 on 8 workers", "6 ms")),
    memory=lambda scale: int(2.0e9 * scale + 6e8),
    run=run,
)
