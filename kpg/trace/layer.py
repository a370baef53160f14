"""One level of a spine: a batch, and the merge with the next newer batch or the compaction that is in progress, if any.

The merge policy limits the rows of a level; a merge of two batches that fit a level reads at most twice that number.
Readers see the inputs of a merge until it is done. When a newer batch arrives, a compaction in progress is abandoned,
because the merge with that batch compacts too.
"""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.trace.batch import Batch
from kpg.trace.merger import UNLIMITED, Merge, empty_after
from kpg.trace.unsorted_batch import held_updates


class Layer:
    """The batch or batches of a level, and the merge in progress."""

    __slots__ = ("level", "batch", "newer", "merge", "_negatives", "_bound")

    def __init__(self, level: int, batch: Batch) -> None:
        self.level = level
        self.newer: Batch | None = None
        self.merge: Merge | None = None
        self._set_batch(batch)

    def _set_batch(self, batch: Batch) -> None:
        self.batch = batch
        self._negatives: int | None = None
        self._bound: Frontier | None = None

    @property
    def batches(self) -> tuple[Batch, ...]:
        """The batches that a reader sees, oldest first."""
        return (self.batch,) if self.newer is None else (self.batch, self.newer)

    @property
    def rows(self) -> int:
        """The number of updates of the older batch."""
        return len(self.batch)

    @property
    def negatives(self) -> int:
        """The number of updates of the older batch with a negative diff."""
        if self._negatives is None:
            self._negatives = count_negatives(self.batch)
        return self._negatives

    def begin_merge(self, newer: Batch, since: Frontier) -> None:
        """Begin to merge the batch with a newer one."""
        assert self.newer is None, "a merge must be done before its result is needed"
        self.newer = newer
        self.merge = Merge(self.batch, newer, since)

    def begin_compaction(self, since: Frontier) -> None:
        """Begin to compact the batch without a newer one."""
        assert self.merge is None
        self.merge = Merge(self.batch, empty_after(self.batch), since)

    def finish(self) -> None:
        """Replace the inputs of the merge, which must be done, by its result."""
        assert self.merge is not None
        self._set_batch(self.merge.result())
        self.newer = self.merge = None

    def complete(self) -> Batch:
        """Do all that is left of the merge, if there is one, and return the batch."""
        if self.merge is not None:
            self.merge.work(UNLIMITED)
            self.finish()
        return self.batch

    def needs_compaction(self, since: Frontier) -> bool:
        """Return whether `since` has passed the batch, and the batch was last compacted to an earlier frontier."""
        if self._bound is None:
            self._bound = compaction_bound(self.batch)
        return self._bound.precedes(since) and not self._bound.precedes(self.batch.since)


def compaction_bound(batch: Batch) -> Frontier:
    """Return the least since such that a compaction to it is the last that the batch needs: the upper, unless empty."""
    if batch.upper:
        return batch.upper
    times = batch.updates.times
    last = int(times[0].max()) if times.shape[0] and times.shape[1] else 0
    return Frontier.at((last + 1,) + (0,) * (times.shape[0] - 1))


def count_negatives(batch: Batch) -> int:
    """Count the updates with a negative diff: one with a negative first nonzero lane."""
    diffs = held_updates(batch)[0].diffs  # an unsorted batch has one for all of its updates
    negative = diffs[-1] < 0
    for lane in diffs[-2::-1] if diffs.shape[0] > 1 else ():
        negative = (lane < 0) | ((lane == 0) & negative)
    count = int(np.count_nonzero(negative))
    return count * len(batch) if diffs.shape[1] == 1 else count
