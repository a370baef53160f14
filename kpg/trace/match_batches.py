"""Match: the bilinear primitive of join, which pairs the updates of two sorted runs with equal keys.

    match(L, R)  =  { (projection of l, r; join of their times; product of their diffs)  |  l in L, r in R, same key }

The result is delivered in slices of at most `limit` updates. A slice may end in the middle of a key; every pair is
delivered once. Missing time coordinates of a side count as zero. If the times
of both sides are constants, the times of a slice are one too; so are the diffs. If only one side has a constant time,
and all paired times of the other side are at or before it, a slice has that constant time. The updates of a slice are
not consolidated and in no particular order. Products that leave 64 bits are Python ints (kpg.columns.exact_diffs).
Cost: linear in the smaller side plus the output; memory for one slice. One row against 10M rows: about 10 µs.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.exact_diffs import largest, mass, shrink_exact
from kpg.columns.lane_values import MAX
from kpg.columns.selection import slice_updates
from kpg.columns.updates import Ints, Updates
from kpg.kernels.match_rows import find_pairs, times_at_or_before, write_pairs

MAX_KEYS_PER_SLICE = 1 << 17  # so that the list of matching ranges stays in the cache


class Match:
    """A match in progress: both runs and the position in them."""

    __slots__ = ("_boxes", "_depth", "_left", "_more", "_projection", "_right", "_state", "_key_lanes", "_fits")

    def __init__(self, left: Updates, right: Updates, key_lanes: int, projection: Ints, depth: int) -> None:
        self._left, self._right = left, right
        self._key_lanes, self._projection, self._depth = key_lanes, projection, depth
        left_width, right_width = left.diffs.shape[0], right.diffs.shape[0]
        assert left_width == 1 or right_width == 1, "only one side may have wide diffs"
        self._fits = _products_fit(left, right)
        self._state = np.zeros(7, np.int64)
        self._boxes: Ints | None = None
        self._more = left.data.shape[1] > 0 and right.data.shape[1] > 0

    def next(self, limit: int) -> Updates | None:
        """Return the next updates, at most `limit`; None at the end."""
        left, right = self._left, self._right
        while self._more:
            boxes = self._scratch(limit)
            n, total, end = find_pairs(left.data, right.data, self._key_lanes, limit, self._state, boxes)
            self._more = not end
            if total:
                return self._fill(boxes, n, total)
        return None

    def rows_left_of_key(self) -> tuple[int, int]:
        """Return how many rows of each side are left to pair of the key at which the last slice ended."""
        l0, l1, r0, r1, done = self._state[2:].tolist()
        rows = l1 - l0 - done // max(1, r1 - r0)
        return (rows, r1 - r0) if rows else (0, 0)

    def take_rest_of_key(self) -> list[tuple[Updates, Updates]]:
        """Return the rows of both sides whose pairs are left of that key, and go on to the next key.

        These are the rest of a left row with the right rows that are left for it, and whole left rows with all.
        """
        l0, l1, r0, r1, done = self._state[2:].tolist()
        row, paired = divmod(done, r1 - r0)
        boxes = [(l0 + row, l0 + row + 1, r0 + paired, r1)] if paired else []
        boxes.append((l0 + row + len(boxes), l1, r0, r1))
        self._state[6] = (l1 - l0) * (r1 - r0)
        left, right = self._left, self._right
        return [(slice_updates(left, *box[:2]), slice_updates(right, *box[2:])) for box in boxes if box[0] < box[1]]

    @property
    def sides(self) -> tuple[Updates, Updates]:
        """The two runs."""
        return self._left, self._right

    def _scratch(self, limit: int) -> Ints:
        keys = min(limit, MAX_KEYS_PER_SLICE, self._left.data.shape[1], self._right.data.shape[1])
        if self._boxes is None or self._boxes.shape[0] < keys + 3:
            self._boxes = np.empty((keys + 3, 4), np.int64)
        return self._boxes

    def _fill(self, boxes: Ints, n: int, total: int) -> Updates:
        if self._fits:
            return self._write(boxes, n, total, self._left.diffs, self._right.diffs)
        left, right = self._left, self._right
        ones = np.ones((1, 1), np.int64)
        rows = self._write(boxes, n, total, _numbers(left), ones)  # with row numbers as diffs, to multiply exactly
        others = self._write(boxes, n, total, ones, _numbers(right))
        return Updates(rows.data, rows.times, _exact_products(left.diffs, rows.diffs, right.diffs, others.diffs))

    def _write(self, boxes: Ints, n: int, total: int, left_diffs: Ints, right_diffs: Ints) -> Updates:
        """Return the pairs of some boxes, given the diffs of both sides."""
        left, right = self._left, self._right
        left_times, right_times = self._plain_times(boxes, n)
        constant_times = left_times.shape[1] == 1 and right_times.shape[1] == 1
        constant_diffs = left_diffs.shape[1] == 1 and right_diffs.shape[1] == 1
        data = np.empty((self._projection.shape[0], total), np.int64)
        times = np.empty((self._depth, 1 if constant_times else total), np.int64)
        width = left_diffs.shape[0] * right_diffs.shape[0]
        diffs = np.empty((width, 1 if constant_diffs else total), np.int64)
        write_pairs(left.data, left_times, left_diffs, right.data, right_times, right_diffs, self._projection,
             boxes, n, data, times, diffs)  # fmt: skip
        return Updates(data, times, diffs)

    def _plain_times(self, boxes: Ints, n: int) -> tuple[Ints, Ints]:
        """Return the times of both sides; a constant at or after all paired times of the other side stands for both."""
        left, right = self._left.times, self._right.times
        if left.shape[1] == 1 and right.shape[1] > 1 and right.shape[0] <= left.shape[0]:
            return (left, left) if times_at_or_before(right, left, 1, boxes, n) else (left, right)
        if right.shape[1] == 1 and left.shape[1] > 1 and left.shape[0] <= right.shape[0]:
            return (right, right) if times_at_or_before(left, right, 0, boxes, n) else (left, right)
        return left, right


def _products_fit(left: Updates, right: Updates) -> bool:
    """Return whether all products of a diff of each side fit 64 bits."""
    if mass(left) * mass(right) <= MAX:
        return True
    return len(left) == 0 or len(right) == 0 or largest(left.diffs) * largest(right.diffs) <= MAX


def _numbers(updates: Updates) -> Ints:
    """Return the number of each row; where diffs are constant, any row will do."""
    if updates.diffs.shape[1] == 1:
        return np.zeros((1, 1), np.int64)
    return np.arange(len(updates), dtype=np.int64).reshape(1, -1)


def _exact_products(left: Ints, rows: Ints, right: Ints, others: Ints) -> Ints:
    """Return the products of the diffs of some rows of the left side and some of the right one."""
    return shrink_exact(left.astype(object)[:, rows[0]] * right.astype(object)[:, others[0]])
