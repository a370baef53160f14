"""Updates in columns, as operators exchange them.

    data   int64[lanes, n]          one row of the array per lane of a record
    times  int64[depth, n or 1]     a single column is a constant: it stands for all n
    diffs  int64[width, n or 1]     likewise; width is 1 unless the diff also carries sums

All three are C-contiguous int64, so that each kernel is compiled once; only diffs that leave 64 bits are Python ints
(kpg.columns.exact_diffs). The number of updates is `data.shape[1]`, also
for records without lanes. Arrays never change once an `Updates` holds them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kpg.columns.value_class import value_class

Ints: TypeAlias = npt.NDArray[np.int64]


@value_class
class Updates:
    """Updates (data, time, diff), in any order unless `consolidated` is set."""

    data: Ints
    times: Ints
    diffs: Ints
    consolidated: bool = False  # sorted by data, then time, each pair once and with a nonzero diff
    known_mass: int = -1  # a bound of Σ |diff|, computed on first use: see kpg.columns.exact_diffs

    def __len__(self) -> int:
        return int(self.data.shape[1])

    def with_times(self, times: Ints) -> Updates:
        """Return the same updates at other times, in no particular order."""
        return Updates(self.data, times, self.diffs, known_mass=self.known_mass)

    def with_data(self, data: Ints) -> Updates:
        """Return updates of other records, one for each of these, with the same times and diffs."""
        return Updates(data, self.times, self.diffs, known_mass=self.known_mass)

    @property
    def lanes(self) -> int:
        """The number of int64 in a record."""
        return int(self.data.shape[0])

    @property
    def depth(self) -> int:
        """The number of coordinates of a time."""
        return int(self.times.shape[0])

    @property
    def width(self) -> int:
        """The number of int64 in a diff."""
        return int(self.diffs.shape[0])

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return self.data.nbytes + self.times.nbytes + self.diffs.nbytes


def constant(values: tuple[int, ...]) -> Ints:
    """Return a block of one column, which stands for any number of equal ones."""
    block: Ints = np.empty((len(values), 1), np.int64)
    for lane, value in enumerate(values):  # faster than a conversion of the few values
        block[lane, 0] = value
    return block


def spread(block: Ints, n: int) -> Ints:
    """Return the block with a column for each of n updates; a constant is repeated."""
    if block.shape[1] == n:
        return block
    return block.repeat(n, axis=1)


def trim(block: Ints, n: int) -> Ints:
    """Return the first n columns, in memory of their own."""
    if block.shape[1] == n:
        return block
    return block[:, :n].copy()


@lru_cache(maxsize=256)
def no_updates(lanes: int, depth: int, width: int = 1) -> Updates:
    """Return an empty `Updates` of the given shape."""
    return Updates(np.empty((lanes, 0), np.int64), np.zeros((depth, 1), np.int64), np.ones((width, 1), np.int64))


def concatenate(parts: list[Updates]) -> Updates:
    """Return the updates of several parts of equal shape as one; a constant that all parts share stays constant."""
    if len(parts) == 1:
        return parts[0]
    data = np.concatenate([part.data for part in parts], axis=1)
    sizes = [part.data.shape[1] for part in parts]
    times = _concatenate_blocks([part.times for part in parts], sizes)
    return Updates(data, times, _concatenate_blocks([part.diffs for part in parts], sizes))


def common_constant(blocks: list[Ints]) -> Ints | None:
    """Return the constant that all blocks share, None if they share none."""
    first = blocks[0]
    if first.shape[1] == 1:
        value = first.tolist()
        for block in blocks:
            if block.shape[1] != 1 or block.tolist() != value:
                return None
        return first
    return None


def _concatenate_blocks(blocks: list[Ints], sizes: list[int]) -> Ints:
    constant = common_constant(blocks)
    if constant is not None:
        return constant
    if [block.shape[1] for block in blocks] == sizes:
        return np.concatenate(blocks, axis=1)
    exact = True in [block.dtype.hasobject for block in blocks]
    joined: Ints = np.empty((blocks[0].shape[0], sum(sizes)), object if exact else np.int64)
    offset = 0
    for block, size in zip(blocks, sizes, strict=True):
        joined[:, offset : offset + size] = block
        offset += size
    return joined
