"""An unsorted batch: a large load that is sorted when a reader first needs its order.

A join of a large load with few rows needs no order. A scan finds the rows of the load whose keys may occur among those
few, and only these are sorted (`rows_with_keys`): a fraction of the cost of sorting all. Every other reader asks for
`updates`, which sorts and consolidates once. A trace whose events are logged sorts at once, so that logged row counts
are exact. Idle work, and the first change or look-up after a load that needs its order, let the helper thread sort it
(`sort_soon`). Changes and look-ups of few rows scan the load until that is done, so no transaction waits for it.

All updates have one time and one diff, so nothing in it cancels. Equal rows count as several until it is sorted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from kpg.columns.consolidation import consolidate_all
from kpg.columns.helper_thread import submit
from kpg.columns.pause_points import aside, can_be_interrupted, can_pause, pause
from kpg.columns.updates import Ints, Updates, constant
from kpg.trace.batch import Batch
from kpg.trace.description import Description

Bools: TypeAlias = npt.NDArray[np.bool_]

MIN_SCAN_RATIO: Final = 8  # of the rows of the load to those that it is joined with, for a scan to be the cheaper way
ROWS_SCANNED_TOGETHER: Final = 1 << 15  # so that their hashes stay in the cache
ROWS_COMPARED_TOGETHER: Final = 1 << 18  # between two pauses
CELLS_PER_KEY: Final = 16  # of the table that marks keys: of 16 keys that do not occur, one passes the scan
HASH_FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)  # odd, with bits well spread


class UnsortedBatch(Batch):
    """A batch whose updates are sorted on first use."""

    __slots__ = ("_parts", "_sorted", "_sorting", "sorted_elsewhere")
    _parts: list[Updates]
    _sorted: Updates | None
    _sorting: tuple[int, Future[Updates]] | None  # by the helper thread of this process
    sorted_elsewhere: bool  # whether another thread sorts a copy, which the batch then adopts

    def __init__(self, parts: list[Updates], key_lanes: int, description: Description) -> None:
        """Take the updates of a load, all at one time with one diff."""
        earliest = (tuple(parts[0].times[:, 0].tolist()),)
        fields = {"key_lanes": key_lanes, "description": description, "_row": None, "_searched_keys": 0}
        fields |= {"_lookup_table": None, "_earliest": earliest}
        fields |= {"_parts": parts, "_sorted": None, "_sorting": None, "sorted_elsewhere": False}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def updates(self) -> Updates:
        """The updates, sorted and consolidated."""
        if self._sorted is None and can_be_interrupted(len(self)):
            self.sort_soon()  # an interrupt must not lose the rows: `consolidate_all` empties the list that it gets
        if self._sorted is None and self._sorting is not None:
            self._adopt_sorted(wait=True)
        if self._sorted is None:
            self.adopt(aside(len(self), consolidate_all, list(self._parts) if can_pause() else self._parts))
        assert self._sorted is not None
        return self._sorted

    def sort_soon(self) -> None:
        """Let the helper thread sort a copy, which the batch adopts when it is read afterwards."""
        if self._sorted is None and self._sorting is None and not self.sorted_elsewhere:
            future = submit(consolidate_all, list(self._parts))
            object.__setattr__(self, "_sorting", (os.getpid(), future))
            object.__setattr__(self, "sorted_elsewhere", True)

    def _adopt_sorted(self, wait: bool) -> None:
        """Take the updates that the helper thread has sorted, if it has; or wait for it."""
        assert self._sorting is not None
        process, future = self._sorting
        is_lost = process != os.getpid()  # the helper thread of the process that forked this one
        if not (wait or is_lost or future.done()):
            return
        if not is_lost:
            with suppress(MemoryError):  # then the reader sorts in place
                self.adopt(aside(len(self), future.result))  # the helper thread is done before it would call this
        object.__setattr__(self, "_sorting", None)
        self.end_sort_elsewhere()

    def begin_sort_elsewhere(self) -> list[Updates]:
        """Return its parts for another thread to sort: idle work leaves the batch to it, readers do not."""
        object.__setattr__(self, "sorted_elsewhere", True)
        return list(self._parts)

    def end_sort_elsewhere(self) -> None:
        """Note that no other thread sorts its parts any more."""
        object.__setattr__(self, "sorted_elsewhere", False)

    def adopt(self, updates: Updates) -> None:
        """Take its updates, sorted, unless it has sorted them already."""
        if self._sorted is None:
            object.__setattr__(self, "_sorted", updates)
            object.__setattr__(self, "_parts", [])  # a new list: another thread may read the old one

    @property
    def is_sorted(self) -> bool:
        """Whether its updates have been sorted."""
        if self._sorting is not None:
            self._adopt_sorted(wait=False)
        return self._sorted is not None

    @property
    def held(self) -> list[Updates]:
        """All updates, in any order."""
        return self._parts if self._sorted is None else [self._sorted]

    def __len__(self) -> int:
        return sum(map(len, self.held))

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.held) if self._sorted is None else super().nbytes

    def is_worth_scanning(self, rows: int) -> bool:
        """Return whether a scan for the keys of `rows` rows is cheaper than a sort of all."""
        return self._sorted is None and MIN_SCAN_RATIO * rows <= len(self)

    def rows_with_keys(self, others: Sequence[Updates], key_lanes: int) -> Updates:
        """Return the updates whose first lanes are among those of other updates, and a few others, sorted."""
        parts = self.held  # once: after a pause it may have been sorted
        if len(others) == 1 and len(others[0]) == 1:
            key = others[0].data[:key_lanes, 0]
            rows = [equal_rows(part.data, key) for part in parts]
        else:
            marks, shift = marked_keys(others, key_lanes)
            rows = [marked_rows(part.data, key_lanes, marks, shift) for part in parts]
        return consolidate_all([
            Updates(part.data.take(chosen, axis=1), part.times, part.diffs)
            for part, chosen in zip(parts, rows, strict=True)
        ])  # fmt: skip


def is_unsorted(batch: Batch) -> TypeGuard[UnsortedBatch]:
    """Return whether a batch is a load that has not been sorted."""
    return isinstance(batch, UnsortedBatch) and not batch.is_sorted


def searchable(batch: Batch, keys: Ints) -> Batch:
    """Return a batch to look up keys in. A load that is not sorted yet is scanned for them, and sorted meanwhile."""
    lanes, m = keys.shape
    if not (lanes and m and is_unsorted(batch) and batch.is_worth_scanning(m)):
        return batch
    batch.sort_soon()
    wanted = Updates(keys, constant((0,)), constant((1,)))
    return Batch(batch.rows_with_keys([wanted], lanes), batch.key_lanes, batch.description)


def held_updates(batch: Batch) -> list[Updates]:
    """Return all updates of a batch, in any order."""
    return batch.held if is_unsorted(batch) else [batch.updates]


def marked_keys(others: Sequence[Updates], key_lanes: int) -> tuple[Bools, int]:
    """Return a table that marks the hashes of keys, and the shift that gives the cell of a hash."""
    bits = max(10, (CELLS_PER_KEY * sum(map(len, others))).bit_length())
    marks = np.zeros(1 << bits, np.bool_)
    for other in others:
        marks[hashed_keys(other.data, key_lanes, 64 - bits)] = True
    return marks, 64 - bits


def equal_rows(data: Ints, key: Ints) -> Ints:
    """Return the rows that have this key in their first lanes, and perhaps others."""
    found = [np.zeros(0, np.int64)]
    for start in range(0, data.shape[1], ROWS_COMPARED_TOGETHER):
        found.append(np.flatnonzero(data[0, start : start + ROWS_COMPARED_TOGETHER] == key[0]) + start)
        pause()
    rows = np.concatenate(found)
    for lane in range(1, len(key)):
        rows = rows[data[lane].take(rows) == key[lane]]
    return rows


def marked_rows(data: Ints, key_lanes: int, marks: Bools, shift: int) -> Ints:
    """Return the rows whose keys have marked hashes."""
    found = [np.zeros(0, np.int64)]
    for start in range(0, data.shape[1], ROWS_SCANNED_TOGETHER):
        cells = hashed_keys(data[:, start : start + ROWS_SCANNED_TOGETHER], key_lanes, shift)
        found.append(np.flatnonzero(marks[cells]) + start)
        pause()
    return np.concatenate(found)


def hashed_keys(data: Ints, key_lanes: int, shift: int) -> Ints:
    """Return the first bits of a hash of the key of each row."""
    mixed = np.zeros(data.shape[1], np.uint64)
    for lane in range(key_lanes):
        mixed ^= data[lane].view(np.uint64)
        mixed *= np.uint64(HASH_FACTORS[lane % len(HASH_FACTORS)])
        mixed ^= mixed >> np.uint64(29)
    return ((mixed * np.uint64(HASH_FACTORS[0])) >> np.uint64(shift)).view(np.int64)
