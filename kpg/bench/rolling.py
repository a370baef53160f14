"""A collection of keys that changes all the time and stays as large: the newest keys come, the oldest go.

    after n steps the collection is  keys[n : n + size]

Each step is two updates. Cost: the keys are drawn once, at the start.
"""

from __future__ import annotations

import numpy as np

from kpg.api.arrangement import Arrangement
from kpg.api.database import Database
from kpg.api.input import Input
from kpg.bench.data.graphs import Ints
from kpg.bench.load import TICK_SECONDS, Served, open_loop
from kpg.bench.run import Run

UPDATES_A_STEP = 2
PIECE = 1_000_000  # rows handed over at once when loading


class Rolling:
    """The keys, in the order they come and go."""

    def __init__(self, size: int, steps: int, seed: int) -> None:
        self.size = size
        self.keys: Ints = np.random.default_rng(seed).integers(0, size, size + steps)
        self.done = 0

    def load(self, relation: Input) -> None:
        """Insert what is there at the start."""
        for start in range(0, self.size, PIECE):
            relation.insert(self.keys[start : min(self.size, start + PIECE)])

    def roll(self, relation: Input, steps: int) -> None:
        """So many new keys come, as many old ones go."""
        first, last = self.done, self.done + steps
        relation.insert(self.keys[self.size + first : self.size + last])
        relation.remove(self.keys[first:last])
        self.done = last

    def is_held_by(self, arrangement: Arrangement) -> bool:
        """Whether an arrangement holds just what it should."""
        found = arrangement.scan()["k"].to_numpy()
        return bool(np.array_equal(np.sort(found), np.sort(self.keys[self.done : self.done + self.size])))


def begin(db: Database, rolling: Rolling) -> tuple[Input, Arrangement]:
    """The relation with its arrangement, loaded and at rest."""
    relation = db.input("r", k=int)
    arrangement = relation.arrange("k")
    rolling.load(relation)
    db.advance()
    db.advance()
    while db.idle(10_000_000):
        pass
    return relation, arrangement


def serve(run: Run, db: Database, size: int, updates_per_second: float, seconds: float) -> Served:
    """Offer updates to an arrangement of so many keys, and check what it holds at the end."""
    ticks = max(10, round(seconds / TICK_SECONDS))
    steps = [round(each * updates_per_second * TICK_SECONDS / UPDATES_A_STEP) for each in range(ticks + 1)]
    rolling = Rolling(size, steps[-1], run.seed)
    relation, arrangement = begin(db, rolling)

    def work(first: int, last: int) -> None:
        rolling.roll(relation, steps[last] - steps[first])
        db.advance()

    served = open_loop(work, ticks)
    run.check(rolling.is_held_by(arrangement), f"the arrangement of {size:,} keys after {rolling.done:,} steps")
    return served
