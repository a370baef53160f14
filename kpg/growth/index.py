"""An index of codes by some columns: sorted runs, the later ones shorter.

    Index(layout, columns, keys)   the first `keys` of the columns are what rows are found by, the others what they give
    find(prefix)                   for each run, the ranges of rows whose key is that

Cost: 8 bytes a row, 8 for each id where a run is dense enough to be found by address.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kpg.columns.updates import Ints
from kpg.growth.codes import Layout

FEW = 64  # rows that are put into a run, or taken out, one by one
ADDRESSED = 1 << 24  # keys with at most so many values are found by address


class Run:
    """Codes of the index's columns in order, and where each key begins."""

    def __init__(self, codes: Ints, layout: Layout, keys: int) -> None:
        self.codes = codes
        self._rest = layout.bits * (layout.arity - keys)
        self._starts: Ints | None = None
        self._parts: dict[tuple[tuple[int, int], ...], Ints] = {}
        self._layout = layout
        values = 1 << (layout.bits * keys)
        if keys and values <= min(ADDRESSED, 16 * len(codes) + 1024):
            self._starts = np.searchsorted(codes, np.arange(values + 1) << self._rest)

    def ranges(self, keys: Ints) -> tuple[Ints, Ints]:
        """Where the rows of each key are."""
        if self._starts is not None:
            return self._starts[keys], self._starts[keys + 1]
        return np.searchsorted(self.codes, keys << self._rest), np.searchsorted(self.codes, (keys + 1) << self._rest)

    def without(self, codes: Ints) -> None:
        """Take rows out, where they are."""
        places = np.searchsorted(self.codes, codes)
        places = places[(places < len(self.codes)) & (self.codes[np.minimum(places, len(self.codes) - 1)] == codes)]
        if not len(places):
            return
        removed = self.codes[places]
        self.codes = np.delete(self.codes, places)
        self._moved(removed, -1)

    def including(self, codes: Ints) -> None:
        """Put rows in, that are not there."""
        places = np.searchsorted(self.codes, codes)
        inside = (places < len(self.codes)) & (self.codes[np.minimum(places, len(self.codes) - 1)] == codes)
        codes, places = codes[~inside], places[~inside]
        if len(codes):
            self.codes = np.insert(self.codes, places, codes)
            self._moved(codes, 1)

    def _moved(self, codes: Ints, by: int) -> None:
        """Rows went or came: keys behind them begin elsewhere."""
        self._parts.clear()
        if self._starts is None:
            return
        if len(codes) > FEW:
            self._starts = np.searchsorted(self.codes, np.arange(len(self._starts)) << self._rest)
            return
        for key in (codes >> self._rest).tolist():
            self._starts[key + 1 :] += by

    def part(self, pairs: tuple[tuple[int, int], ...]) -> Ints:
        """Columns of all rows moved to other bits; made once."""
        if pairs not in self._parts:
            self._parts[pairs] = self._layout.moved(self.codes, list(pairs))
        return self._parts[pairs]


class Index:
    """Rows by key."""

    def __init__(self, source: Layout, columns: tuple[int, ...], keys: int) -> None:
        self.columns = columns
        self.layout = Layout(source.bits, len(columns))
        self.keys = keys
        self.runs: list[Run] = []
        self._source = source

    def add(self, codes: Ints) -> None:
        """Take in rows; runs that are not much longer are merged with them."""
        if not len(codes):
            return
        made = [self._moved(codes)]
        if len(codes) <= FEW and self.runs:
            self.runs[-1].including(distinct(made[0]))
            return
        while self.runs and len(self.runs[-1].codes) < 2 * sum(map(len, made)):
            made.append(self.runs.pop().codes)
        self.runs.append(Run(distinct(np.concatenate(made)), self.layout, self.keys))

    def remove(self, codes: Ints) -> None:
        """Take rows out."""
        moved = distinct(self._moved(codes))
        for run in self.runs:
            run.without(moved)
        self.runs = [run for run in self.runs if len(run.codes)]

    def _moved(self, codes: Ints) -> Ints:
        return self._source.moved(codes, [(c, self.layout.shift(at)) for at, c in enumerate(self.columns)])

    def find(self, keys: Ints) -> Iterator[tuple[Run, Ints, Ints]]:
        """The runs, and in each the range of every key."""
        for run in self.runs:
            yield run, *run.ranges(keys)


def distinct(codes: Ints) -> Ints:
    """Codes in order, each once."""
    found = np.sort(codes)
    if len(found) > 1:
        new = np.empty(len(found), np.bool_)
        new[0] = True
        np.not_equal(found[1:], found[:-1], out=new[1:])
        if not new.all():
            return found[new]
    return found
