"""One level of a spine: a batch, perhaps being merged with the next newer one, or compacted alone.

    level k has room for ROOM_ROWS << k rows; a merge of two batches that fit it reads at most twice that

Readers see the batches that go into a merge until it is done. A compaction alone is given up when a newer batch comes,
because merging with that compacts as well.
"""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.trace.batch import Batch
from kpg.trace.merger import ALL, Merge, empty_after

TAIL_ROWS = 4096  # what is smaller waits in the tail
ROOM_ROWS = 2 * TAIL_ROWS  # a tail and what made it overflow


def room_of(level: int) -> int:
    """How many rows a batch of a level has at most."""
    return ROOM_ROWS << level


def level_of(rows: int) -> int:
    """The lowest level with room for so many rows."""
    return ((rows - 1) // ROOM_ROWS).bit_length() if rows > ROOM_ROWS else 0


class Layer:
    """A level's batch or batches, and the merge under way."""

    __slots__ = ("level", "batch", "newer", "merge", "_negatives", "_bound")

    def __init__(self, level: int, batch: Batch) -> None:
        self.level = level
        self.newer: Batch | None = None
        self.merge: Merge | None = None
        self._put(batch)

    def _put(self, batch: Batch) -> None:
        self.batch = batch
        self._negatives: int | None = None
        self._bound: Frontier | None = None

    @property
    def batches(self) -> tuple[Batch, ...]:
        """What a reader sees."""
        return (self.batch,) if self.newer is None else (self.batch, self.newer)

    @property
    def rows(self) -> int:
        """How many updates the batch has."""
        return len(self.batch)

    @property
    def negatives(self) -> int:
        """How many rows of the batch have a negative diff."""
        if self._negatives is None:
            self._negatives = count_negatives(self.batch)
        return self._negatives

    def join(self, newer: Batch, since: Frontier) -> None:
        """Begin to merge with a newer batch."""
        assert self.newer is None, "a merge must be done before its result is needed"
        self.newer = newer
        self.merge = Merge(self.batch, newer, since)

    def compact(self, since: Frontier) -> None:
        """Begin to compact the batch alone."""
        assert self.merge is None
        self.merge = Merge(self.batch, empty_after(self.batch), since)

    def finish(self) -> None:
        """Replace the batches by the result of the merge, which is done."""
        assert self.merge is not None
        self._put(self.merge.result())
        self.newer = self.merge = None

    def complete(self) -> Batch:
        """The batch, whatever it takes."""
        if self.merge is not None:
            self.merge.work(ALL)
            self.finish()
        return self.batch

    def unsettled(self, since: Frontier) -> bool:
        """Whether the since has passed the batch, which was never compacted so far."""
        if self._bound is None:
            self._bound = passed_at(self.batch)
        return self._bound.precedes(since) and not self._bound.precedes(self.batch.since)


def passed_at(batch: Batch) -> Frontier:
    """The frontier from which a compaction of the batch is the last it needs."""
    if batch.upper:
        return batch.upper
    times = batch.updates.times
    last = int(times[0].max()) if times.shape[0] and times.shape[1] else 0
    return Frontier.at((last + 1,) + (0,) * (times.shape[0] - 1))


def count_negatives(batch: Batch) -> int:
    """How many rows have a diff whose first lane that is not zero is negative."""
    diffs = batch.updates.diffs
    negative = diffs[-1] < 0
    for lane in diffs[-2::-1] if diffs.shape[0] > 1 else ():
        negative = (lane < 0) | ((lane == 0) & negative)
    count = int(np.count_nonzero(negative))
    return count * len(batch) if diffs.shape[1] == 1 else count
