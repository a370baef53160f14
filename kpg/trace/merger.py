"""Merge two adjacent batches into one, a bit at a time, compacting to a since.

    result  =  consolidate({(d, representative(since, t), r)  |  (d, t, r) in either})        [lower of older, upper of newer)

so for every time beyond `since` the result accumulates as the two did; without readers (an empty since) it is empty.
A merge is made, then given fuel; both inputs stay readable until it is done. One side may be empty: that compacts the other.
Cost: one pass over both, at most the fuel (in rows) for each call of `work`.
"""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.consolidate import shrunk
from kpg.columns.updates import Ints, Updates, no_updates, trim
from kpg.kernels.advance import advance
from kpg.kernels.merge import merge_data, merge_times
from kpg.trace.batch import Batch
from kpg.trace.description import Description, elements

ALL = 1 << 62  # more fuel than any merge needs


class _Running:
    """Two sorted updates being merged: the outputs so far and how far each was read."""

    __slots__ = ("a", "b", "frontier", "time", "data", "times", "diffs", "state", "rows")

    def __init__(self, a: Updates, b: Updates, frontier: Ints, time: Ints | None) -> None:
        self.a, self.b, self.frontier, self.time = a, b, frontier, time
        self.rows = rows = a.data.shape[1] + b.data.shape[1]
        self.data = np.empty((a.data.shape[0], rows), np.int64)
        self.times = np.empty((a.times.shape[0], 1 if time is not None else rows), np.int64)
        self.diffs = np.empty((a.diffs.shape[0], rows), np.int64)
        self.state = np.zeros(4, np.int64)

    def work(self, fuel: int) -> int:
        a, b = self.a, self.b
        if self.time is not None:
            return int(merge_data(a.data, a.diffs, b.data, b.diffs, self.data, self.diffs, self.state, fuel))
        return int(
            merge_times(
                a.data, a.times, a.diffs, b.data, b.times, b.diffs, self.frontier,
                self.data, self.times, self.diffs, self.state, fuel,
            )
        )  # fmt: skip

    def finish(self) -> Updates:
        kept = int(self.state[2])
        if kept == 0:
            return no_updates(self.a.lanes, self.a.depth, self.a.width)
        times = self.time if self.time is not None else shrunk(self.times, kept)
        return Updates(trim(self.data, kept), times, shrunk(self.diffs, kept))


def merge_updates(a: Updates, b: Updates) -> Updates:
    """Two sorted and consolidated updates as one, times unchanged."""
    if len(a) == 0 or len(b) == 0:
        return a if len(b) == 0 else b
    same = a.times.shape[1] == 1 == b.times.shape[1] and bool((a.times == b.times).all())
    running = _Running(a, b, np.empty((0, a.depth), np.int64), a.times if same else None)
    running.work(ALL)
    return running.finish()


class Merge:
    """A merge of two adjacent batches under way."""

    __slots__ = ("older", "newer", "description", "_running", "_result", "_left")

    def __init__(self, older: Batch, newer: Batch, since: Frontier) -> None:
        assert older.upper.precedes(newer.lower), "only adjacent batches merge"
        self.older, self.newer = older, newer
        self.description = Description(older.lower, newer.upper, since)
        self._result: Batch | None = None
        self._running: _Running | None = None
        self._left = len(older) + len(newer)
        self._begin(older.updates, newer.updates, since)

    def _begin(self, a: Updates, b: Updates, since: Frontier) -> None:
        if not since or self._left == 0:
            self._done(no_updates(a.lanes, a.depth, a.width))
            return
        frontier = elements(since, a.depth)
        a_time = constant_time(self.older, since, frontier)
        b_time = constant_time(self.newer, since, frontier)
        if a_time is not None and len(b) == 0:  # nothing can cancel: only the time moves
            self._done(Updates(a.data, a_time, a.diffs))
        elif b_time is not None and len(a) == 0:
            self._done(Updates(b.data, b_time, b.diffs))
        else:
            same = a_time is not None and b_time is not None and bool((a_time == b_time).all())
            self._running = _Running(a, b, frontier, a_time if same else None)

    def _done(self, updates: Updates) -> None:
        self._result = Batch(updates, self.older.key_lanes, self.description)
        self._running = None
        self._left = 0

    @property
    def done(self) -> bool:
        """Whether the result is there."""
        return self._result is not None

    @property
    def left(self) -> int:
        """Rows still to be read."""
        return self._left

    def work(self, fuel: int) -> int:
        """Read about `fuel` rows more; returns how many."""
        if self._running is None:
            return 0
        used = self._running.work(fuel)
        self._left -= used
        if self._left <= 0:
            self._done(self._running.finish())
        return used

    def result(self) -> Batch:
        """The merged batch, once done."""
        assert self._result is not None, "the merge is not done"
        return self._result


def merge_now(older: Batch, newer: Batch, since: Frontier) -> Batch:
    """The merge of two adjacent batches, at once."""
    merge = Merge(older, newer, since)
    merge.work(ALL)
    return merge.result()


def empty_after(batch: Batch) -> Batch:
    """A batch without updates that follows `batch`: to merge with it is to compact it."""
    updates = batch.updates
    nothing = no_updates(updates.lanes, updates.depth, updates.width)
    return Batch(nothing, batch.key_lanes, Description(batch.upper, batch.upper, batch.since))


def constant_time(batch: Batch, since: Frontier, frontier: Ints) -> Ints | None:
    """The one representative of all times of the batch, where that is known without looking at each."""
    times = batch.updates.times
    if times.shape[1] == 1:
        out = np.empty_like(times)
        advance(times, frontier, out)
        return out
    if times.shape[0] == 1 and batch.upper != CLOSED:
        last = batch.upper.elements[0][0] - 1
        if batch.since:
            last = max(last, batch.since.elements[0][0])
        if last <= since.elements[0][0]:
            return frontier
    return None
