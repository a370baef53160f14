"""A collection of keys that changes all the time and stays as large: the newest keys come, the oldest go.

    after n steps the collection is  keys[n : n + size]

Each step is two updates. A key is a function of its number, so that each worker makes its own share of the load, as in
the papers. Cost: a few operations a key.
"""

from __future__ import annotations

import numpy as np

from kpg.api.contracts import Arrangement, Database, Input
from kpg.bench.data.graphs import Ints
from kpg.bench.load import TICK_SECONDS, Served, open_loop
from kpg.bench.run import Run

UPDATES_A_STEP = 2
REHEARSALS = 10


def keys_of(numbers: Ints, size: int, seed: int) -> Ints:
    """Keys below `size`, each by its number: the finaliser of splitmix64."""
    mixed = (numbers + (seed << 32)).astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed % np.uint64(size)).astype(np.int64)


def share(worker: int, workers: int, first: int, last: int, size: int, seed: int) -> dict[str, Ints]:
    """A worker's share of the keys with numbers from `first` to before `last`."""
    return {"k": keys_of(np.arange(first + worker, last, workers), size, seed)}


class Rolling:
    """How far the collection has come."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.done = 0

    def load(self, relation: Input) -> None:
        """Insert what is there at the start."""
        relation.insert_made(share, first=0, last=self.size, size=self.size, seed=self.seed)

    def roll(self, relation: Input, steps: int) -> None:
        """So many new keys come, as many old ones go."""
        first, last = self.done, self.done + steps
        relation.insert_made(share, first=self.size + first, last=self.size + last, size=self.size, seed=self.seed)
        relation.remove_made(share, first=first, last=last, size=self.size, seed=self.seed)
        self.done = last

    def held(self) -> Ints:
        """All keys that are there now."""
        return keys_of(np.arange(self.done, self.done + self.size), self.size, self.seed)

    def is_held_by(self, arrangement: Arrangement) -> bool:
        """Whether an arrangement holds just what it should."""
        found = arrangement.scan()["k"].to_numpy()
        return bool(np.array_equal(np.sort(found), np.sort(self.held())))


def begin(db: Database, rolling: Rolling) -> tuple[Input, Arrangement]:
    """The relation with its arrangement, loaded and at rest."""
    relation = db.input("r", k=int)
    arrangement = relation.arrange("k")
    rolling.load(relation)
    db.advance()
    for _ in range(REHEARSALS):  # each worker loads its code when it first needs it
        rolling.roll(relation, 100)
        db.advance()
    while db.idle(10_000_000):
        pass
    return relation, arrangement


def serve(run: Run, db: Database, size: int, updates_per_second: float, seconds: float) -> Served:
    """Offer updates to an arrangement of so many keys, and check what it holds at the end."""
    ticks = max(10, round(seconds / TICK_SECONDS))
    steps = [round(each * updates_per_second * TICK_SECONDS / UPDATES_A_STEP) for each in range(ticks + 1)]
    rolling = Rolling(size, run.seed)
    relation, arrangement = begin(db, rolling)

    def work(first: int, last: int) -> None:
        rolling.roll(relation, steps[last] - steps[first])
        db.advance()

    served = open_loop(work, ticks)
    run.check(rolling.is_held_by(arrangement), f"the arrangement of {size:,} keys after {rolling.done:,} steps")
    return served
