"""An index of codes by some columns: sorted runs, the later ones shorter.

    Index(layout, columns, keys)   the first `keys` of the columns are what rows are found by, the others what they give
    find(prefix)                   for each run, the ranges of rows whose key is that
    run.standing(rows)             of rows of a run that were found, which have not been taken out since

A short run is changed in place. A long one is not: what is taken out of it is noted beside it, and what is put in is a
run of its own, so a change costs as much as it is large, and every so often a merge.

Cost: 8 bytes a row, 8 for each id where a run is dense enough to be found by address.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kpg.columns.updates import Ints
from kpg.seminaive.row_codes import Layout

FEW = 64  # rows that are put into a run, or taken out, one by one
SHORT = 1 << 14  # rows of a run that may be changed in place
BURIED = 8  # a run is made anew when one of so many of its rows was taken out
ADDRESSED = 1 << 24  # keys with at most so many values are found by address


class CodeRun:
    """Codes of the index's columns in order, and where each key begins."""

    def __init__(self, codes: Ints, layout: Layout, keys: int) -> None:
        self._layout = layout
        self._keys = keys
        self._rest = layout.bits * (layout.arity - keys)
        self._make(codes)

    def _make(self, codes: Ints) -> None:
        self.codes = codes
        self._gone: Ints = codes[:0]  # of the codes, those that were taken out, in order
        self._starts: Ints | None = None
        self._parts: dict[tuple[tuple[int, int], ...], Ints] = {}
        values = 1 << (self._layout.bits * self._keys)
        if self._keys and values <= min(ADDRESSED, 16 * len(codes) + 1024):
            self._starts = np.searchsorted(codes, np.arange(values + 1) << self._rest)

    def __len__(self) -> int:
        return len(self.codes) - len(self._gone)

    def ranges(self, keys: Ints) -> tuple[Ints, Ints]:
        """Where the rows of each key are, and those that were."""
        if self._starts is not None:
            return self._starts[keys], self._starts[keys + 1]
        return np.searchsorted(self.codes, keys << self._rest), np.searchsorted(self.codes, (keys + 1) << self._rest)

    def standing(self, rows: Ints) -> Ints | None:
        """Which of some rows are there still, by their place among these; None if all are."""
        return np.flatnonzero(~are_in(self.codes[rows], self._gone)) if len(self._gone) else None

    def settle(self) -> None:
        """Forget what was taken out."""
        if len(self._gone):
            self._make(self.codes[~are_in(self.codes, self._gone)])

    def without(self, codes: Ints) -> None:
        """Take rows out, where they are."""
        found = codes[are_in(codes, self.codes)]
        if not len(found):
            return
        if len(self.codes) <= SHORT:
            self.codes = np.delete(self.codes, np.searchsorted(self.codes, found))
            self._moved(found, -1)
            return
        self._gone = distinct(np.concatenate([self._gone, found]))
        if len(self._gone) * BURIED > len(self.codes):
            self.settle()

    def again(self, codes: Ints) -> Ints:
        """Put rows back that were taken out; the others are returned."""
        if not len(self._gone):
            return codes
        back = are_in(codes, self._gone)
        if back.any():
            self._gone = self._gone[~are_in(self._gone, codes[back])]
        return codes[~back]

    def including(self, codes: Ints) -> None:
        """Put rows in, that are not there."""
        codes = codes[~are_in(codes, self.codes)]
        if len(codes):
            self.codes = np.insert(self.codes, np.searchsorted(self.codes, codes), codes)
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


class CodeIndex:
    """Rows by key."""

    def __init__(self, source: Layout, columns: tuple[int, ...], keys: int) -> None:
        self.columns = columns
        self.layout = Layout(source.bits, len(columns))
        self.keys = keys
        self.runs: list[CodeRun] = []
        self._source = source

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def add(self, codes: Ints) -> None:
        """Take in rows; runs that are not much longer are merged with them."""
        new = self._moved(codes)
        for run in self.runs:
            new = run.again(new)
        if not len(new):
            return
        if len(new) <= FEW and self.runs and len(self.runs[-1].codes) <= SHORT:
            self.runs[-1].including(distinct(new))
            return
        made = [new]
        while self.runs and len(self.runs[-1]) < 2 * sum(map(len, made)):
            last = self.runs.pop()
            last.settle()
            made.append(last.codes)
        self.runs.append(CodeRun(distinct(np.concatenate(made)), self.layout, self.keys))

    def remove(self, codes: Ints) -> None:
        """Take rows out."""
        moved = distinct(self._moved(codes))
        for run in self.runs:
            run.without(moved)
        self.runs = [run for run in self.runs if len(run)]

    def settle(self) -> None:
        """Forget what was taken out, so that all that is found is there."""
        for run in self.runs:
            run.settle()

    def _moved(self, codes: Ints) -> Ints:
        return self._source.moved(codes, [(c, self.layout.shift(at)) for at, c in enumerate(self.columns)])

    def find(self, keys: Ints) -> Iterator[tuple[CodeRun, Ints, Ints]]:
        """The runs, and in each the range of every key."""
        for run in self.runs:
            yield run, *run.ranges(keys)


def are_in(codes: Ints, ordered: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether each code is among others, which are in order."""
    if not len(ordered):
        return np.zeros(len(codes), np.bool_)
    places = np.minimum(np.searchsorted(ordered, codes), len(ordered) - 1)
    return np.asarray(ordered[places] == codes)


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
