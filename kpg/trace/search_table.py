"""The addresses of a trace's batches, kept between reads: operators that look up few keys at a time need no new table.

    table.rows[: table.count]     int64[batches, FIELDS], as kernels read them: see kpg.trace.batch_table
    table.mass                    a bound of Σ |diff| over all batches
    table.keys_until_rebuild      after as many searched keys, some batch deserves a lookup table

A spine builds the table on first use, appends each new batch to it, and drops it before it merges. The table keeps its
batches alive, so the addresses stay valid.
Cost: one row of integers for each new batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpg.columns.exact_diffs import is_exact, mass
from kpg.columns.updates import Ints
from kpg.kernels.array_address import FIELDS
from kpg.kernels.batch_addresses import write_addresses
from kpg.trace.batch import Batch
from kpg.trace.batch_table import table_of

NEVER = 1 << 62
SPARE_ROWS = 32  # for batches that are appended before the next merge


class SearchTable:
    """The rows of integers of all batches of a trace, oldest first."""

    __slots__ = ("rows", "count", "mass", "keys_until_rebuild", "_batches")

    def __init__(self, batches: Sequence[Batch], searched_keys: int) -> None:
        """Build the table; `searched_keys` were looked up since the last one was built."""
        self._batches = list(batches)
        self.count = len(self._batches)
        self.mass = sum(mass(batch.updates) for batch in batches)
        self.rows: Ints = np.empty((self.count + SPARE_ROWS, FIELDS), np.int64)
        if batches:
            self.rows[: self.count] = table_of([batch.row_for_search(searched_keys) for batch in batches])
        self.keys_until_rebuild = min([batch.keys_until_lookup for batch in batches], default=NEVER)

    def append(self, batch: Batch) -> bool:
        """Append a batch. Return False if the table is full."""
        if self.count == len(self.rows):
            return False
        updates = batch.updates
        if is_exact(updates.diffs) or batch.has_lookup_table:
            self.rows[self.count] = batch.row
        else:
            write_addresses(self.rows, self.count, updates.data, updates.times, updates.diffs)
        self.mass += mass(updates)
        self._batches.append(batch)
        self.count += 1
        return True
