"""Layouts of row codes: how the ids of a row's columns form one int64.

    CodeLayout(bits)         the ids side by side in bits; column 0 takes the highest bits, so codes sort as rows of ids
    PairedLayout(...)        for rows that need more than 62 bits: two halves, each a tuple with an id of its own
    TupleIds                 the ids of tuples: an id stands for a pair of ids of shorter tuples

Both layouts have the same methods. A code is never negative. Cost of a paired code: one lookup in a hash table for
each tuple of several columns, and 24 to 48 bytes for each distinct tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from kpg.columns.memory_budget import reserve
from kpg.columns.updates import Ints
from kpg.errors import Overflow
from kpg.kernels.code_sets import move_columns
from kpg.seminaive.code_set import CodeLevels
from kpg.seminaive.row_codes import sorted_distinct

MAX_CODE_BITS = 62  # a code must be a non-negative int64, and the sum of two parts must not overflow
HALF_BITS = 31  # of the id of a tuple, or of a value: half of a code
HALF_MASK = (1 << HALF_BITS) - 1


@dataclass(frozen=True, slots=True)
class CodeLayout:
    """The position of each column's id within the code of a row."""

    bits: tuple[int, ...]  # bits of the ids of each column; at most 62 together
    shifts: tuple[int, ...] = field(init=False)  # the lowest bit of each column
    masks: tuple[int, ...] = field(init=False)
    width: int = field(init=False)  # the number of bits of a code

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", sum(self.bits))
        object.__setattr__(self, "shifts", tuple(sum(self.bits[column + 1 :]) for column in range(len(self.bits))))
        object.__setattr__(self, "masks", tuple((1 << bits) - 1 for bits in self.bits))

    @property
    def arity(self) -> int:
        """The number of columns."""
        return len(self.bits)

    @property
    def is_ordered(self) -> bool:
        """Whether codes sort as rows of ids."""
        return True

    def shift(self, column: int) -> int:
        """Return the lowest bit of a column."""
        return self.shifts[column]

    def value_bits(self, keys: int) -> int:
        """Return the number of bits below the first `keys` columns."""
        return sum(self.bits[keys:])

    def encode(self, columns: Sequence[Ints], size: int) -> Ints:
        """Return the codes of rows, given the ids of each column."""
        if not columns:
            return np.zeros(size, np.int64)
        codes = columns[0] << self.shifts[0]
        for ids, shift in zip(columns[1:], self.shifts[1:], strict=True):
            codes |= ids << shift
        return codes

    def key(self, columns: Sequence[Ints], size: int) -> Ints:
        """Return the keys made of the ids of the first columns."""
        if not columns:
            return np.zeros(size, np.int64)
        codes = columns[0]
        for ids, bits in zip(columns[1:], self.bits[1:], strict=False):
            codes = (codes << bits) | ids
        return codes

    def ids(self, codes: Ints, column: int) -> Ints:
        """Return the ids of one column."""
        return (codes >> self.shifts[column]) & self.masks[column]

    def rearrange(self, codes: Ints, moves: Sequence[tuple[int, int]]) -> Ints:
        """Return codes of another layout. Each move is a column of this layout and its lowest bit in the other one."""
        out = np.empty(len(codes), np.int64)
        source = np.array([self.shifts[column] for column, _ in moves], np.int64)
        target = np.array([bit for _, bit in moves], np.int64)
        masks = np.array([self.masks[column] for column, _ in moves], np.int64)
        move_columns(codes, source, target, masks, out)
        return out

    def selection(self, columns: tuple[int, ...], keys: int) -> CodeLayout:
        """Return the layout of some columns of this layout."""
        return CodeLayout(tuple(self.bits[column] for column in columns))


@dataclass(frozen=True, eq=False, slots=True)
class PairedLayout:
    """Codes of two halves of 31 bits: the id of the tuple of the first `split` columns, and that of the others."""

    bits: tuple[int, ...]
    domains: tuple[int, ...]  # of the columns: equal domains share the ids of tuples
    split: int
    tuples: TupleIds

    @property
    def arity(self) -> int:
        """The number of columns."""
        return len(self.bits)

    @property
    def width(self) -> int:
        """The number of bits of a code."""
        return 2 * HALF_BITS

    @property
    def is_ordered(self) -> bool:
        """Whether codes sort as rows of ids. Tuples get their ids in the order of their arrival."""
        return False

    def value_bits(self, keys: int) -> int:
        """Return the number of bits below the first `keys` columns."""
        assert keys == self.split
        return HALF_BITS

    def encode(self, columns: Sequence[Ints], size: int) -> Ints:
        """Return the codes of rows, given the ids of each column."""
        high = self.tuples.assign(self.domains[: self.split], columns[: self.split], size)
        return (high << HALF_BITS) | self.tuples.assign(self.domains[self.split :], columns[self.split :], size)

    def key(self, columns: Sequence[Ints], size: int) -> Ints:
        """Return the keys made of the ids of the first columns; -1 for keys that no row has."""
        assert len(columns) == self.split
        return self.tuples.lookup(self.domains[: self.split], columns, size)

    def ids(self, codes: Ints, column: int) -> Ints:
        """Return the ids of one column."""
        if column < self.split:
            return self.tuples.column(self.domains[: self.split], codes >> HALF_BITS, column)
        return self.tuples.column(self.domains[self.split :], codes & HALF_MASK, column - self.split)

    def rearrange(self, codes: Ints, moves: Sequence[tuple[int, int]]) -> Ints:
        """Return codes of another layout. Each move is a column of this layout and its lowest bit in the other one."""
        out = np.zeros(len(codes), np.int64)
        for column, bit in moves:
            out |= self.ids(codes, column) << bit
        return out

    def selection(self, columns: tuple[int, ...], keys: int) -> RowLayout:
        """Return the layout of some columns of this layout, of which the first `keys` are a key."""
        bits, domains = tuple(self.bits[c] for c in columns), tuple(self.domains[c] for c in columns)
        return layout_of(bits, domains, keys, self.tuples)


RowLayout: TypeAlias = CodeLayout | PairedLayout


def layout_of(bits: tuple[int, ...], domains: tuple[int, ...], split: int, tuples: TupleIds) -> RowLayout:
    """Return the layout of rows: packed if their bits fit a code, else paired."""
    return CodeLayout(bits) if sum(bits) <= MAX_CODE_BITS else PairedLayout(bits, domains, split, tuples)


def recode(codes: Ints, before: RowLayout, after: RowLayout) -> Ints:
    """Return the codes of the same rows in another layout."""
    if isinstance(before, PairedLayout) and isinstance(after, PairedLayout) and before.split == after.split:
        return codes  # ids of tuples do not depend on the bits of columns
    if isinstance(before, CodeLayout) and isinstance(after, CodeLayout):
        return before.rearrange(codes, [(column, after.shift(column)) for column in range(after.arity)])
    return after.encode([before.ids(codes, column) for column in range(after.arity)], len(codes))


class TupleIds:
    """Ids of tuples of ids. A tuple of one column is its id; a longer one is a pair of shorter tuples."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[int, ...], PairIds] = {}  # by the domains of the columns

    @property
    def nbytes(self) -> int:
        """The size of all tables in bytes."""
        return sum(pairs.nbytes for pairs in self._pairs.values())

    def assign(self, domains: tuple[int, ...], columns: Sequence[Ints], size: int) -> Ints:
        """Return the ids of tuples; new tuples get new ids."""
        if len(domains) < 2:
            return columns[0] if domains else np.zeros(size, np.int64)
        half = len(domains) // 2
        left = self.assign(domains[:half], columns[:half], size)
        right = self.assign(domains[half:], columns[half:], size)
        return self._pairs.setdefault(domains, PairIds()).assign((left << HALF_BITS) | right)

    def lookup(self, domains: tuple[int, ...], columns: Sequence[Ints], size: int) -> Ints:
        """Return the ids of tuples; -1 for tuples without one."""
        if len(domains) < 2:
            return columns[0] if domains else np.zeros(size, np.int64)
        half = len(domains) // 2
        left = self.lookup(domains[:half], columns[:half], size)
        right = self.lookup(domains[half:], columns[half:], size)
        known = (left >= 0) & (right >= 0)
        pairs = self._pairs.setdefault(domains, PairIds())
        return np.where(known, pairs.lookup(np.where(known, (left << HALF_BITS) | right, 0)), -1)

    def column(self, domains: tuple[int, ...], tuples: Ints, at: int) -> Ints:
        """Return the ids of one column of tuples."""
        if len(domains) < 2:
            return tuples
        half = len(domains) // 2
        pairs = self._pairs.setdefault(domains, PairIds()).words[tuples]
        if at < half:
            return self.column(domains[:half], pairs >> HALF_BITS, at)
        return self.column(domains[half:], pairs & HALF_MASK, at - half)


class PairIds:
    """Ids 0, 1, 2, … of pairs; a pair is one word of two ids."""

    def __init__(self) -> None:
        self._ids = CodeLevels(2 * HALF_BITS)
        self._buffer: Ints = np.empty(1024, np.int64)
        self._count = 0

    @property
    def words(self) -> Ints:
        """The pair of each id."""
        return self._buffer[: self._count]

    @property
    def nbytes(self) -> int:
        """The size of the table in bytes."""
        return self._ids.nbytes + self._buffer.nbytes

    def lookup(self, words: Ints) -> Ints:
        """Return the ids of pairs; -1 for pairs without one."""
        return self._ids.get(words)

    def assign(self, words: Ints) -> Ints:
        """Return the ids of pairs; new pairs get new ids."""
        ids = self._ids.get(words)
        missing = np.flatnonzero(ids < 0)
        if len(missing):
            self._append(sorted_distinct(words[missing]))
            ids[missing] = self._ids.get(words[missing])
        return ids

    def _append(self, new: Ints) -> None:
        count = self._count + len(new)
        if count > HALF_MASK:
            raise Overflow("a recursion has too many distinct combinations of values", detail=f"{count:,} of them.")
        if count > len(self._buffer):
            reserve(8 * 2 * count)
            buffer = np.empty(2 * count, np.int64)
            buffer[: self._count] = self.words
            self._buffer = buffer
        self._buffer[self._count : count] = new
        self._ids.put_each(new, np.arange(self._count, count))
        self._count = count
