"""Merge two adjacent batches into one, a bit at a time, compacting to a since.

    result  =  consolidate({(d, representative(since, t), r)  |  (d, t, r) in either})        [lower of older, upper of newer)

so for every time beyond `since` the result accumulates as the two did; without readers (an empty since) it is empty.
A merge is made, then given fuel; both inputs stay readable until it is done. One side may be empty: that compacts the other.
Cost: one pass over both, at most the fuel (in rows) for each call of `work`.
"""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Ints, Updates, no_updates
from kpg.kernels.advance import advance
from kpg.kernels.consolidate import uniform
from kpg.kernels.merge import merge, slide
from kpg.trace.batch import Batch
from kpg.trace.description import Description, elements

ALL = 1 << 62  # more fuel than any merge needs


class _Room:
    """A block being written, of which only the first columns will be used."""

    __slots__ = ("flat", "block")

    def __init__(self, lanes: int, columns: int) -> None:
        self.flat = np.empty(lanes * columns, np.int64)
        self.block: Ints | None = self.flat.reshape(lanes, columns)

    def used(self, columns: int) -> Ints:
        """The first columns, in no more memory than they need; nothing can be written any more."""
        assert self.block is not None
        lanes, room = self.block.shape
        if columns == room:
            return self.block
        slide(self.flat, lanes, room, columns)
        self.block = None  # nothing else may look at the memory that is given back
        self.flat.resize(lanes * columns, refcheck=False)
        return self.flat.reshape(lanes, columns)


class _Running:
    """Two sorted updates being merged: the outputs so far, and how far each was read."""

    __slots__ = ("a", "b", "frontier", "time", "settling", "data", "times", "diffs", "state")

    def __init__(self, a: Updates, b: Updates, frontier: Ints, time: Ints | None) -> None:
        """`time` is the representative of all times, if there is only one."""
        self.a, self.b = (a, b) if a.data.shape[0] else (_with_lane(a), _with_lane(b))
        self.frontier, self.time = frontier, time
        self.settling = 1 if len(frontier) and (time is None or a.times.shape[1] > 1 or b.times.shape[1] > 1) else 0
        rows = a.data.shape[1] + b.data.shape[1]
        self.data = _Room(self.a.data.shape[0], rows)
        self.times = _Room(a.times.shape[0], 0 if time is not None else rows)
        self.diffs = _Room(a.diffs.shape[0], rows)
        self.state = np.array((0, 0, 0, 0, 0 if _one_diff(a, b) else 1), np.int64)

    def work(self, fuel: int) -> int:
        """Read about `fuel` rows; returns how many."""
        a, b = self.a, self.b
        read: int = merge(
            a.data, a.times, a.diffs, b.data, b.times, b.diffs, self.frontier,
            1 if self.time is None else 0, self.settling, self.data.block, self.times.block, self.diffs.block, self.state, fuel,
        )  # fmt: skip
        return read

    def finish(self) -> Updates:
        """What was merged."""
        _, _, kept, _, written = self.state.tolist()
        lanes, depth, width = self.a.data.shape[0], self.a.times.shape[0], self.a.diffs.shape[0]
        if kept == 0:
            return no_updates(lanes, depth, width)
        times = self.time if self.time is not None else _used(self.times, kept)
        constant = self.a.diffs if self.a.data.shape[1] else self.b.diffs
        return Updates(self.data.used(kept), times, _used(self.diffs, kept) if written else constant)


def _used(room: _Room, kept: int) -> Ints:
    """The first columns, or one of them if they are alike."""
    assert room.block is not None
    return room.block[:, :1].copy() if uniform(room.block, kept) else room.used(kept)


def _with_lane(updates: Updates) -> Updates:
    """The same, with a lane of zeros: the kernel wants one."""
    return Updates(np.zeros((1, len(updates)), np.int64), updates.times, updates.diffs)


def _without_lane(updates: Updates) -> Updates:
    """The same without any lane."""
    return Updates(np.empty((0, len(updates)), np.int64), updates.times, updates.diffs)


def _one_diff(a: Updates, b: Updates) -> bool:
    """Whether all diffs are one and the same."""
    if len(a) == 0 or len(b) == 0:
        return (b if len(a) == 0 else a).diffs.shape[1] == 1
    return a.diffs.shape[1] == 1 == b.diffs.shape[1] and bool((a.diffs == b.diffs).all())


def merge_updates(a: Updates, b: Updates) -> Updates:
    """Two sorted and consolidated updates as one, times unchanged."""
    if len(a) == 0 or len(b) == 0:
        return a if len(b) == 0 else b
    same = a.times.shape[1] == 1 == b.times.shape[1] and bool((a.times == b.times).all())
    running = _Running(a, b, np.empty((0, a.depth), np.int64), a.times if same else None)
    running.work(ALL)
    return _without_lane(running.finish()) if a.lanes == 0 else running.finish()


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
        time = one_time(self.older, self.newer, since, frontier)
        if time is not None and len(b) == 0 and a.times.shape[1] == 1:  # nothing can cancel: only the time moves
            self._done(Updates(a.data, time, a.diffs))
            return
        if since.precedes(self.older.lower):
            frontier = frontier[:0]  # every time is its own representative
        self._running = _Running(a, b, frontier, time)

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
            updates = self._running.finish()
            self._done(updates if self.older.updates.lanes else _without_lane(updates))
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


def one_time(older: Batch, newer: Batch, since: Frontier, frontier: Ints) -> Ints | None:
    """The one representative of all times of two batches, where that is known without looking at each."""
    times = [_constant_time(batch, since, frontier) for batch in (older, newer) if len(batch)]
    if len(times) == 2 and (times[0] is None or times[1] is None or not (times[0] == times[1]).all()):
        return None
    return times[0]


def _constant_time(batch: Batch, since: Frontier, frontier: Ints) -> Ints | None:
    times = batch.updates.times
    if times.shape[1] == 1:
        out = np.empty_like(times)
        advance(times, frontier, out)
        return out
    if times.shape[0] == 1 and batch.upper:  # total order: all times are before the upper, or were moved to the since
        last = max(batch.upper.elements[0][0] - 1, batch.since.elements[0][0] if batch.since else 0)
        if last <= since.elements[0][0]:
            return frontier
    return None
