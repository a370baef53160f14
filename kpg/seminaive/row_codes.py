"""Rows as numbers: values get ids, from 0 in the order of the first values, and a row is its ids side by side in bits.

Ids.of(values)        ids of values, new ones where they are new
Layout(bits, arity)   column 0 in the highest bits, so that codes sort as rows of ids do
each_once(values)     in order; `np.unique` hashes, which takes ten times as long where values are many
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.code_sets import decode, move

SPARSE = 8  # values spread wider than so many times their number are looked up by search
LEAST = np.iinfo(np.int64).min
LATE = 1 << 14  # values that came late and are searched apart


def each_once(values: Ints) -> Ints:
    """The values, each once, in order: marked in a table if they lie close together, else sorted."""
    if not len(values):
        return values
    least, greatest = int(values.min()), int(values.max())
    if greatest - least < SPARSE * len(values):
        there = np.zeros(greatest - least + 1, np.bool_)
        there[values - least] = True
        return np.flatnonzero(there) + least
    ordered = np.sort(values)
    once: Ints = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return once


class Ids:
    """Values, by ids from 0; ids of the first load are in the order of values.

    Cost of a new value: that of its own look-up, and all values' once as many came as there were, or `LATE` of them.
    """

    def __init__(self) -> None:
        self.ordered = True  # whether ids are in the order of values
        self._room: Ints = np.empty(1024, np.int64)
        self._count = 0
        self._greatest = 0
        self._table: Ints | None = None  # ids by value, from the least on
        self._least = 0
        self._main = Sought(self._room[:0], self._room[:0])
        self._late = self._main

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> Ints:
        """The value of each id."""
        return self._room[: self._count]

    def add(self, values: Ints) -> None:
        """Give ids to values that have none."""
        found = each_once(values)
        new = found[self.of(found) < 0] if self._count else found
        if not len(new):
            return
        self.ordered &= not self._count or int(new[0]) > self._greatest
        self._greatest = int(new[-1]) if not self._count else max(self._greatest, int(new[-1]))
        ids = np.arange(self._count, self._count + len(new))
        self._append(new)
        if self._table is not None and self._least <= new[0] and new[-1] < self._least + len(self._table):
            self._table[new - self._least] = ids
        else:
            self._spread(new, ids)

    def _append(self, new: Ints) -> None:
        count = self._count + len(new)
        if count > len(self._room):
            room = np.empty(max(count, 2 * len(self._room)), np.int64)
            room[: self._count] = self.values
            self._room = room
        self._room[self._count : count] = new
        self._count = count

    def _spread(self, new: Ints, ids: Ints) -> None:
        """Let new values be found that no table has a place for."""
        if self._table is None and self._main.values.size and len(self._late.values) + len(new) <= LATE:
            self._late = Sought(np.append(self._late.values, new), np.append(self._late.ids, ids))
            return
        values = self.values
        least, greatest = int(values.min()), int(values.max())
        spread = greatest - least + 1
        if spread <= SPARSE * self._count + 1024:
            size = spread + spread // 2 if self._table is not None else spread  # room for more of the same
            self._least = max(least - (size - spread if least < self._least else 0), LEAST)
            self._table = np.full(size, -1, np.int64)
            self._table[values - self._least] = np.arange(self._count)
            return
        self._table = None
        self._main = Sought(values.copy(), np.arange(self._count))
        self._late = Sought(values[:0], values[:0])

    def of(self, values: Ints) -> Ints:
        """The ids of values; -1 for those that have none."""
        if self._table is not None:
            places = values - self._least
            inside = (places >= 0) & (places < len(self._table)) & (values >= self._least)
            return np.where(inside, self._table[np.where(inside, places, 0)], -1)
        found = self._main.of(values)
        if len(self._late.values):
            missing = np.flatnonzero(found < 0)
            found[missing] = self._late.of(values[missing])
        return found


class Sought:
    """Values in order with their ids, looked up by search."""

    def __init__(self, values: Ints, ids: Ints) -> None:
        order = np.argsort(values)
        self.values = values[order]
        self.ids = ids[order]

    def of(self, values: Ints) -> Ints:
        """The ids of values; -1 for those that have none."""
        if not len(self.values):
            return np.full(len(values), -1, np.int64)
        places = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.where(self.values[places] == values, self.ids[places], -1)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the columns of a row are in its code."""

    bits: int  # of each id
    arity: int

    @property
    def width(self) -> int:
        """The bits of a code."""
        return self.bits * self.arity

    @property
    def mask(self) -> int:
        """One id."""
        return (1 << self.bits) - 1

    def shift(self, column: int) -> int:
        """Where a column begins."""
        return self.bits * (self.arity - 1 - column)

    def code(self, ids: Ints) -> Ints:
        """The codes of rows, int64[arity, n] of ids."""
        made = np.zeros(ids.shape[1], np.int64)
        for column in range(self.arity):
            made |= ids[column] << self.shift(column)
        return made

    def ids(self, codes: Ints, column: int) -> Ints:
        """One column of some codes."""
        return (codes >> self.shift(column)) & self.mask

    def moved(self, codes: Ints, pairs: list[tuple[int, int]]) -> Ints:
        """Other codes: (column here, bit there) each."""
        out = np.empty(len(codes), np.int64)
        source = np.array([self.shift(column) for column, _ in pairs], np.int64)
        move(codes, source, np.array([bit for _, bit in pairs], np.int64), self.mask, out)
        return out

    def values(self, codes: Ints, ids: Ids, out: Ints) -> None:
        """Write the values of rows into int64[arity, n]."""
        for column in range(self.arity):
            decode(codes, self.shift(column), self.mask, ids.values, out[column])
