"""The pairs of a group and a node that a recursion has reached, in arrays that grow (`kpg.kernels.pair_keys`).

    table.number(groups, nodes)      the number of each pair; new ones are added
    table.make_room()                enlarge the arrays that a kernel found too small

Numbers of pairs are not given back: the owner builds a new table when most of them are unused. Cost: 56 bytes for each
pair, and 8 to 24 for its slots in the pool.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kpg.columns.memory_budget import reserve
from kpg.columns.updates import Ints
from kpg.kernels import neighbour_lists as lists
from kpg.kernels import pair_keys as kernels
from kpg.seminaive.graph_lists import Numbers, resized

MIN_ROWS = 64  # room of each array at first
MAX_KEPT_ROWS = 1 << 16  # of the arrays of an update; larger ones are given back after it


class PairTable:
    """Pairs, their keys, and the arrays of an update."""

    def __init__(self) -> None:
        self.pairs: Ints = np.zeros((MIN_ROWS, kernels.PAIR_COLUMNS), np.int64)
        self.groups: Ints = np.zeros((MIN_ROWS, kernels.GROUP_COLUMNS), np.int64)
        self.pool: Numbers = np.zeros(MIN_ROWS, np.int32)
        self.heads: Numbers = np.zeros(MIN_ROWS, np.int32)  # the last pair of each node
        self.heap: Ints = np.empty((MIN_ROWS, 3), np.int64)
        self.touched: Ints = np.empty((MIN_ROWS, 3), np.int64)
        self.state: Ints = np.zeros(kernels.PAIR_STATE_SIZE, np.int64)
        self.state[kernels.PAIR_COUNT] = 1  # number 0 stands for no pair
        self.pairs[0, lists.HOPS] = -1

    @property
    def count(self) -> int:
        """The number of pairs, pair 0 included."""
        return int(self.state[kernels.PAIR_COUNT])

    @property
    def used(self) -> Ints:
        """The rows of all pairs, pair 0 included."""
        return self.pairs[: self.count]

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes."""
        arrays = (self.pairs, self.groups, self.pool, self.heads, self.heap, self.touched)
        return sum(array.nbytes for array in arrays)

    def fit(self, group_count: int, node_count: int) -> None:
        """Make room for as many groups and nodes."""
        if group_count > len(self.groups):
            self.groups = resized(self.groups, max(group_count, 2 * len(self.groups)))
        if node_count > len(self.heads):
            self.heads = resized(self.heads, max(node_count, 2 * len(self.heads)))
        self.state[lists.NODE_COUNT] = node_count

    def number(self, groups: Ints, nodes: Numbers) -> Ints:
        """Return the number of each pair."""
        numbers, done = np.empty(len(groups), np.int64), 0
        while True:
            arrays = (self.pairs, self.groups, self.pool, self.heads, numbers, self.state)
            done = kernels.number_pairs(groups, nodes, done, *arrays)
            if done == len(groups):
                return numbers
            self.make_room()

    def make_room(self) -> None:
        """Enlarge the arrays that a kernel found too small."""
        self.pairs = self._enlarged(self.pairs, kernels.NEEDED_PAIRS)
        self.pool = self._enlarged(self.pool, kernels.NEEDED_POOL)
        self.heap = self._enlarged(self.heap, kernels.NEEDED_HEAP)
        self.touched = self._enlarged(self.touched, kernels.NEEDED_TOUCHED)

    def _enlarged(self, array: npt.NDArray[Any], element: int) -> npt.NDArray[Any]:
        needed = int(self.state[element])
        if needed <= len(array):
            return array
        size = max(needed, len(array) * 2)
        reserve(size * array.nbytes // len(array))
        return resized(array, size)

    def touch(self, pairs: Ints) -> None:
        """Note the keys of some pairs, which may then change."""
        self.state[kernels.NEEDED_TOUCHED] = len(pairs)
        self.make_room()
        self.touched[: len(pairs), 0] = pairs
        self.touched[: len(pairs), 1:] = self.pairs[pairs][:, [lists.VALUE, lists.HOPS]]
        self.pairs[pairs, lists.MARK] = 1
        self.state[lists.TOUCHED_COUNT] = len(pairs)

    def changes(self, only_presence: bool) -> tuple[Ints, Ints]:
        """Return group, node and value of the rows that have changed, and their diffs; forget that they have."""
        rows = 2 * int(self.state[lists.TOUCHED_COUNT])
        data, diffs = np.empty((3, rows), np.int64), np.empty((1, rows), np.int64)
        n = kernels.write_pair_changes(self.touched, self.pairs, int(only_presence), data, diffs, self.state)
        return data[:, :n], np.ascontiguousarray(diffs[:, :n])

    def give_back(self) -> None:
        """Make the arrays of an update small again if they are large for the pairs that are there."""
        allowed = max(MAX_KEPT_ROWS, self.count // 8)
        self.heap = self.heap if len(self.heap) <= allowed else np.empty((MIN_ROWS, 3), np.int64)
        self.touched = self.touched if len(self.touched) <= allowed else np.empty((MIN_ROWS, 3), np.int64)
        self.state[[kernels.NEEDED_HEAP, kernels.NEEDED_TOUCHED]] = 0
