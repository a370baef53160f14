"""Read a collection as of a time in parts, in the order of its rows: all rows, or those with some keys.

    the parts of a PartReader, one after the other  =  read(batches, at, None)
    the parts of a KeyReader, one after the other   =  read(batches, at, keys), for sorted keys, each once

Batches are immutable, so a reader holds the batches of its first part, and later changes and merges of the trace do not
affect it. A part takes the next rows of each batch, up to a bound: the least row that some batch has not reached. Rows
below it are complete, whichever batches their updates are in.
Cost: the updates of the part, times the logarithm of the number of batches; a binary search for each batch and lane.
`count_rows` costs one pass over the times and diffs of batches that have more than one, and otherwise nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpg.algebra.order import Time, less_equal
from kpg.columns.exact_diffs import sum_of
from kpg.columns.pause_points import aside, pause
from kpg.columns.updates import Ints, Updates, no_updates
from kpg.trace.batch import Batch
from kpg.trace.key_history import read
from kpg.trace.locate_batches import locate
from kpg.trace.unsorted_batch import searchable

ROWS_COUNTED_TOGETHER = 1 << 18  # between two pauses: about a millisecond of work
MAX_KEYS_TOGETHER = 1 << 12  # that one part reads
MAX_ROWS_TOGETHER = 1 << 20  # of a batch that one part reads, where rows cancel or have many times


class PartReader:
    """Reads the rows of some batches as of a time, a part at a time; with ranges, only these updates of each batch."""

    def __init__(self, batches: Sequence[Batch], at: Time, ranges: Sequence[tuple[int, int]] | None = None) -> None:
        self._batches = list(batches)
        self._at = at
        ranges = [(0, len(batch)) for batch in batches] if ranges is None else ranges
        self._starts = [start for start, _ in ranges]  # the first unread update of each batch
        self._stops = [stop for _, stop in ranges]

    @property
    def is_done(self) -> bool:
        """Whether all rows have been read."""
        return self._starts == self._stops

    def next_rows(self, size: int) -> tuple[Ints, Ints]:
        """Return at least `size` further rows as data int64[lanes, k], and their multiplicities; fewer at the end.

        Not many more than `size` are read from each batch, unless rows cancel or have many times.
        """
        step, rows = max(1, size), [self._next_part(max(1, size))]
        while sum(data.shape[1] for data, _ in rows) < size and not self.is_done:
            pause()
            step = min(2 * step, max(size, MAX_ROWS_TOGETHER))
            rows.append(self._next_part(step))
        if len(rows) == 1:
            return rows[0]
        return np.concatenate([data for data, _ in rows], axis=1), np.concatenate(
            [counts for _, counts in rows], axis=1
        )

    def _next_part(self, step: int) -> tuple[Ints, Ints]:
        """Return the rows below a bound that is at most `step` updates ahead in each batch, but at least one row."""
        ends = self._ends(step)
        while ends == self._starts and not self.is_done:  # one row has more than `step` updates
            step *= 2
            ends = self._ends(step)
        ranges = zip(self._batches, self._starts, ends, strict=True)
        parts = [
            Batch(_cut(batch.updates, start, end), batch.key_lanes, batch.description) for batch, start, end in ranges
        ]
        self._starts = ends
        return read(parts, self._at, None)

    def _ends(self, step: int) -> list[int]:
        """Return the end of the next part in each batch."""
        blocks = [batch.updates.data for batch in self._batches]
        if not blocks or not len(blocks[0]):  # without lanes all rows are equal
            return self._stops
        unread = list(zip(blocks, self._starts, self._stops, strict=True))
        ahead = [tuple(data[:, start + step].tolist()) for data, start, stop in unread if start + step < stop]
        if not ahead:
            return self._stops
        bound = min(ahead)
        return [_seek(data, start, min(start + step, stop), bound) for data, start, stop in unread]


class KeyReader:
    """Reads the rows with some keys as of a time, a part at a time. A part has many keys, or a part of one."""

    def __init__(self, batches: Sequence[Batch], at: Time, keys: Ints) -> None:
        self._batches = [searchable(batch, keys) for batch in batches]
        self._at = at
        self._keys = keys  # sorted, each once
        self._ranges = locate(self._batches, keys)[1]
        self._counts: Ints = (self._ranges[1::2] - self._ranges[::2]).sum(axis=0)  # of the updates of each key
        self._next = 0 if batches else len(self._counts)  # the first unread key
        self._reader: PartReader | None = None  # of the next key, if it has many updates

    @property
    def is_done(self) -> bool:
        """Whether all rows have been read."""
        return self._next == len(self._counts)

    def next_rows(self, size: int) -> tuple[Ints, Ints]:
        """Return at least `size` further rows as data int64[lanes, k], and their multiplicities; fewer at the end."""
        rows, found = [self._next_part(size)], 0
        while (found := found + rows[-1][0].shape[1]) < size and not self.is_done:
            pause()
            rows.append(self._next_part(size - found))
        if len(rows) == 1:
            return rows[0]
        return np.concatenate([data for data, _ in rows], axis=1), np.concatenate([one for _, one in rows], axis=1)

    def _next_part(self, size: int) -> tuple[Ints, Ints]:
        """Return the rows of the next keys that have at most `size` updates together, or a part of those of one key."""
        if self._reader is not None:
            rows = self._reader.next_rows(size)
            if self._reader.is_done:
                self._reader, self._next = None, self._next + 1
            return rows
        first = self._next
        updates = np.cumsum(self._counts[first : first + MAX_KEYS_TOGETHER])
        last = first + int(np.searchsorted(updates, size, "right"))
        if last == first and not self.is_done:
            self._reader = PartReader(self._batches, self._at, self._ranges_of(first))
            return self._next_part(size)
        self._next = last
        return read(self._batches, self._at, np.ascontiguousarray(self._keys[:, first:last]))

    def _ranges_of(self, key: int) -> list[tuple[int, int]]:
        starts, stops = self._ranges[::2, key].tolist(), self._ranges[1::2, key].tolist()
        return [(start, max(start, stop)) for start, stop in zip(starts, stops, strict=True)]


def _seek(data: Ints, start: int, end: int, row: tuple[int, ...]) -> int:
    """Return the position of the first row that is not below `row`, from `start` to `end`."""
    for lane, value in zip(data, row, strict=True):
        equal = lane[start:end]
        start, end = start + int(equal.searchsorted(value)), start + int(equal.searchsorted(value, "right"))
    return start


def _cut(updates: Updates, start: int, end: int) -> Updates:
    """Return some updates of a sorted batch; the batch itself if they are all."""
    if end - start == len(updates):
        return updates
    if start == end:
        return no_updates(updates.lanes, updates.depth, updates.width)
    times = updates.times if updates.times.shape[1] == 1 else updates.times[:, start:end].copy()
    diffs = updates.diffs if updates.diffs.shape[1] == 1 else updates.diffs[:, start:end].copy()
    return Updates(updates.data[:, start:end].copy(), times, diffs, updates.consolidated)


def count_rows(batches: Sequence[Batch], at: Time) -> int:
    """Return the sum of the multiplicities of all rows as of a time, without merging the batches."""
    return sum(_count(batch.updates, at) for batch in batches)


def _count(updates: Updates, at: Time) -> int:
    times, diffs, n = updates.times, updates.diffs, len(updates)
    if times.shape[1] == 1:
        if not n or not less_equal(tuple(times[:, 0].tolist()), at):
            return 0
        return int(diffs[0, 0]) * n if diffs.shape[1] == 1 else aside(n, sum_of, diffs[:1])
    total, least = 0, np.array(at, np.int64).reshape(-1, 1)
    for start in range(0, n, ROWS_COUNTED_TOGETHER):
        counted = (times[:, start : start + ROWS_COUNTED_TOGETHER] <= least).all(axis=0)
        if diffs.shape[1] == 1:
            total += int(diffs[0, 0]) * int(counted.sum())
        else:
            total += sum_of(diffs[:1, start : start + ROWS_COUNTED_TOGETHER][:, counted])
        pause()
    return total
