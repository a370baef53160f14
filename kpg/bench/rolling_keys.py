"""A collection of keys that changes all the time and keeps its size: the newest keys enter, the oldest leave.

    after n steps the collection is  keys[n : n + size]

Each step is two updates. A key is a function of its number, so each worker creates its own share of the load, as in
the papers. Cost: a few operations a key.
"""

from __future__ import annotations

import os

import numpy as np

from kpg.api.contracts import Arrangement, Database, Input
from kpg.bench.data.graphs import Ints
from kpg.bench.measure import settle
from kpg.bench.open_loop import TICK_SECONDS, ServedLoad, open_loop
from kpg.bench.run import Run

UPDATES_PER_STEP = 2
REHEARSED_ROLLS = 10
LEAST_SCALE_FOR_WORKERS = 0.001  # below, the data are too few for a process


def keys_of(numbers: Ints, size: int, seed: int) -> Ints:
    """Return a key below `size` for each number: the finaliser of splitmix64."""
    mixed = (numbers + (seed << 32)).astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed % np.uint64(size)).astype(np.int64)


def share(worker: int, workers: int, first: int, last: int, size: int, seed: int) -> dict[str, Ints]:
    """Return a worker's share of the keys with numbers from `first` to before `last`."""
    return {"k": keys_of(np.arange(first + worker, last, workers), size, seed)}


class Rolling:
    """The position of the collection in its stream of keys."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.done = 0

    def load(self, relation: Input) -> None:
        """Insert the keys of the start."""
        relation.insert_made(share, first=0, last=self.size, size=self.size, seed=self.seed)

    def roll(self, relation: Input, steps: int) -> None:
        """Insert `steps` new keys and remove as many old ones."""
        first, last = self.done, self.done + steps
        relation.insert_made(share, first=self.size + first, last=self.size + last, size=self.size, seed=self.seed)
        relation.remove_made(share, first=first, last=last, size=self.size, seed=self.seed)
        self.done = last

    def present(self) -> Ints:
        """Return all keys that are present now."""
        return keys_of(np.arange(self.done, self.done + self.size), self.size, self.seed)

    def is_held_by(self, arrangement: Arrangement) -> bool:
        """Return whether an arrangement holds exactly the present keys."""
        keys = arrangement.scan()["k"].to_numpy()
        return bool(np.array_equal(np.sort(keys), np.sort(self.present())))


def begin(db: Database, rolling: Rolling) -> tuple[Input, Arrangement]:
    """Load the relation and its arrangement, and let all merges finish."""
    relation = db.input("r", k=int)
    arrangement = relation.arrange("k")
    rolling.load(relation)
    db.advance()
    for _ in range(REHEARSED_ROLLS):  # each worker loads its code on first use
        rolling.roll(relation, 100)
        db.advance()
    settle(db)
    return relation, arrangement


def serve(run: Run, db: Database, size: int, updates_per_second: float, seconds: float) -> ServedLoad:
    """Offer updates to an arrangement of `size` keys, and check its content at the end."""
    ticks = max(10, round(seconds / TICK_SECONDS))
    steps = [round(tick * updates_per_second * TICK_SECONDS / UPDATES_PER_STEP) for tick in range(ticks + 1)]
    rolling = Rolling(size, run.seed)
    relation, arrangement = begin(db, rolling)

    def work(first: int, last: int) -> None:
        rolling.roll(relation, steps[last] - steps[first])
        db.advance()

    served = open_loop(work, ticks)
    run.check(rolling.is_held_by(arrangement), f"the arrangement of {size:,} keys after {rolling.done:,} steps")
    return served


def worker_counts(run: Run) -> list[int]:
    """Return 1, 2, 4, ... up to the number of cores or `--workers`; only 1 for very small data."""
    most = (run.workers or os.cpu_count() or 1) if run.scale >= LEAST_SCALE_FOR_WORKERS else 1
    counts = [1 << exponent for exponent in range(most.bit_length())]
    return counts if counts[-1] == most else [*counts, most]


def in_words(workers: int) -> str:
    """Return a number of workers in words."""
    return "1 worker" if workers == 1 else f"{workers} workers"
