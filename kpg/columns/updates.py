"""Updates in columns: what travels between operators.

    data   int64[lanes, n]          one row of the array per lane of a record
    times  int64[depth, n or 1]     one column stands for all n: a constant
    diffs  int64[width, n or 1]     likewise; width is 1 unless sums ride in the diff

All three are C-contiguous int64, so every kernel is compiled once. The number of updates is `data.shape[1]`, also
when there are no lanes. Arrays are never changed once an `Updates` holds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Updates:
    """Some updates (data, time, diff), in no promised order unless they are tidy."""

    data: Ints
    times: Ints
    diffs: Ints
    tidy: bool = False  # sorted by data, then time, each of these once and with a diff that is not zero

    def __len__(self) -> int:
        return int(self.data.shape[1])

    @property
    def lanes(self) -> int:
        """How many int64 a record takes."""
        return int(self.data.shape[0])

    @property
    def depth(self) -> int:
        """How many coordinates a time has."""
        return int(self.times.shape[0])

    @property
    def width(self) -> int:
        """How many int64 a diff takes."""
        return int(self.diffs.shape[0])

    @property
    def nbytes(self) -> int:
        """What the arrays hold."""
        return self.data.nbytes + self.times.nbytes + self.diffs.nbytes


def constant(values: tuple[int, ...]) -> Ints:
    """A block of one column, standing for any number of equal ones."""
    return np.array(values, np.int64).reshape(len(values), 1)


def spread(block: Ints, n: int) -> Ints:
    """The block with a column for each of n updates, constant or not."""
    if block.shape[1] == n:
        return block
    return np.ascontiguousarray(np.broadcast_to(block, (block.shape[0], n)))


def trim(block: Ints, n: int) -> Ints:
    """The first n columns, holding no more memory than they need."""
    if block.shape[1] == n:
        return block
    return block[:, :n].copy()


def no_updates(lanes: int, depth: int, width: int = 1) -> Updates:
    """No updates at all, of the given shape."""
    return Updates(np.empty((lanes, 0), np.int64), np.zeros((depth, 1), np.int64), np.ones((width, 1), np.int64))


def concatenate(parts: list[Updates]) -> Updates:
    """All updates of some parts of equal shape, constants kept where the parts agree."""
    if len(parts) == 1:
        return parts[0]
    data = np.concatenate([part.data for part in parts], axis=1)
    sizes = [part.data.shape[1] for part in parts]
    times = _concatenate_blocks([part.times for part in parts], sizes)
    return Updates(data, times, _concatenate_blocks([part.diffs for part in parts], sizes))


def common_constant(blocks: list[Ints]) -> Ints | None:
    """The constant that all blocks are, if they are one."""
    first = blocks[0]
    if first.shape[1] == 1:
        value = first.tolist()
        if all(block.shape[1] == 1 and block.tolist() == value for block in blocks):
            return first
    return None


def _concatenate_blocks(blocks: list[Ints], sizes: list[int]) -> Ints:
    constant = common_constant(blocks)
    if constant is not None:
        return constant
    joined = np.empty((blocks[0].shape[0], sum(sizes)), np.int64)
    at = 0
    for block, size in zip(blocks, sizes, strict=True):
        joined[:, at : at + size] = block
        at += size
    return joined
