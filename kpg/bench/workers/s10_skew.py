"""S10: what does a hot key cost two workers, one with half of all rows, or with half of all pairs?

All rows of a key belong to one worker, so a hot key could keep one worker busy while the other waits. Wall time until
the answer is complete, each worker making its share of the input, beside one worker; and the CPU time of the busier of
two workers, which holds on a machine that does other work.
"""

from __future__ import annotations

import kpg
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import wall_stopwatch
from kpg.bench.run import Reference, Run
from kpg.bench.warm_workers import warm_database
from kpg.bench.workers import worker_shares
from kpg.bench.workers.s01_scaling import WORKERS, ScalingCase, Sizes, call_workers, complete
from kpg.bench.workers.work_counting import CountingStopwatch

REPEATS = 3
MAX_RATIO = 1.1


def cases(size: Sizes) -> list[ScalingCase]:
    """Return a count, a join with a relation of one row a key, and a join of two relations with the same hot key."""
    rows, keys, pairs = size(4_000_000), size(1_000_000), size(400_000)
    hot = max(1, round(rows**0.5))  # hot × hot pairs of one key; the other keys have about as many together
    skewed = {"r": (worker_shares.share_of_skewed, {"rows": rows, "distinct": keys, "hot": rows // 2, "value": "v"})}
    dimension = {"s": (worker_shares.share_of_side, {"rows": keys, "seed": 2, "value": "w"})}
    hubs = {
        name: (
            worker_shares.share_of_skewed,
            {"rows": pairs, "distinct": max(1, pairs // 10), "hot": min(hot, pairs // 2), "value": value},
        )
        for name, value in (("r", "v"), ("s", "w"))
    }
    return [
        ScalingCase("count, one key with half of the rows", skewed, lambda r: r.count("k")),
        ScalingCase(
            "join, one key with half of the rows", {**skewed, **dimension}, lambda r, s: r.join(s, on="k").count("w")
        ),
        ScalingCase(
            "join, one key with half of the pairs",
            hubs,
            lambda r, s: r.join(s, on="k").select(v="v", w="w").count("v"),
        ),
    ]


def run(run: Run) -> None:
    """Measure each query on one worker and on two."""
    with kpg.open() as alone, kpg.open(workers=WORKERS) as together:
        call_workers(together, worker_shares.load_worker_kernels)
        for case in cases(run.size):
            one, two = wall_stopwatch(f"{case.name}, one"), wall_stopwatch(f"{case.name}, two")
            for _ in range(run.fixed_rounds(REPEATS)):
                checksum = complete(case, alone, True, one)
                run.check(complete(case, together, True, two) == checksum, f"{case.name} on two workers")
            busiest = [busiest_seconds(run, case, workers) for workers in (1, WORKERS)]
            run.report(
                case.name,
                f"at most {MAX_RATIO} times the time of one worker",
                [at_most("ratio", MAX_RATIO)],
                Reference("one worker, embedded", one.least),
                seconds=two.least,
                rows=checksum[0],
                busier_worker_cpu_s=busiest[1],
                busier_worker_cpu_ratio=busiest[1] / busiest[0],
            )


def busiest_seconds(run: Run, case: ScalingCase, workers: int) -> float:
    """Return the CPU seconds of the worker with the most, the least of some repetitions."""
    seconds = []
    with warm_database(workers) as db:
        for _ in range(run.fixed_rounds(REPEATS)):
            stopwatch = CountingStopwatch(db)
            complete(case, db, True, stopwatch)
            assert stopwatch.work is not None
            seconds.append(max(totals.cpu_seconds for totals in stopwatch.work.totals))
    return min(seconds)


EXPERIMENT = engine_experiment(
    "S10",
    "hot keys on two workers",
    "4M rows, or 8M pairs, half of them of one key",
    lambda scale: int(3e9 * scale + 8e8),
    run,
)
