"""The arrays of the kernel that runs small loops (kpg.kernels.run_rounds), kept from epoch to epoch.

They begin small and double in the middle of a run. Cost: a run touches as much of them as it has rows.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.memory_budget import reserve
from kpg.columns.row_program import MAX_STACK
from kpg.columns.updates import Ints
from kpg.kernels import loop_rows
from kpg.kernels.run_rounds import MAX_OUTPUT_ROWS, PRESENT, clear_rows, index_rows
from kpg.operators.loop_table import LoopTable

MIN_CAPACITY = 1 << 12  # rows


class LoopArrays:
    """The arrays of the kernel, kept from epoch to epoch."""

    def __init__(self, table: LoopTable) -> None:
        self._table = table
        self.rows: Ints = np.empty((MIN_CAPACITY, loop_rows.FIELDS + table.lanes), np.int64)
        self.heads: Ints = np.full(2 * MIN_CAPACITY, loop_rows.NO_ROW, np.int64)
        self.heap_keys: Ints = np.empty(MIN_CAPACITY, np.int64)
        self.heap_slots, self.stack, self.group, self.spare = [self.heap_keys.copy() for _ in range(4)]
        self.state: Ints = np.zeros(loop_rows.COUNTERS + 2 * len(table.nodes), np.int64)
        self.work: Ints = np.zeros((PRESENT + MAX_OUTPUT_ROWS + 1, max(MAX_STACK, table.lanes + 1)), np.int64)
        self.key: Ints = np.zeros((max(1, table.lanes), 1), np.int64)
        self.ranges: Ints = np.empty(0, np.int64)
        self.cursors: Ints = np.empty(0, np.int64)

    def begin(self, batches: int) -> None:
        """Prepare a run on traces of at most this number of batches."""
        self.state[:] = 0
        self.state[loop_rows.FREE] = loop_rows.NO_ROW
        self.state[loop_rows.FREE_ROWS] = len(self.rows)
        if len(self.cursors) < batches:
            self.ranges, self.cursors = np.empty(4 * batches, np.int64), np.empty(2 * batches, np.int64)

    @property
    def used(self) -> int:
        """The number of rows that were ever used in this run."""
        return int(self.state[loop_rows.USED])

    def grow(self) -> None:
        """Double the capacity, in the middle of a run."""
        before = len(self.rows)
        reserve(2 * self.nbytes)
        self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        self.heads = np.full(2 * len(self.heads), loop_rows.NO_ROW, np.int64)
        for name in ("heap_keys", "heap_slots", "stack", "group", "spare"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.empty_like(array)]))
        self.state[loop_rows.FREE_ROWS] += before
        index_rows(self._table.nodes, self.rows, self.used, self.heads)

    def clear(self) -> None:
        """Remove all rows."""
        clear_rows(self._table.nodes, self.rows, self.used, self.heads)
        self.state[loop_rows.USED] = 0

    @property
    def nbytes(self) -> int:
        """The memory of the arrays that grow, in bytes."""
        return self.rows.nbytes + self.heads.nbytes + 5 * self.stack.nbytes
