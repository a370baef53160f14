"""X14: how many updates a second go through batch formation, trace maintenance and a maintained count?

Batches of 10,000 updates for each worker, the next as soon as one is accepted. Batch formation is the batcher alone,
in all workers at the same time. Beside the maintenance of two workers stands what two processes reach that exchange
nothing, each with half of the keys.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import Experiment, PaperFigure, at_least
from kpg.bench.peers.peer_process import PeerProcess
from kpg.bench.rolling_keys import UPDATES_PER_STEP, Rolling, begin, in_words, worker_counts
from kpg.bench.run import Run
from kpg.bench.warm_workers import warm_database
from kpg.columns.updates import Updates, constant
from kpg.errors import WrongAnswer
from kpg.trace.batcher import Batcher

KEYS, BATCH, BATCHES = 1_000_000, 10_000, 500
APART_TIMEOUT_SECONDS = 600.0
PARTS = ("batch formation", "maintenance", "count")


def run(run: Run) -> None:
    """Measure the three parts, on one worker and on more."""
    keys, batch, batches = run.size(KEYS, least=100), run.size(BATCH, least=20), run.scaled_rounds(BATCHES)
    rates: dict[str, list[float]] = {}
    counts = worker_counts(run)
    for workers in counts:
        for part in PARTS:
            run.progress(f"{part}, {in_words(workers)}", 0, 0)
            if part == "batch formation":
                rate = formation(run, workers, keys, batch, batches)
            else:
                rate = throughput(run.seed, part, workers, keys, batch * workers // UPDATES_PER_STEP, batches)
            rates.setdefault(part, []).append(rate)
            run.record(f"{part}, {in_words(workers)}", updates_per_second=rate)
    if counts[-1] > 1:
        apart = rate_apart(run, "maintenance", counts[-1], keys, batch // UPDATES_PER_STEP, batches)
        run.record(f"maintenance, {counts[-1]} processes that exchange nothing", updates_per_second=apart)
    for part, part_rates in rates.items():
        run.figure(f"{part.replace(' ', '_')}_rate_of_most_workers_by_one", part_rates[-1] / part_rates[0])
        points = [(float(workers), rate) for workers, rate in zip(counts, part_rates, strict=True)]
        run.line("throughput", part, points, x="workers", y="updates/s")


def formation(run: Run, workers: int, keys: int, batch: int, batches: int) -> float:
    """Return the updates a second that become sorted, consolidated batches, in all workers together."""
    options = {"seed": run.seed, "keys": keys, "batch": batch, "batches": batches}
    if workers == 1:
        columns = [column.tolist() for column in formed(0, 1, **options).values()]
    else:
        with warm_database(workers) as db:
            relation: Any = db.input("formed", begin=int, end=int, missing=int)
            output = relation.output("found")
            relation.insert_made(formed, **options)
            db.advance()
            columns = [list(column) for column in zip(*output.rows(), strict=True)]
    begin, end, missing = (list(map(int, column)) for column in columns)
    run.check(len(missing) == workers and not any(missing), "batches hold each key once")
    return workers * batches * batch / (max(end) - min(begin)) * 1e9


def formed(rank: int, workers: int, seed: int, keys: int, batch: int, batches: int) -> dict[str, Ints]:
    """Form batches in a worker; return when it began and ended, in nanoseconds, and the keys missing in its batches."""
    rows = np.random.default_rng((seed, rank)).integers(0, keys, (batches, 1, batch))
    batcher, sealed = Batcher(lanes=1, depth=1), 0
    begin = time.monotonic_ns()
    for epoch in range(batches):
        batcher.push(Updates(rows[epoch], constant((epoch,)), constant((1,))))
        sealed += len(batcher.seal(Frontier.at((epoch + 1,))))
    end = time.monotonic_ns()
    missing = sum(len(np.unique(keys)) for keys in rows) - sealed
    return {"begin": np.array([begin]), "end": np.array([end]), "missing": np.array([missing])}


def rate_apart(run: Run, part: str, processes: int, keys: int, steps: int, batches: int) -> float:
    """Return the updates a second of some processes together, each with one worker and its share of the keys."""
    with ExitStack() as stack, ThreadPoolExecutor(processes) as pool:
        peers = [stack.enter_context(PeerProcess(APART_TIMEOUT_SECONDS)) for _ in range(processes)]
        for peer in peers:
            peer.ask(throughput, run.seed, part, 1, 100, 1, 3)
        share = max(100, keys // processes)
        rates: list[float] = list(
            pool.map(lambda peer: peer.ask(throughput, run.seed, part, 1, share, steps, batches), peers)
        )
        return sum(rates)


def throughput(seed: int, part: str, workers: int, keys: int, steps: int, batches: int) -> float:
    """Return the updates a second that are arranged, and for the count also counted by key."""
    steps = max(1, steps)
    rolling = Rolling(keys, seed)
    with warm_database(workers) as db:
        relation, arrangement = begin(db, rolling)
        counted = arrangement.count("k").output("counts") if part == "count" else None
        db.advance()
        began = time.perf_counter()
        for _ in range(batches):
            rolling.roll(relation, steps)
            db.advance()
        seconds = time.perf_counter() - began
        if not rolling.is_held_by(arrangement):
            raise WrongAnswer("X14: the arrangement after all batches")
        if counted is not None:
            table = counted.snapshot()
            expected = np.bincount(rolling.present(), minlength=keys)
            counts = np.zeros(keys, np.int64)
            counts[table["k"].to_numpy()] = table["count"].to_numpy()
            if not (counts == expected).all():
                raise WrongAnswer("X14: the counts after all batches")
    return UPDATES_PER_STEP * steps * batches / seconds


EXPERIMENT = Experiment(
    id="X14",
    title="arrange: throughput of its parts",
    paper="Shared Arrangements, figure 7d",
    claim="Batch formation, trace maintenance and a count all scale linearly to 32 workers.",
    size="1M keys, batches of 10,000 updates a worker (the paper: 10M keys, --scale 10)",
    printed=(PaperFigure("all parts", "linear to 32 workers"),),
    memory=lambda scale: int(4e8 * scale + 6e8),
    run=run,
    limits=(at_least("maintenance_rate_of_most_workers_by_one", 1.3),),
)
