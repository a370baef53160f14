"""An index of row codes by some of their columns: sorted runs, each about twice as long as the next, or longer.

    CodeIndex(layout, columns, keys)   the first `keys` of `columns` are the key, the others are the values it returns
    find(keys)                         for each run, the range of rows of each key
    run.remaining(rows)                the found rows that have not been removed since the run was built

A short run is changed in place. The codes of a long run do not change: removed rows are listed beside it, and inserted
rows form a run of their own.

Cost: a change is linear in the number of changed rows, plus an amortised merge. Memory is 8 bytes a row, and 8 bytes
for each possible key if keys are dense enough for a table of starts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kpg.columns.updates import Ints
from kpg.columns.word_order import sort_words
from kpg.kernels.code_sets import read_ranges, write_starts
from kpg.seminaive.array_addresses import Addressed, address
from kpg.seminaive.code_layout import CodeLayout, RowLayout

FEW_CHANGED_ROWS = 64  # up to this many changed rows, the table of starts is adjusted row by row, else rebuilt
SHORT_RUN_ROWS = 1 << 14  # runs up to this length are changed in place
REBUILD_DIVISOR = 8  # a run is rebuilt when more than one in this many of its rows has been removed
MAX_ADDRESSED_KEYS = 1 << 24  # up to this number of possible keys, a table of starts replaces the search


class CodeRun:
    """Sorted codes of the index's columns, and the start of each key."""

    def __init__(self, codes: Ints, layout: RowLayout, keys: int) -> None:
        self._layout = layout
        self._keys = keys
        self._value_bits = layout.value_bits(keys)
        self._build(codes)

    def _build(self, codes: Ints) -> None:
        self.codes = codes
        self._removed: Ints = codes[:0]  # sorted
        self._starts: Ints | None = None
        self._projections: dict[tuple[tuple[int, int], ...], Ints] = {}
        key_space = 1 << (self._layout.width - self._value_bits)
        if self._keys and key_space <= min(MAX_ADDRESSED_KEYS, 16 * len(codes) + 1024):
            self._starts = self._starts_of(key_space + 1)

    def _starts_of(self, keys: int) -> Ints:
        starts = np.empty(keys, np.int64)
        write_starts(self.codes, self._value_bits, starts)
        return starts

    def __len__(self) -> int:
        return len(self.codes) - len(self._removed)

    def ranges(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the start and end of each key's rows, removed rows included."""
        if self._starts is not None:
            low, high = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
            read_ranges(keys, self._starts, low, high)
            return low, high
        starts = np.searchsorted(self.codes, keys << self._value_bits)
        return starts, np.searchsorted(self.codes, (keys + 1) << self._value_bits)

    def addressed(self) -> Addressed:
        """Return the run as `kpg.kernels.walk_rule` reads it."""
        starts = self._starts
        row = (
            address(self.codes),
            len(self.codes),
            0 if starts is None else address(starts),
            address(self._removed),
            len(self._removed),
        )
        return row, [self.codes, self._removed, *([] if starts is None else [starts])]

    def remaining(self, rows: Ints) -> Ints | None:
        """Return the positions in `rows` of the rows that were not removed; None if the run has no removed rows."""
        return np.flatnonzero(~contained(self.codes[rows], self._removed)) if len(self._removed) else None

    def purge_removed(self) -> None:
        """Rebuild the run without its removed rows."""
        if len(self._removed):
            self._build(self.codes[~contained(self.codes, self._removed)])

    def remove(self, codes: Ints) -> None:
        """Remove those of the given codes that the run holds."""
        held = codes[contained(codes, self.codes)]
        if not len(held):
            return
        if len(self.codes) <= SHORT_RUN_ROWS:
            self.codes = np.delete(self.codes, np.searchsorted(self.codes, held))
            self._shift_starts(held, -1)
            return
        self._removed = distinct(np.concatenate([self._removed, held]), self._layout.width)
        if len(self._removed) * REBUILD_DIVISOR > len(self.codes):
            self.purge_removed()

    def restore(self, codes: Ints) -> Ints:
        """Restore the codes that were removed from this run; return the other codes."""
        if not len(self._removed):
            return codes
        restored = contained(codes, self._removed)
        if restored.any():
            self._removed = self._removed[~contained(self._removed, codes[restored])]
        return codes[~restored]

    def insert(self, codes: Ints) -> None:
        """Insert the codes that the run does not hold yet, in place."""
        codes = codes[~contained(codes, self.codes)]
        if len(codes):
            self.codes = np.insert(self.codes, np.searchsorted(self.codes, codes), codes)
            self._shift_starts(codes, 1)

    def _shift_starts(self, codes: Ints, by: int) -> None:
        """Adjust the start of every key after inserted or deleted codes."""
        self._projections.clear()
        if self._starts is None:
            return
        if len(codes) > FEW_CHANGED_ROWS:
            self._starts = self._starts_of(len(self._starts))
            return
        for key in (codes >> self._value_bits).tolist():
            self._starts[key + 1 :] += by

    def projection(self, moves: tuple[tuple[int, int], ...]) -> Ints:
        """Return some columns of all rows, moved to other bits. The result is cached."""
        if moves not in self._projections:
            self._projections[moves] = self._layout.rearrange(self.codes, moves)
        return self._projections[moves]


class CodeIndex:
    """The rows of one relation by key."""

    def __init__(self, source: RowLayout, columns: tuple[int, ...], keys: int) -> None:
        self.columns = columns
        self.layout = source.selection(columns, keys)
        self.keys = keys
        self.runs: list[CodeRun] = []
        self._source = source

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    @property
    def row_count(self) -> int:
        """The number of rows, removed ones included."""
        return sum(len(run.codes) for run in self.runs)

    @property
    def nbytes(self) -> int:
        """The size of all codes in bytes."""
        return sum(run.codes.nbytes for run in self.runs)

    def add(self, codes: Ints) -> None:
        """Insert rows. Runs less than twice as long as the new one are merged into it."""
        new = self._rearrange(codes)
        for run in self.runs:
            new = run.restore(new)
        if not len(new):
            return
        if len(new) <= FEW_CHANGED_ROWS and self.runs and len(self.runs[-1].codes) <= SHORT_RUN_ROWS:
            self.runs[-1].insert(distinct(new, self.layout.width))
            return
        parts = [new]
        while self.runs and len(self.runs[-1]) < 2 * sum(map(len, parts)):
            last = self.runs.pop()
            last.purge_removed()
            parts.append(last.codes)
        self.runs.append(CodeRun(distinct(np.concatenate(parts), self.layout.width), self.layout, self.keys))

    def remove(self, codes: Ints) -> None:
        """Remove rows."""
        removed = distinct(self._rearrange(codes), self.layout.width)
        for run in self.runs:
            run.remove(removed)
        self.runs = [run for run in self.runs if len(run)]

    def purge_removed(self) -> None:
        """Rebuild every run without its removed rows, so that `find` returns only current rows."""
        for run in self.runs:
            run.purge_removed()

    def _rearrange(self, codes: Ints) -> Ints:
        if isinstance(self.layout, CodeLayout):
            return self._source.rearrange(codes, [(c, self.layout.shift(at)) for at, c in enumerate(self.columns)])
        return self.layout.encode([self._source.ids(codes, column) for column in self.columns], len(codes))

    def addressed(self) -> list[Addressed]:
        """Return all runs as `kpg.kernels.walk_rule` reads them."""
        return [run.addressed() for run in self.runs]

    def find(self, keys: Ints) -> Iterator[tuple[CodeRun, Ints, Ints]]:
        """Yield each run with the start and end of every key's rows in it."""
        for run in self.runs:
            yield run, *run.ranges(keys)


def contained(codes: Ints, ordered: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return, for each code, whether it occurs in `ordered`, which is sorted."""
    if not len(ordered):
        return np.zeros(len(codes), np.bool_)
    positions = np.minimum(np.searchsorted(ordered, codes), len(ordered) - 1)
    return np.asarray(ordered[positions] == codes)


def distinct(codes: Ints, width: int) -> Ints:
    """Return the distinct codes, of so many bits, in ascending order."""
    ordered = codes.copy()
    sort_words(ordered, 0, width)
    if len(ordered) > 1:
        new = np.empty(len(ordered), np.bool_)
        new[0] = True
        np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
        if not new.all():
            return ordered[new]
    return ordered
