"""Merge two adjacent batches into one, in portions, and compact the result to a since.

    result  =  consolidate({(d, representative(since, t), r)  |  (d, t, r) in older or newer})

The result covers [lower of older, upper of newer). At every time beyond `since` it accumulates to the same collection
as its inputs; with an empty since (no readers) it is empty. The caller creates a `Merge` and calls `work(fuel)` until
it is done; both inputs stay readable until then. An empty newer batch makes the merge a compaction of the older one.
Times or diffs that come out all equal become constants. Sums never wrap (kpg.columns.exact_diffs).
Merges pause; readers of a spine do not see what it changes meanwhile (kpg.trace.spine).
Cost: one pass over both inputs, at most `fuel` rows for each call of `work`.
"""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate_all
from kpg.columns.exact_diffs import MAX_MASS, digit_count, set_mass, total_mass, with_digits, without_digits
from kpg.columns.output_buffer import allocate_block, release_unused
from kpg.columns.pause_points import aside, can_pause, check_interrupt, pause, rows_per_part
from kpg.columns.updates import Ints, Updates, no_updates
from kpg.kernels.advance_times import advance_times
from kpg.kernels.consolidate_rows import is_uniform
from kpg.kernels.merge_runs import FROM_A, FROM_B, merge_runs
from kpg.trace.batch import Batch
from kpg.trace.description import Description, elements

ROWS_PER_INTERRUPT = 1 << 19  # that are merged between two looks at whether Ctrl-C ends the computation
UNLIMITED = 1 << 62  # more fuel than any merge needs


class _RunMerge:
    """A merge of two sorted runs in progress: the output so far, and the position in each input."""

    __slots__ = ("_a", "_b", "_frontier", "_lone", "_data", "_times", "_diffs", "_state", "_mass", "_digits")

    def __init__(self, a: Updates, b: Updates, frontier: Ints, lone: int) -> None:
        self._mass = aside(a.diffs.size + b.diffs.size, total_mass, (a, b))
        self._digits = 0  # of each diff, where sums may leave 64 bits
        if self._mass > MAX_MASS:
            self._digits = digit_count((a, b))
            a, b = with_digits(a, self._digits), with_digits(b, self._digits)
        self._a, self._b, self._frontier, self._lone = a, b, frontier, lone
        rows = a.data.shape[1] + b.data.shape[1]
        self._data: Ints | None = allocate_block(a.data.shape[0], rows)
        self._times: Ints | None = allocate_block(a.times.shape[0], rows)
        self._diffs: Ints | None = allocate_block(a.diffs.shape[0], rows)
        self._state = np.zeros(8, np.int64)

    def work(self, fuel: int) -> int:
        """Read about `fuel` rows and return their number."""
        a, b = self._a, self._b
        read: int = merge_runs(
            a.data, a.times, a.diffs, b.data, b.times, b.diffs, self._frontier, self._lone,
            self._data, self._times, self._diffs, self._state, fuel,
        )  # fmt: skip
        return read

    def work_with_pauses(self, fuel: int, unread_rows: int) -> int:
        """Read about `fuel` rows of those that are unread, in parts if the computation may pause."""
        if not can_pause():
            return self._work_in_parts(fuel, unread_rows)
        read, part = 0, min(fuel, rows_per_part(unread_rows))
        while fuel - read > part and read < unread_rows:
            read += max(1, aside(unread_rows, self.work, part))
            pause()
        return read + aside(unread_rows - read, self.work, fuel - read)

    def _work_in_parts(self, fuel: int, unread_rows: int) -> int:
        """Do the same on a thread that runs steps whole: only an interrupt ends it."""
        read = 0
        while fuel - read > ROWS_PER_INTERRUPT and unread_rows - read > ROWS_PER_INTERRUPT:
            read += max(1, self.work(ROWS_PER_INTERRUPT))
            check_interrupt()
        return read + self.work(fuel - read)

    def finish(self) -> Updates:
        """Return the merged run in exactly the memory it needs. Must be called once."""
        if self._digits:
            return without_digits(self._finish(), self._digits)
        updates = self._finish()
        set_mass(updates, self._mass)
        return updates

    def _finish(self) -> Updates:
        _, _, kept, _, written, timed, _, _ = self._state.tolist()
        data, times, diffs = self._data, self._times, self._diffs
        assert data is not None and times is not None and diffs is not None
        self._data = self._times = self._diffs = (
            None  # `release_unused` gives back memory, so nothing else may refer to it
        )
        if kept == 0:
            return no_updates(data.shape[0], times.shape[0], diffs.shape[0])
        if not timed or aside(times.size, is_uniform, times, kept):
            times = times[:, :1].copy()
        else:
            times = aside(times.size, release_unused, times, kept)
        if not written:
            diffs = self._a.diffs if self._a.data.shape[1] else self._b.diffs
        elif aside(diffs.size, is_uniform, diffs, kept):
            diffs = diffs[:, :1].copy()
        else:
            diffs = aside(diffs.size, release_unused, diffs, kept)
        return Updates(aside(data.size, release_unused, data, kept), times, diffs)


def _run(a: Updates, b: Updates, frontier: Ints, lone: int) -> Updates:
    run_merge = _RunMerge(a, b, frontier, lone)
    run_merge.work_with_pauses(UNLIMITED, len(a) + len(b))
    return run_merge.finish()


def merge_updates(a: Updates, b: Updates) -> Updates:
    """Merge two sorted and consolidated runs without changing times, with pauses."""
    if a.data.shape[1] == 0 or b.data.shape[1] == 0:
        return a if b.data.shape[1] == 0 else b
    frontier = np.empty((0, a.times.shape[0]), np.int64)
    if a.data.shape[0] == 0:
        return _without_lane(_run(_with_lane(a), _with_lane(b), frontier, 0))
    return _run(a, b, frontier, 0)


def _with_lane(updates: Updates) -> Updates:
    """Return the updates with one lane of zeros, because the kernel needs at least one lane."""
    return updates.with_data(np.zeros((1, len(updates)), np.int64))


def _without_lane(updates: Updates) -> Updates:
    """Return the updates without any lane."""
    return updates.with_data(np.empty((0, len(updates)), np.int64))


class Merge:
    """A merge of two adjacent batches in progress."""

    __slots__ = ("older", "newer", "description", "unread_rows", "_run_merge", "_result")

    def __init__(self, older: Batch, newer: Batch, since: Frontier) -> None:
        self.older, self.newer = older, newer
        self.description = Description(older.lower, newer.upper, since)
        self._result: Batch | None = None
        self._run_merge: _RunMerge | None = None
        a, b = older.updates, newer.updates
        self.unread_rows = a.data.shape[1] + b.data.shape[1]
        if not since or self.unread_rows == 0:
            self._finish(no_updates(a.lanes, a.depth, a.width))
        elif b.data.shape[1] == 0 and a.times.shape[1] == 1:  # nothing can cancel; only the time changes
            time = np.empty_like(a.times)
            advance_times(a.times, elements(since, a.depth), time)
            self._finish(a.with_times(time))
        else:
            frontier, lone = _compaction(older, newer, since)
            if a.data.shape[0] == 0:
                a, b = _with_lane(a), _with_lane(b)
            self._run_merge = _RunMerge(a, b, frontier, lone)

    def _finish(self, updates: Updates) -> None:
        self._result = Batch(updates, self.older.key_lanes, self.description)
        self._run_merge = None
        self.unread_rows = 0

    @property
    def done(self) -> bool:
        """Whether the merge has produced its result."""
        return self._result is not None

    def work(self, fuel: int) -> int:
        """Read about `fuel` more rows, with pauses, and return their number."""
        if self._run_merge is None:
            return 0
        used = self._run_merge.work_with_pauses(fuel, self.unread_rows)
        self.unread_rows -= used
        if self.unread_rows <= 0:
            updates = self._run_merge.finish()
            self._finish(updates if self.older.updates.lanes else _without_lane(updates))
        return used

    def result(self) -> Batch:
        """Return the merged batch. The merge must be done."""
        assert self._result is not None, "the merge is not done"
        return self._result


def merge_now(older: Batch, newer: Batch, since: Frontier) -> Batch:
    """Merge two adjacent batches in one call."""
    merging = Merge(older, newer, since)
    merging.work(UNLIMITED)
    return merging.result()


def merge_tiny(batches: list[Batch]) -> Batch:
    """Merge several adjacent batches without changing times. It sorts all rows again, so it suits few rows."""
    since = batches[0].since
    for batch in batches[1:]:
        since = since.join(batch.since)
    updates = consolidate_all([batch.updates for batch in batches])
    return Batch(updates, batches[0].key_lanes, Description(batches[0].lower, batches[-1].upper, since))


def empty_after(batch: Batch) -> Batch:
    """Return an empty batch that follows `batch`. Merging the two compacts `batch`."""
    updates = batch.updates
    nothing = no_updates(updates.lanes, updates.depth, updates.width)
    return Batch(nothing, batch.key_lanes, Description(batch.upper, batch.upper, batch.since))


def _compaction(older: Batch, newer: Batch, since: Frontier) -> tuple[Ints, int]:
    """Return the frontier to advance times to, and the flags of the inputs that will have a single time."""
    a_times, b_times = older.updates.times, newer.updates.times
    frontier = elements(since, a_times.shape[0])
    if a_times.shape[1] == 1 == b_times.shape[1]:
        return frontier, 0
    if since.precedes(older.lower):
        return frontier[:0], 0  # every time is its own representative
    lone = 0
    if a_times.shape[1] > 1 and has_single_time(older, since):
        lone |= FROM_A
    if b_times.shape[1] > 1 and has_single_time(newer, since):
        lone |= FROM_B
    return frontier, lone


def has_single_time(batch: Batch, since: Frontier) -> bool:
    """Return whether compaction to `since` gives all updates of a batch the same time, judged by its description.

    True only for totally ordered times. There every time is before the upper or was advanced to the batch's since.
    """
    if not batch.upper or len(batch.upper.elements[0]) != 1:
        return False
    last = max(batch.upper.elements[0][0] - 1, batch.since.elements[0][0] if batch.since else 0)
    return last <= since.elements[0][0]
