"""A set of row codes without removals, and a map from row codes to levels.

    insert(codes)                     returns the codes that are new
    extend(left, low, high, right)    inserts left[i] + right[j] for j in [low[i], high[i]); yields the new ones
    runs()                            yields all codes in ascending order, in parts of bounded size
    pack()                            replaces a large hash table by its sorted codes, until the next insertion

The set is a hash table until a bitmap takes at most `BITMAP_SIZE_FACTOR` times its memory. Cost: 16 to 32 bytes for
each member, 11 to 21 in a table of `LARGE_SLOTS` and more, or one bit for each possible code, at most 256 MB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from kpg.columns.memory_budget import reserve
from kpg.columns.pause_points import ROWS_PER_ASIDE, aside, at_most_per_pause, pause
from kpg.columns.updates import Ints
from kpg.columns.word_order import sort_words
from kpg.kernels.code_chains import insert_chain_sums
from kpg.kernels.code_sets import (
    bitmap_members,
    insert_codes,
    insert_slots,
    insert_sums,
    read_levels,
    table_members,
    write_levels,
)
from kpg.kernels.level_records import BITMAP, HASHED, HASHED_LEVELS, LEVELS_BY_CODE
from kpg.seminaive.array_addresses import Addressed, address

if TYPE_CHECKING:
    from kpg.seminaive.chain_index import ChainIndex

MAX_LEVEL_ARRAY_BITS = 16  # levels of codes up to this width are an array indexed by code
MAX_BITMAP_BITS = 31  # sets of codes up to this width may be bitmaps: 256 MB
BITMAP_SIZE_FACTOR = 4  # a bitmap replaces the hash table when it takes at most this multiple of its words
MIN_HASH_SLOTS = 1 << 10  # slots of the smallest hash table
LARGE_SLOTS = 1 << 26  # tables of this size (512 MB) are filled to three quarters instead of half before they grow
PART_CODES = 1 << 20  # the maximum number of codes in one part of `runs` and `extend`
WORD_BITS = 64  # codes in one word of a bitmap


def has_room(slots: int, count: int) -> bool:
    """Return whether a hash table of this size may hold this many codes."""
    return 4 * count <= (3 if slots >= LARGE_SLOTS else 2) * slots


def slots_for(count: int) -> int:
    """Return the size of the smallest hash table with room for this many codes."""
    slots = MIN_HASH_SLOTS
    while not has_room(slots, count):
        slots *= 2
    return slots


class CodeSet:
    """Distinct row codes."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self._width = width
        self._bitmap_words = max(1, (1 << width) >> 6) if width <= MAX_BITMAP_BITS else 0  # 0: no bitmap
        self._is_bitmap = 0 < self._bitmap_words <= BITMAP_SIZE_FACTOR * MIN_HASH_SLOTS
        self._table: Ints = self._empty_bitmap() if self._is_bitmap else np.full(MIN_HASH_SLOTS, -1, np.int64)
        self._packed: Ints | None = None  # sorted codes instead of the table

    def _empty_bitmap(self) -> Ints:
        return np.zeros(self._bitmap_words, np.int64)

    def __len__(self) -> int:
        return self.count

    @property
    def nbytes(self) -> int:
        """The size of the set in bytes."""
        return self._table.nbytes + (0 if self._packed is None else self._packed.nbytes)

    @property
    def _mask(self) -> int:
        return -1 if self._is_bitmap else len(self._table) - 1

    def insert(self, codes: Ints) -> Ints:
        """Insert codes; return those that are new."""
        self._reserve(len(codes))
        out = np.empty(len(codes), np.int64)
        n = insert_codes(codes, self._table, self._mask, out)
        self.count += n
        return out[:n]

    def extend(self, left: Ints, low: Ints, high: Ints, right: Ints) -> Iterator[Ints]:
        """Insert the sums left[i] + right[j] for j in [low[i], high[i]); yield the new ones in parts."""
        if not len(left):
            return
        matches = high - low
        capacity = max(min(at_most_per_pause(PART_CODES), int(matches.sum())), int(matches.max()))
        start = 0
        while start < len(left):
            pause()
            self._reserve(capacity)
            out = np.empty(capacity, np.int64)
            start, n = insert_sums(left, low, high, right, self._table, self._mask, out, start)
            self.count += n
            if n:
                yield out[:n].copy() if n * 2 < capacity else out[:n]

    def extend_chains(
        self, left: Ints, keys: Ints, index: ChainIndex, moves: tuple[tuple[int, int], ...], limit: int
    ) -> Iterator[Ints]:
        """Insert the sums of left[i] and moved columns of the rows that the index has for keys[i]; yield the new ones.

        A move is a column of the index and its lowest bit in the sum. Only the first `limit` rows of the index count.
        """
        capacity = min(at_most_per_pause(PART_CODES), index.matches(keys))
        sources = np.array([index.layout.shift(column) for column, _ in moves], np.int64)
        targets = np.array([bit for _, bit in moves], np.int64)
        masks = np.array([index.layout.masks[column] for column, _ in moves], np.int64)
        row, link = 0, -1
        while capacity and row < len(left):
            pause()
            self._reserve(capacity)
            out = np.empty(capacity, np.int64)
            chains = (index.codes, index.following, index.heads, sources, targets, masks)
            row, link, n = insert_chain_sums(left, keys, *chains, self._table, self._mask, out, limit, row, link)
            self.count += n
            if n:
                yield out[:n].copy() if n * 2 < capacity else out[:n]

    def addressed(self) -> Addressed:
        """Return the set as a table of levels that are all 0 (`kpg.kernels.level_records`)."""
        self._reserve(0)
        return (BITMAP if self._is_bitmap else HASHED, address(self._table), self._mask, 0), [self._table]

    def runs(self) -> Iterator[Ints]:
        """Yield all codes in ascending order, in parts."""
        if not self._is_bitmap:
            codes = self._sorted() if self._packed is None else self._packed
            yield from (codes[at : at + PART_CODES] for at in range(0, len(codes), PART_CODES))
            return
        word = 0
        while word < len(self._table):
            out = np.empty(min(PART_CODES, self.count + WORD_BITS), np.int64)  # a word is written whole
            word, n = bitmap_members(self._table, word, out)
            if n:
                yield out[:n]

    def pack(self) -> None:
        """Replace a large hash table by its sorted codes. The next insertion builds the table again."""
        if not self._is_bitmap and len(self._table) >= LARGE_SLOTS:
            self._packed, self._table = self._sorted(), np.full(MIN_HASH_SLOTS, -1, np.int64)

    def _sorted(self) -> Ints:
        out = np.empty(self.count + 1, np.int64)
        codes = out[: table_members(self._table, out)]
        sort_words(codes, 0, self._width)
        return codes

    def _reserve(self, more: int) -> None:
        """Grow the hash table so that it has room for `more` insertions, or turn it into a bitmap."""
        if self._packed is not None:
            self._table, self._packed = self._packed, None  # full, so that it grows
        if self._is_bitmap or has_room(len(self._table), self.count + more):
            return
        before, slots = self._table, slots_for(self.count + more)
        self._is_bitmap = 0 < self._bitmap_words <= BITMAP_SIZE_FACTOR * slots
        reserve(8 * (self._bitmap_words if self._is_bitmap else slots))
        self._table = self._empty_bitmap() if self._is_bitmap else np.full(slots, -1, np.int64)
        insert_slots(before, self._table, self._mask)


def empty_slots(count: int) -> Ints:
    """Return an array of -1, made in parts: the system takes longer to find memory for it than to fill it."""
    slots = np.empty(count, np.int64)
    for begin in range(0, count, ROWS_PER_ASIDE):
        part = slots[begin : begin + ROWS_PER_ASIDE]
        aside(len(part), np.copyto, part, -1)
    return slots


class CodeLevels:
    """A map from row codes to levels; -1 for codes without one. An array where codes are short, else a hash table."""

    def __init__(self, width: int) -> None:
        self._is_array = width <= min(MAX_LEVEL_ARRAY_BITS, MAX_BITMAP_BITS)
        self._used_slots = 0
        self._table: Ints = np.full(1 if self._is_array else MIN_HASH_SLOTS, -1, np.int64)
        self._levels: Ints = np.full(1 << width if self._is_array else MIN_HASH_SLOTS, -1, np.int64)

    @classmethod
    def of_rounds(cls, width: int, codes: CodeSet, rounds: list[tuple[Ints, Ints]]) -> CodeLevels:
        """Return a map from the codes of some rounds to their levels: one for the codes of a round, or one for each.

        `codes` holds the codes of all rounds. The caller must not use it afterwards: the map may take over its table.
        """
        levels = cls._with_room_for(width, codes)
        for round_codes, of_codes in rounds:
            for begin in range(0, len(round_codes), ROWS_PER_ASIDE):  # between two parts it may be ended
                part = slice(begin, begin + ROWS_PER_ASIDE)
                part_levels = of_codes if len(of_codes) == 1 else of_codes[part]
                aside(len(round_codes[part]), levels._write, round_codes[part], part_levels)
        return levels

    @classmethod
    def _with_room_for(cls, width: int, codes: CodeSet) -> CodeLevels:
        """Return a map without levels that has a slot for each code."""
        levels = cls(width)
        if codes._is_bitmap and not levels._is_array:
            slots = slots_for(len(codes))
            reserve(16 * slots)
            levels._table, levels._levels = empty_slots(slots), empty_slots(slots)
        elif not levels._is_array:
            levels._table, levels._used_slots = codes._table, codes.count
            levels._levels = empty_slots(len(levels._table))
        return levels

    @property
    def nbytes(self) -> int:
        """The size of the map in bytes."""
        return self._table.nbytes + self._levels.nbytes

    @property
    def row_count(self) -> int:
        """The number of codes that have, or had, a level: an upper bound that costs nothing."""
        return int((self._levels >= 0).sum()) if self._is_array else self._used_slots

    def get(self, codes: Ints) -> Ints:
        """Return the level of each code; -1 for codes without one."""
        if self._is_array:
            return self._levels[codes]
        out = np.empty(len(codes), np.int64)
        read_levels(codes, self._table, len(self._table) - 1, self._levels, out)
        return out

    def addressed(self) -> Addressed:
        """Return the map as a table of levels (`kpg.kernels.level_records`)."""
        kind = LEVELS_BY_CODE if self._is_array else HASHED_LEVELS
        row = kind, address(self._table), len(self._table) - 1, address(self._levels)
        return row, [self._table, self._levels]

    def put(self, codes: Ints, level: int) -> None:
        """Set the level of codes."""
        if self._is_array:
            self._levels[codes] = level
            return
        self._reserve(len(codes))
        self._used_slots += write_levels(codes, np.array([level]), self._table, len(self._table) - 1, self._levels)

    def put_each(self, codes: Ints, levels: Ints) -> None:
        """Set the level of each code to its own; one level is that of all."""
        if not self._is_array and len(codes):
            self._reserve(len(codes))
        self._write(codes, levels)

    def _write(self, codes: Ints, levels: Ints) -> None:
        """Set the level of each code; a hash table has room for all of them."""
        if self._is_array:
            self._levels[codes] = levels
        elif len(codes):
            self._used_slots += write_levels(codes, levels, self._table, len(self._table) - 1, self._levels)

    def items(self) -> tuple[Ints, Ints]:
        """Return all codes that have a level, and their levels."""
        slots = np.flatnonzero(self._levels >= 0)
        return (slots if self._is_array else self._table[slots]), self._levels[slots]

    def _reserve(self, more: int) -> None:
        if has_room(len(self._table), self._used_slots + more):
            return
        codes, levels = self.items()
        slots = slots_for(len(codes) + more)
        reserve(16 * slots)
        self._table, self._levels = np.full(slots, -1, np.int64), np.full(slots, -1, np.int64)
        self._used_slots = len(codes)
        if len(codes):
            write_levels(codes, levels, self._table, slots - 1, self._levels)
