"""Rows as numbers: values get ids, from 0 in the order of the first values, and a row is its ids side by side in bits.

    Ids.of(values)        ids of values, new ones where they are new
    Layout(bits, arity)   column 0 in the highest bits, so that codes sort as rows of ids do
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.saturate import decode, move

SPARSE = 8  # values spread wider than so many times their number are looked up by search


class Ids:
    """Values, by ids from 0; ids of the first load are in the order of values."""

    def __init__(self) -> None:
        self.values: Ints = np.empty(0, np.int64)
        self.ordered = True  # whether ids are in the order of values
        self._sorted: Ints = self.values
        self._order: Ints | None = None
        self._table: Ints | None = None
        self._least = 0

    def __len__(self) -> int:
        return len(self.values)

    def add(self, values: Ints) -> None:
        """Give ids to values that have none."""
        found = np.unique(values)
        new = found[self.of(found) < 0] if len(self.values) else found
        if not len(new):
            return
        self.ordered &= not len(self.values) or int(new[0]) > int(self._sorted[-1])
        self.values = np.concatenate([self.values, new])
        self._order = None if self.ordered else np.argsort(self.values)
        self._sorted = self.values if self._order is None else self.values[self._order]
        self._least = int(self._sorted[0])
        spread = int(self._sorted[-1]) - self._least + 1
        self._table = None
        if spread <= SPARSE * len(self.values) + 1024:
            self._table = np.full(spread, -1, np.int64)
            self._table[self.values - self._least] = np.arange(len(self.values))

    def of(self, values: Ints) -> Ints:
        """The ids of values; -1 for those that have none."""
        if self._table is not None:
            places = values - self._least
            inside = (places >= 0) & (places < len(self._table)) & (values >= self._least)
            return np.where(inside, self._table[np.where(inside, places, 0)], -1)
        if not len(self.values):
            return np.full(len(values), -1, np.int64)
        places = np.minimum(np.searchsorted(self._sorted, values), len(self._sorted) - 1)
        ids = places if self._order is None else self._order[places]
        return np.where(self._sorted[places] == values, ids, -1)


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
