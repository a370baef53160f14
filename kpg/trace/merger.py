"""Merge two adjacent batches into one, a bit at a time, compacting to a since.

    result  =  consolidate({(d, representative(since, t), r)  |  (d, t, r) in older or newer})

covers [lower of older, upper of newer), so for every time beyond `since` it accumulates as the two did; without
readers (an empty since) it is empty. A merge is made, then given fuel; both inputs stay readable until it is done.
One side may be empty: that compacts the other. Times or diffs that come out equal become constants. Cost: one pass
over both, at most the fuel (in rows) for each call of `work`.
"""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate_all
from kpg.columns.output_buffer import room, used
from kpg.columns.updates import Ints, Updates, no_updates
from kpg.kernels.advance_times import advance
from kpg.kernels.consolidate_rows import uniform
from kpg.kernels.merge_runs import FROM_A, FROM_B, merge
from kpg.trace.batch import Batch
from kpg.trace.description import Description, elements

ALL = 1 << 62  # more fuel than any merge needs


class _Running:
    """Two sorted updates being merged: the outputs so far, and how far each was read."""

    __slots__ = ("_a", "_b", "_frontier", "_lone", "_data", "_times", "_diffs", "_state")

    def __init__(self, a: Updates, b: Updates, frontier: Ints, lone: int) -> None:
        self._a, self._b, self._frontier, self._lone = a, b, frontier, lone
        rows = a.data.shape[1] + b.data.shape[1]
        self._data: Ints | None = room(a.data.shape[0], rows)
        self._times: Ints | None = room(a.times.shape[0], rows)
        self._diffs: Ints | None = room(a.diffs.shape[0], rows)
        self._state = np.zeros(8, np.int64)

    def work(self, fuel: int) -> int:
        """Read about `fuel` rows; returns how many."""
        a, b = self._a, self._b
        read: int = merge(
            a.data, a.times, a.diffs, b.data, b.times, b.diffs, self._frontier, self._lone,
            self._data, self._times, self._diffs, self._state, fuel,
        )  # fmt: skip
        return read

    def finish(self) -> Updates:
        """What was merged, in no more memory than it needs; to be called once."""
        _, _, kept, _, written, timed, _, _ = self._state.tolist()
        data, times, diffs = self._data, self._times, self._diffs
        assert data is not None and times is not None and diffs is not None
        self._data = self._times = self._diffs = None  # nothing else may look at memory that is given back
        if kept == 0:
            return no_updates(data.shape[0], times.shape[0], diffs.shape[0])
        if not timed or uniform(times, kept):
            times = times[:, :1].copy()
        else:
            times = used(times, kept)
        if not written:
            diffs = self._a.diffs if self._a.data.shape[1] else self._b.diffs
        elif uniform(diffs, kept):
            diffs = diffs[:, :1].copy()
        else:
            diffs = used(diffs, kept)
        return Updates(used(data, kept), times, diffs)


def _run(a: Updates, b: Updates, frontier: Ints, lone: int) -> Updates:
    running = _Running(a, b, frontier, lone)
    running.work(ALL)
    return running.finish()


def merge_updates(a: Updates, b: Updates) -> Updates:
    """Two sorted and consolidated updates as one, times unchanged."""
    if a.data.shape[1] == 0 or b.data.shape[1] == 0:
        return a if b.data.shape[1] == 0 else b
    frontier = np.empty((0, a.times.shape[0]), np.int64)
    if a.data.shape[0] == 0:
        return _without_lane(_run(_with_lane(a), _with_lane(b), frontier, 0))
    return _run(a, b, frontier, 0)


def _with_lane(updates: Updates) -> Updates:
    """The same, with a lane of zeros: the kernel wants one."""
    return Updates(np.zeros((1, len(updates)), np.int64), updates.times, updates.diffs)


def _without_lane(updates: Updates) -> Updates:
    """The same without any lane."""
    return Updates(np.empty((0, len(updates)), np.int64), updates.times, updates.diffs)


class Merge:
    """A merge of two adjacent batches under way."""

    __slots__ = ("older", "newer", "description", "left", "_running", "_result")

    def __init__(self, older: Batch, newer: Batch, since: Frontier) -> None:
        self.older, self.newer = older, newer
        self.description = Description(older.lower, newer.upper, since)
        self._result: Batch | None = None
        self._running: _Running | None = None
        a, b = older.updates, newer.updates
        self.left = a.data.shape[1] + b.data.shape[1]  # rows to be read
        if not since or self.left == 0:
            self._done(no_updates(a.lanes, a.depth, a.width))
        elif b.data.shape[1] == 0 and a.times.shape[1] == 1:  # nothing can cancel: only the time moves
            time = np.empty_like(a.times)
            advance(a.times, elements(since, a.depth), time)
            self._done(Updates(a.data, time, a.diffs))
        else:
            frontier, lone = _compaction(older, newer, since)
            if a.data.shape[0] == 0:
                a, b = _with_lane(a), _with_lane(b)
            self._running = _Running(a, b, frontier, lone)

    def _done(self, updates: Updates) -> None:
        self._result = Batch(updates, self.older.key_lanes, self.description)
        self._running = None
        self.left = 0

    @property
    def done(self) -> bool:
        """Whether the result is there."""
        return self._result is not None

    def work(self, fuel: int) -> int:
        """Read about `fuel` rows more; returns how many."""
        if self._running is None:
            return 0
        used = self._running.work(fuel)
        self.left -= used
        if self.left <= 0:
            updates = self._running.finish()
            self._done(updates if self.older.updates.lanes else _without_lane(updates))
        return used

    def result(self) -> Batch:
        """The merged batch, once done."""
        assert self._result is not None, "the merge is not done"
        return self._result


def merge_now(older: Batch, newer: Batch, since: Frontier) -> Batch:
    """The merge of two adjacent batches, at once."""
    merging = Merge(older, newer, since)
    merging.work(ALL)
    return merging.result()


def merge_tiny(batches: list[Batch]) -> Batch:
    """The merge of some adjacent batches, times as they are: for few rows, as it sorts them again."""
    since = batches[0].since
    for batch in batches[1:]:
        since = since.join(batch.since)
    updates = consolidate_all([batch.updates for batch in batches])
    return Batch(updates, batches[0].key_lanes, Description(batches[0].lower, batches[-1].upper, since))


def empty_after(batch: Batch) -> Batch:
    """A batch without updates that follows `batch`: to merge with it is to compact it."""
    updates = batch.updates
    nothing = no_updates(updates.lanes, updates.depth, updates.width)
    return Batch(nothing, batch.key_lanes, Description(batch.upper, batch.upper, batch.since))


def _compaction(older: Batch, newer: Batch, since: Frontier) -> tuple[Ints, int]:
    """The frontier to move times to, and which side is known to end up at one time."""
    a_times, b_times = older.updates.times, newer.updates.times
    frontier = elements(since, a_times.shape[0])
    if a_times.shape[1] == 1 == b_times.shape[1]:
        return frontier, 0
    if since.precedes(older.lower):
        return frontier[:0], 0  # every time is its own representative
    lone = 0
    if a_times.shape[1] > 1 and collapses(older, since):
        lone |= FROM_A
    if b_times.shape[1] > 1 and collapses(newer, since):
        lone |= FROM_B
    return frontier, lone


def collapses(batch: Batch, since: Frontier) -> bool:
    """Whether all times of a batch are at or before the only element of the since, known from its description.

    Only where times are totally ordered: there each is before the upper, or was moved to the since of the batch.
    """
    if batch.updates.depth != 1 or not batch.upper:
        return False
    last = max(batch.upper.elements[0][0] - 1, batch.since.elements[0][0] if batch.since else 0)
    return last <= since.elements[0][0]
