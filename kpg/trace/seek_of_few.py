"""Pair few rows of one time with a trace at once, given its search table: what the joins of a direct run need.

    pairs(rows, side, table, batches)  =  all pairs of kpg.trace.seek_batches.Seek, or None where that must be used

It applies to times of one coordinate and diffs of one lane, to at most MAX_ROWS rows with at most MAX_PAIRS pairs, none
of them after the rows, and only while no product can leave 64 bits.
Cost: one kernel call.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kpg.columns.exact_diffs import MAX_MASS, mass, set_mass
from kpg.columns.updates import Ints, Updates
from kpg.kernels.seek_few import seek_few
from kpg.trace.search_table import SearchTable

MAX_ROWS: Final = 64
MAX_PAIRS: Final = 512


class SeekOfFew:
    """The pairs of few rows with the rows of a trace, projected to some lanes."""

    def __init__(self, key_lanes: int, projection: Ints) -> None:
        self._key_lanes, self._projection = key_lanes, projection

    def pairs(self, rows: Updates, side: int, table: SearchTable, batches: int) -> Updates | None:
        """Return all pairs of some sorted rows of one side with the first batches of a table; None if it cannot."""
        bound = mass(rows) * table.mass
        n = rows.data.shape[1]
        if bound > MAX_MASS or n > MAX_ROWS or rows.times.shape[1] > 1 or rows.diffs.shape[0] > 1:
            return None
        data, diffs = np.empty((self._projection.shape[0], MAX_PAIRS), np.int64), np.empty((1, MAX_PAIRS), np.int64)
        n, alike = seek_few(
            rows.data, rows.times, rows.diffs, self._key_lanes, table.rows, batches, side, self._projection, data, diffs
        )
        if n < 0:
            return None
        pairs = Updates(data[:, :n].copy(), rows.times, diffs[:, : 1 if alike else n].copy())
        # The sum of products is at most the product of the sums. But a chain of joins would multiply that bound again
        # and again, so the exact sum is noted where it is known.
        set_mass(pairs, n * abs(int(diffs[0, 0])) if alike else bound)
        return pairs
