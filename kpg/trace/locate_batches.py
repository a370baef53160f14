"""Find the rows of some keys in the batches of a trace: the first step of every read by key.

    locate(batches, keys)  =  table, ranges, rows

`keys` is int64[key_lanes, m], in any order. The table has the addresses of the batches (kpg.trace.batch_table). The
ranges, int64[2 * batches, m], are the first row and the end of each key in each batch.
Cost: a search for each key and batch. In a batch with a lookup table (kpg.trace.lookup_table), that is one read and a
few steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpg.columns.pause_points import aside
from kpg.columns.updates import Ints
from kpg.kernels import locate_keys as kernel
from kpg.trace.batch import Batch
from kpg.trace.batch_table import table_of


def locate(batches: Sequence[Batch], keys: Ints) -> tuple[Ints, Ints, int]:
    """Return the table of the batches, the range of each key in each of them, and the number of rows found."""
    ranges = np.empty((2 * len(batches), keys.shape[1]), np.int64)
    table, rows = locate_into(ranges, batches, keys)
    return table, ranges, rows


def locate_into(ranges: Ints, batches: Sequence[Batch], keys: Ints) -> tuple[Ints, int]:
    """Write the ranges into an array. Return the table of the batches and the number of rows found."""
    lanes, m = keys.shape
    table = table_of([batch.row_for_search(m if lanes else 0) for batch in batches])
    return table, aside(ranges.size, _locate, table, keys, ranges, batches) if batches else 0


def _locate(table: Ints, keys: Ints, ranges: Ints, batches: Sequence[Batch]) -> int:
    """Write the ranges. The batches keep the arrays in memory that the table has the addresses of."""
    rows: int = kernel.locate_keys(table, keys, ranges)
    return rows
