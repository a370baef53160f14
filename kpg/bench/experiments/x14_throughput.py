"""X14: how many updates a second go through batch formation, trace maintenance and a maintained count?

Batches of 10,000 updates for each worker, the next as soon as one is accepted. Batch formation is the batcher alone,
in each worker at the same time.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import Experiment, Printed
from kpg.bench.experiments.x12_strong_scaling import named, numbers_of_workers
from kpg.bench.rolling import UPDATES_A_STEP, Rolling, begin
from kpg.bench.run import Run
from kpg.bench.warming import opened
from kpg.columns.updates import Updates, constant
from kpg.trace.batcher import Batcher

KEYS, BATCH, BATCHES = 1_000_000, 10_000, 500
PARTS = ("batch formation", "maintenance", "count")


def run(run: Run) -> None:
    """The three parts, on one worker and on more."""
    keys, batch, batches = run.size(KEYS, least=100), run.size(BATCH, least=20), run.rounds(BATCHES)
    rates: dict[str, list[float]] = {}
    numbers = numbers_of_workers(run)
    for workers in numbers:
        for part in PARTS:
            run.say(f"{part}, {named(workers)}", 0, 0)
            if part == "batch formation":
                found = formation(run, workers, keys, batch, batches)
            else:
                found = throughput(run, part, workers, keys, batch * workers // UPDATES_A_STEP, batches)
            rates.setdefault(part, []).append(found)
            run.record(f"{part}, {named(workers)}", updates_per_second=found)
    for part, found_rates in rates.items():
        run.figure(f"{part.replace(' ', '_')}_rate_of_most_workers_by_one", found_rates[-1] / found_rates[0])
        points = [(float(workers), rate) for workers, rate in zip(numbers, found_rates, strict=True)]
        run.line("throughput", part, points, x="workers", y="updates/s")


def formation(run: Run, workers: int, keys: int, batch: int, batches: int) -> float:
    """Updates a second that become sorted, consolidated batches, in all workers together."""
    options = {"seed": run.seed, "keys": keys, "batch": batch, "batches": batches}
    if workers == 1:
        found = [each.tolist() for each in formed(0, 1, **options).values()]
    else:
        with opened(workers) as db:
            relation: Any = db.input("formed", begin=int, end=int, missing=int)
            output = relation.output("found")
            relation.insert_made(formed, **options)
            db.advance()
            found = [list(each) for each in zip(*output.rows(), strict=True)]
    begin, end, missing = (list(map(int, each)) for each in found)
    run.check(len(missing) == workers and not any(missing), "batches hold each key once")
    return workers * batches * batch / (max(end) - min(begin)) * 1e9


def formed(rank: int, workers: int, seed: int, keys: int, batch: int, batches: int) -> dict[str, Ints]:
    """When a worker began and ended, in nanoseconds of the machine, and how many keys its batches lack."""
    rows = np.random.default_rng((seed, rank)).integers(0, keys, (batches, 1, batch))
    batcher, sealed = Batcher(lanes=1, depth=1), 0
    begin = time.monotonic_ns()
    for epoch in range(batches):
        batcher.push(Updates(rows[epoch], constant((epoch,)), constant((1,))))
        sealed += len(batcher.seal(Frontier.at((epoch + 1,))))
    end = time.monotonic_ns()
    lacking = sum(len(np.unique(each)) for each in rows) - sealed
    return {name: np.array([each]) for name, each in (("begin", begin), ("end", end), ("missing", lacking))}


def throughput(run: Run, part: str, workers: int, keys: int, steps: int, batches: int) -> float:
    """Updates a second that are arranged, or counted by key too."""
    steps = max(1, steps)
    rolling = Rolling(keys, run.seed)
    with opened(workers) as db:
        relation, arrangement = begin(db, rolling)
        counted = arrangement.count("k").output("counts") if part == "count" else None
        db.advance()
        began = time.perf_counter()
        for _ in range(batches):
            rolling.roll(relation, steps)
            db.advance()
        seconds = time.perf_counter() - began
        run.check(rolling.is_held_by(arrangement), "the arrangement after all batches")
        if counted is not None:
            table = counted.snapshot()
            expected = np.bincount(rolling.held(), minlength=keys)
            found = np.zeros(keys, np.int64)
            found[table["k"].to_numpy()] = table["count"].to_numpy()
            run.check((found == expected).all(), "the counts after all batches")
    return UPDATES_A_STEP * steps * batches / seconds


EXPERIMENT = Experiment(
    id="X14",
    title="arrange: throughput of its parts",
    paper="Shared Arrangements, figure 7d",
    claim="Batch formation, trace maintenance and a count all scale linearly to 32 workers.",
    size="1M keys, batches of 10,000 updates a worker (the paper: 10M keys, --scale 10)",
    printed=(Printed("all parts", "linear to 32 workers"),),
    memory=lambda scale: int(4e8 * scale + 6e8),
    run=run,
)
