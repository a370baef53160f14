"""A set of codes that only grows: a bitmap where codes are short, else a hash table.

    insert(codes)                     those that are new
    extend(left, low, high, right)    the new left[i] + right[j] for j in [low[i], high[i])
    runs()                            all codes, ascending, in parts of bounded size

Cost: one bit for each code that could be, at most 256 MB; else 16 to 32 bytes for each that is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.saturate import add, extend, members

DENSE_BITS = 31  # codes of at most so many bits are kept as a bitmap
PART = 1 << 20  # codes given out at a time


class Members:
    """Codes, each once."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self._dense = width <= DENSE_BITS
        words = max(1, (1 << width) >> 6) if self._dense else 1 << 12
        self._table: Ints = np.zeros(words, np.int64) if self._dense else np.full(words, -1, np.int64)

    def __len__(self) -> int:
        return self.count

    @property
    def nbytes(self) -> int:
        """What the set holds."""
        return self._table.nbytes

    @property
    def _mask(self) -> int:
        return -1 if self._dense else len(self._table) - 1

    def insert(self, codes: Ints) -> Ints:
        """Make some codes members; those that are new."""
        self._make_room(len(codes))
        out = np.empty(len(codes), np.int64)
        n = add(codes, self._table, self._mask, out)
        self.count += n
        return out[:n]

    def extend(self, left: Ints, low: Ints, high: Ints, right: Ints) -> Iterator[Ints]:
        """Make sums members; those that are new, in parts."""
        if not len(left):
            return
        room = max(PART, int((high - low).max()))
        start = 0
        while start < len(left):
            self._make_room(room)
            out = np.empty(room, np.int64)
            start, n = extend(left, low, high, right, self._table, self._mask, out, start)
            self.count += n
            if n:
                yield out[:n].copy() if n * 2 < room else out[:n]

    def runs(self) -> Iterator[Ints]:
        """All codes, ascending."""
        if not self._dense:
            everything = np.sort(self._table[self._table >= 0])
            yield from (everything[at : at + PART] for at in range(0, len(everything), PART))
            return
        word = 0
        while word < len(self._table):
            out = np.empty(PART, np.int64)
            word, n = members(self._table, word, out)
            if n:
                yield out[:n]

    def _make_room(self, more: int) -> None:
        """Let the table be at most half full after so many more."""
        if self._dense or 2 * (self.count + more) <= len(self._table):
            return
        codes = self._table[self._table >= 0]
        size = 1 << (2 * (self.count + more) - 1).bit_length()
        self._table = np.full(size, -1, np.int64)
        add(codes, self._table, self._mask, np.empty(len(codes), np.int64))
