"""An index of row codes by one column that only grows: chains of the rows of each key (`kpg.kernels.code_chains`).

A derivation from scratch adds rows to the indexes of derived relations in each round, and looks up the rows of the
round in them. Sorted runs would be sorted and merged again and again, and each key looked up in several of them.

Cost: an addition is linear in the added rows, a lookup one access for each key and one for each match. Memory is 12 to
24 bytes a row, and 8 bytes for each possible key.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kpg.columns.memory_budget import reserve
from kpg.columns.pause_points import at_most_per_pause
from kpg.columns.updates import Ints
from kpg.kernels.code_chains import count_links, expand_chains, link_codes
from kpg.seminaive.array_addresses import Addressed, address
from kpg.seminaive.code_layout import CodeLayout, RowLayout
from kpg.seminaive.partial_solutions import MAX_SLICE_ROWS

MAX_CHAINED_KEYS = 1 << 24  # possible keys of an index by chains
MIN_LINKS = 1 << 10  # room for links in an empty index

Links = npt.NDArray[np.int32]


class ChainIndex:
    """The rows of one relation by one column, all columns included."""

    def __init__(self, source: CodeLayout, columns: tuple[int, ...]) -> None:
        self.columns = columns
        self.layout = source.selection(columns, 1)
        self.codes: Ints = np.empty(MIN_LINKS, np.int64)
        self.following: Links = np.empty(MIN_LINKS, np.int32)
        self.heads: Links = np.full(1 << self.layout.bits[0], -1, np.int32)
        self.lengths: Links = np.zeros(1 << self.layout.bits[0], np.int32)
        self._source = source
        self._used = 0
        self._earlier: int | None = None  # rows of earlier rounds, if known

    @staticmethod
    def can_index(source: RowLayout, columns: tuple[int, ...], keys: int) -> bool:
        """Return whether an index by chains can hold some columns of a layout."""
        is_whole = sorted(columns) == list(range(source.arity))
        return (
            isinstance(source, CodeLayout)
            and keys == 1
            and is_whole
            and 1 << source.bits[columns[0]] <= MAX_CHAINED_KEYS
        )

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self._used

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.codes.nbytes + self.following.nbytes + self.heads.nbytes + self.lengths.nbytes

    def add(self, codes: Ints) -> None:
        """Add rows that the index does not hold."""
        if self._used + len(codes) > len(self.codes):
            size = 2 * (self._used + len(codes))
            reserve(12 * size)
            self.codes = np.concatenate([self.codes, np.empty(size - len(self.codes), np.int64)])
            self.following = np.concatenate([self.following, np.empty(size - len(self.following), np.int32)])
        new = self._source.rearrange(codes, [(c, self.layout.shift(at)) for at, c in enumerate(self.columns)])
        link_codes(new, self.layout.value_bits(1), self._used, self.codes, self.following, self.heads, self.lengths)
        self._used += len(codes)

    def trim(self) -> None:
        """Give back the room for further rows."""
        self.codes, self.following = self.codes[: self._used].copy(), self.following[: self._used].copy()

    def addressed(self) -> list[Addressed]:
        """Return the chains as `kpg.kernels.walk_rule` reads them."""
        row = address(self.codes), address(self.following), address(self.heads), len(self.heads), 0
        return [(row, [self.codes, self.following, self.heads])]

    def begin_round(self, earlier: int | None = None) -> None:
        """Note that the rows after the first `earlier` ones, by default those added from now on, are of a new round."""
        self._earlier = self._used if earlier is None else earlier

    def limit(self, only_earlier: bool) -> int:
        """Return the number of rows to join with: all, or those of earlier rounds if these are known."""
        return self._used if self._earlier is None or not only_earlier else self._earlier

    def matches(self, keys: Ints) -> int:
        """Return the number of rows that all keys have together."""
        return int(count_links(keys, self.lengths))

    def pairs(self, keys: Ints, limit: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield the positions of keys and the numbers of their rows below a limit, in parts of bounded size."""
        room = min(at_most_per_pause(MAX_SLICE_ROWS), self.matches(keys))
        row, link = 0, -1
        while room and row < len(keys):
            lefts, rights = np.empty(room, np.int64), np.empty(room, np.int64)
            row, link, n = expand_chains(keys, self.following, self.heads, lefts, rights, limit, row, link)
            if n:
                yield lefts[:n], rights[:n]
