"""Ids of values: each value of a domain gets a small id, of which row codes are made (`kpg.seminaive.code_layout`).

    ValueIds.lookup(values)      ids of values; -1 for values without an id
    sorted_distinct(values)      equals `np.unique`, which hashes and takes ten times as long for many values

Ids start at 0. The values of the first load get ids in the order of the values, so their codes sort as the rows do.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints

TABLE_SPREAD = 8  # a table indexed by value is used if its size is at most this multiple of the number of values
MAX_FEW_VALUES = 64  # that are looked up before they are sorted: most changes have no new values
MIN_INT64 = np.iinfo(np.int64).min
MAX_LATE_VALUES = 1 << 14  # values that arrived after the main sorted array and are searched separately


def sorted_distinct(values: Ints) -> Ints:
    """Return the distinct values in ascending order.

    Uses a table of flags if the values lie close together, and a sort otherwise.
    """
    if not len(values):
        return values
    least, greatest = int(values.min()), int(values.max())
    if greatest - least < TABLE_SPREAD * len(values):
        present = np.zeros(greatest - least + 1, np.bool_)
        present[values - least] = True
        return np.flatnonzero(present) + least
    ordered = np.sort(values)
    distinct: Ints = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return distinct


class ValueIds:
    """A mapping from values to ids 0, 1, 2, …; the values of the first load get their ids in ascending order.

    Cost of adding a value: one lookup, plus an amortised rebuild. The structure is rebuilt when the number of values
    has doubled or when `MAX_LATE_VALUES` have arrived since the last rebuild.
    """

    def __init__(self) -> None:
        self.ordered = True  # whether ids are in the order of values
        self._buffer: Ints = np.empty(1024, np.int64)
        self._count = 0
        self._greatest = 0
        self._table: Ints | None = None  # ids indexed by value - self._least, if values are dense enough
        self._least = 0
        self._main = SortedIds(self._buffer[:0], self._buffer[:0])
        self._late = self._main

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> Ints:
        """The value of each id."""
        return self._buffer[: self._count]

    @property
    def nbytes(self) -> int:
        """The size of the mapping in bytes."""
        table = 0 if self._table is None else self._table.nbytes
        return self._buffer.nbytes + table + self._main.nbytes + self._late.nbytes

    def add(self, values: Ints) -> None:
        """Assign ids to the values that have none."""
        if self._count and len(values) <= MAX_FEW_VALUES and int(self.lookup(values).min(initial=0)) >= 0:
            return
        distinct = sorted_distinct(values)
        new = distinct[self.lookup(distinct) < 0] if self._count else distinct
        if not len(new):
            return
        self.ordered &= not self._count or int(new[0]) > self._greatest
        self._greatest = int(new[-1]) if not self._count else max(self._greatest, int(new[-1]))
        ids = np.arange(self._count, self._count + len(new))
        self._append(new)
        if self._table is not None and self._least <= new[0] and new[-1] < self._least + len(self._table):
            self._table[new - self._least] = ids
        else:
            self._rebuild(new, ids)

    def _append(self, new: Ints) -> None:
        count = self._count + len(new)
        if count > len(self._buffer):
            buffer = np.empty(max(count, 2 * len(self._buffer)), np.int64)
            buffer[: self._count] = self.values
            self._buffer = buffer
        self._buffer[self._count : count] = new
        self._count = count

    def _rebuild(self, new: Ints, ids: Ints) -> None:
        """Extend the lookup structure by new values for which the current table has no slot."""
        if self._table is None and self._main.values.size and len(self._late.values) + len(new) <= MAX_LATE_VALUES:
            self._late = SortedIds(np.append(self._late.values, new), np.append(self._late.ids, ids))
            return
        values = self.values
        least, greatest = int(values.min()), int(values.max())
        spread = greatest - least + 1
        if spread <= TABLE_SPREAD * self._count + 1024:
            size = spread + spread // 2 if self._table is not None else spread  # slack for further growth
            self._least = max(least - (size - spread if least < self._least else 0), MIN_INT64)
            self._table = np.full(size, -1, np.int64)
            self._table[values - self._least] = np.arange(self._count)
            return
        self._table = None
        self._main = SortedIds(values.copy(), np.arange(self._count))
        self._late = SortedIds(values[:0], values[:0])

    def lookup(self, values: Ints) -> Ints:
        """Return the ids of values; -1 for values without an id."""
        if self._table is not None:
            slots = values - self._least
            inside = (slots >= 0) & (slots < len(self._table)) & (values >= self._least)
            return np.where(inside, self._table[np.where(inside, slots, 0)], -1)
        ids = self._main.lookup(values)
        if len(self._late.values):
            missing = np.flatnonzero(ids < 0)
            ids[missing] = self._late.lookup(values[missing])
        return ids


class SortedIds:
    """Values in ascending order with their ids, looked up by binary search."""

    def __init__(self, values: Ints, ids: Ints) -> None:
        order = np.argsort(values)
        self.values = values[order]
        self.ids = ids[order]

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.values.nbytes + self.ids.nbytes

    def lookup(self, values: Ints) -> Ints:
        """Return the ids of values; -1 for values without an id."""
        if not len(self.values):
            return np.full(len(values), -1, np.int64)
        positions = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.where(self.values[positions] == values, self.ids[positions], -1)
