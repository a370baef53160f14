"""A set of codes that only grows: a hash table, or a bitmap once that is not much larger; and levels of codes.

    insert(codes)                     those that are new
    extend(left, low, high, right)    the new left[i] + right[j] for j in [low[i], high[i])
    runs()                            all codes, ascending, in parts of bounded size

Cost: 16 to 32 bytes for each member, or one bit for each code that could be one, at most 256 MB.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.code_sets import add, extend, lookup, members, store

LEVEL_BITS = 16  # codes of at most so many bits have their levels in an array
DENSE_BITS = 31  # codes of at most so many bits may be kept as a bitmap
DENSE_ROOM = 4  # when it takes at most so many times the room of a hash table
SLOTS = 1 << 10  # of the smallest hash table
PART = 1 << 20  # codes given out at a time


class CodeSet:
    """Codes, each once."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self._words = max(1, (1 << width) >> 6) if width <= DENSE_BITS else 0  # of a bitmap, if there may be one
        self._dense = 0 < self._words <= DENSE_ROOM * SLOTS
        self._table: Ints = np.zeros(self._words, np.int64) if self._dense else np.full(SLOTS, -1, np.int64)

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
        matches = high - low
        room = max(min(PART, int(matches.sum())), int(matches.max()))
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
        """Let the table be at most half full after so many more, or become a bitmap."""
        if self._dense or 2 * (self.count + more) <= len(self._table):
            return
        codes = self._table[self._table >= 0]
        size = 1 << (2 * (self.count + more) - 1).bit_length()
        self._dense = 0 < self._words <= DENSE_ROOM * size
        self._table = np.zeros(self._words, np.int64) if self._dense else np.full(size, -1, np.int64)
        add(codes, self._table, self._mask, np.empty(len(codes), np.int64))


class CodeLevels:
    """A number for each of some codes, -1 for others: an array where codes are short, else a hash table."""

    def __init__(self, width: int) -> None:
        self._dense = width <= min(LEVEL_BITS, DENSE_BITS)
        self._slots = 0
        self._table: Ints = np.full(1 if self._dense else SLOTS, -1, np.int64)
        self._levels: Ints = np.full(1 << width if self._dense else SLOTS, -1, np.int64)

    @classmethod
    def of_rounds(cls, width: int, members: CodeSet, rounds: list[Ints]) -> CodeLevels:
        """Of the codes of each round its number; the members are those codes, and give their table away."""
        made = cls(width)
        if made._dense or members._dense:
            for level, codes in enumerate(rounds):
                made.put(codes, level)
            return made
        made._table, made._slots = members._table, members.count
        made._levels = np.full(len(made._table), -1, np.int64)
        for level, codes in enumerate(rounds):
            store(codes, np.array([level]), made._table, len(made._table) - 1, made._levels)
        return made

    @property
    def nbytes(self) -> int:
        """What it holds."""
        return self._table.nbytes + self._levels.nbytes

    def get(self, codes: Ints) -> Ints:
        """The level of each code."""
        if self._dense:
            return self._levels[codes]
        out = np.empty(len(codes), np.int64)
        lookup(codes, self._table, len(self._table) - 1, self._levels, out)
        return out

    def put(self, codes: Ints, level: int) -> None:
        """Give some codes a level."""
        if self._dense:
            self._levels[codes] = level
            return
        self._make_room(len(codes))
        self._slots += store(codes, np.array([level]), self._table, len(self._table) - 1, self._levels)

    def items(self) -> tuple[Ints, Ints]:
        """All codes that have a level, and their levels."""
        there = np.flatnonzero(self._levels >= 0)
        return (there if self._dense else self._table[there]), self._levels[there]

    def _make_room(self, more: int) -> None:
        if 2 * (self._slots + more) <= len(self._table):
            return
        codes, levels = self.items()
        size = max(SLOTS, 1 << (2 * (len(codes) + more) - 1).bit_length())
        self._table, self._levels = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
        self._slots = len(codes)
        if len(codes):
            store(codes, levels, self._table, size - 1, self._levels)
