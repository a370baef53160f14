"""Sums of groups, accumulated in a hash table before anything is arranged.

    the output of a message  =  Σ over its rows of IntoDiffStage(row)        with one update for each group and time

An aggregate of many rows usually has few groups. So the rows of a message are added up slice by slice, as the stages
before produce them, and only the groups are sent, sorted and kept. Rows pass unsummed if they have several times, if
their groups turn out to be nearly as many as the rows, or if a sum might leave 64 bits.
Cost: one pass over the rows, and a random access of the table for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kpg.columns.exact_diffs import is_exact, largest
from kpg.columns.exact_sums import part_count
from kpg.columns.pause_points import aside
from kpg.columns.schema import Type
from kpg.columns.updates import Ints, Updates, trim
from kpg.kernels.sum_groups import (
    add_counts,
    add_numbers,
    add_true,
    add_wide_numbers,
    fill_slots,
    number_groups,
    write_groups,
)
from kpg.operators.linear import ErrorReport
from kpg.operators.sums_in_diff import IntoDiffStage

MIN_SUMMED_ROWS = 256  # fewer rows are sorted in less time than a table takes to make
FIRST_GROUPS = 1 << 8  # the capacity of a new table; it doubles
SAMPLED_ROWS = 1 << 17  # after this number of rows, a tenth of the rows must belong to groups that were there before
MAX_COUNTED_ROWS = 1 << 29  # each row adds less than 2^32 to a sum, so that sums stay below 2^61
UNSIGNED_BIAS = 1 << 31  # the lane of a uint64 is the number minus 2^63: 2^31 in the upper part


class GroupTable:
    """The groups of some rows and their sums, by key."""

    __slots__ = ("_key_lanes", "_slot_bits", "_slots", "_sums", "count")

    def __init__(self, key_lanes: int, width: int) -> None:
        self._key_lanes = key_lanes
        self._sums = np.zeros((FIRST_GROUPS, key_lanes + width), np.int64)
        self.count = 0
        self._make_slots()

    def _make_slots(self) -> None:
        self._slot_bits = (2 * len(self._sums) - 1).bit_length()
        self._slots = np.zeros(1 << self._slot_bits, np.int64)

    def groups_of(self, data: Ints, lanes: Ints) -> Ints:
        """Return the group of each row, by the key in some lanes; add those that are new."""
        groups = np.empty(data.shape[1], np.int64)
        row = 0
        while True:
            row, self.count = number_groups(
                data, lanes, row, self._slot_bits, self._slots, self._sums, self.count, groups
            )
            if row == len(groups):
                return groups
            aside(self._sums.size, self._grow)

    def _grow(self) -> None:
        self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        self._make_slots()
        fill_slots(self._sums[: self.count, : self._key_lanes].T.copy(), self._slot_bits, self._slots)

    def add(self, data: Ints, diffs: Ints, groups: Ints, columns: Sequence[tuple[int | slice, Type]]) -> None:
        """Add rows to the sums of their groups: their count, and the parts of some columns."""
        sums, at = self._sums, self._key_lanes
        add_counts(groups, diffs, at, sums)
        at += 1
        for slot, type_ in columns:
            lane = slot if isinstance(slot, int) else slot.start
            nullable = int(type_.nullable)
            if type_.kind == "bool":
                add_true(data, lane, groups, diffs, at, sums)
            elif type_.lanes == 2:
                add_wide_numbers(data, lane, nullable, groups, diffs, at, sums)
            else:
                bias = UNSIGNED_BIAS if type_.kind == "uint64" else 0
                add_numbers(data, lane, bias, nullable, groups, diffs, at, sums)
            at += part_count(type_)

    def updates(self, times: Ints, columns: Sequence[tuple[int | slice, Type]]) -> Updates:
        """Return the groups as updates at a constant time."""
        lanes, width = self._key_lanes, self._sums.shape[1] - self._key_lanes
        data, diffs = np.empty((lanes, self.count), np.int64), np.empty((width, self.count), np.int64)
        kept = write_groups(self._sums, self.count, lanes, data, diffs)
        at = 1
        for _, type_ in columns:
            if not type_.nullable and type_.kind != "bool":  # each row counts
                diffs[at] = diffs[0]
            at += part_count(type_)
        return Updates(trim(data, kept), times, trim(diffs, kept))


class MessageSums:
    """The sums of the rows of one message, which arrive in slices."""

    __slots__ = ("_gave_up", "_into", "_key_lanes", "_mass", "_rows", "_table", "_times")

    def __init__(self, into: IntoDiffStage) -> None:
        self._into = into
        self._key_lanes = np.array(into.keys, np.int64)
        self._table: GroupTable | None = None
        self._times: Ints | None = None
        self._rows = self._mass = 0
        self._gave_up = bool(into.floats)  # floats have more parts, and outliers

    def add(self, rows: Updates) -> Iterator[Updates]:
        """Add rows. Yield the sums so far where these rows must not be added to them."""
        added = len(rows) * largest(rows.diffs)
        if self._times is not None and (
            self._mass + added > MAX_COUNTED_ROWS or not np.array_equal(rows.times, self._times)
        ):
            yield from self.finish()
        if self._table is None:
            self._table, self._times = GroupTable(len(self._key_lanes), self._into.width), rows.times
        self._rows, self._mass = self._rows + len(rows), self._mass + added
        data = np.ascontiguousarray(rows.data)
        groups = self._table.groups_of(data, self._key_lanes)
        self._table.add(data, rows.diffs, groups, self._into.columns)
        if self._rows >= SAMPLED_ROWS and 10 * self._table.count > 9 * self._rows:
            self._gave_up = True
            yield from self.finish()

    def accepts(self, rows: Updates) -> bool:
        """Return whether rows can be added."""
        if self._gave_up or rows.times.shape[1] > 1 or is_exact(rows.diffs):
            return False
        return len(rows) * largest(rows.diffs) <= MAX_COUNTED_ROWS

    def finish(self) -> Iterator[Updates]:
        """Yield the sums, and start again."""
        if self._table is not None and self._times is not None:
            yield aside(self._table.count, self._table.updates, self._times, self._into.columns)
        self._table = self._times = None
        self._rows = self._mass = 0


@dataclass(frozen=True, slots=True)
class SumGroups:
    """The collector of a linear operator that sums its rows by group, as an `IntoDiffStage` describes."""

    into: IntoDiffStage

    def __call__(self, outputs: Iterator[Updates], fail: ErrorReport) -> Iterator[Updates]:
        """Yield the sums of all rows, and one by one the slices that cannot be summed in a table."""
        sums = MessageSums(self.into)
        for rows in outputs:
            if len(rows) >= MIN_SUMMED_ROWS and sums.accepts(rows):
                yield from sums.add(rows)
            elif len(rows):
                yield self.into.apply(rows, fail)
        yield from sums.finish()
