"""The lookup table of a batch: a small array that narrows a search by key to a few rows.

It has one of three forms, chosen by the values of the batch's first lane (kpg.kernels.lookup_tables):

    interval   the first row of each interval of 2^shift values, if values are spread evenly
    sparse     every 64th value, if they are not and the batch is large
    bitmap     one bit for each cell of 2^shift values, if rows consist of a single lane (kpg.kernels.bitmap_lookup)

A batch builds its table once enough keys were searched in it (kpg.trace.batch). A search is then one read of the table
and a short search of the rows.
Cost: one pass over the lane to build it. Memory for each row: 0.8 to 1.6 bytes for intervals; 0.25 bytes for a bitmap
of dense values, 4 at most; 0.125 bytes for sparse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.bitmap_lookup import BITMAP_FLAG, EXACT_BITMAP_SHIFT, fill_bitmap
from kpg.kernels.lookup_tables import SPARSE_SHIFT, SPARSE_SPACING, fill_intervals

MIN_ROWS = 4096  # of a batch with a table: a smaller batch is in the cache, and plain search is fast enough
MIN_SPARSE_ROWS = 1 << 16  # of a batch with a sparse table: it gains less than the other forms
MAX_CELLS_PER_ROW = 16  # of a bitmap: limits its memory; more cells would exclude more absent keys
MIN_ROWS_PER_INTERVAL = 5  # on average; it is below twice that, because intervals are powers of two
MAX_CROWDING = 32  # mean number of distinct values in the interval of a value; beyond it, sparse is better
ROWS_PER_SEARCHED_KEY = 128  # a table is built once one key was searched for each 128 rows: then it pays off


class LookupTable(NamedTuple):
    """The array of a lookup table, in the form that `shift` encodes. An empty array means that there is no table."""

    array: Ints
    base: int
    shift: int  # see kpg.kernels.lookup_tables


NO_TABLE = LookupTable(np.empty(0, np.int64), 0, SPARSE_SHIFT)


def build_lookup_table(lane: Ints, is_whole_row: bool) -> LookupTable:
    """Build the table of a sorted, non-empty first lane; return NO_TABLE if none would help.

    `is_whole_row` is true if rows have no other lanes.
    """
    bitmap = build_bitmap(lane) if is_whole_row else None
    if bitmap is not None:
        return bitmap
    intervals = build_intervals(lane)
    if intervals is not None:
        return intervals
    return build_sparse(lane) if len(lane) >= MIN_SPARSE_ROWS else NO_TABLE


def build_bitmap(lane: Ints) -> LookupTable | None:
    """Build a bitmap of the values, unless too many of them share a cell."""
    low, high = int(lane[0]), int(lane[-1])
    shift = 0
    while (high >> shift) - (low >> shift) >= max(2, MAX_CELLS_PER_ROW * len(lane)):
        shift += 1
    base = low >> shift
    bitmap = np.empty(2 * (((high >> shift) - base >> 6) + 2), np.int64)
    cells = fill_bitmap(lane, base, shift, bitmap)
    if 2 * cells < len(lane):
        return None
    return LookupTable(bitmap, base, EXACT_BITMAP_SHIFT if shift == 0 and cells == len(lane) else BITMAP_FLAG + shift)


def build_intervals(lane: Ints, max_crowding: int = MAX_CROWDING) -> LookupTable | None:
    """Build a table of the first row of each interval of values, unless too many values are in a few intervals."""
    low, high = int(lane[0]), int(lane[-1])
    shift = 0
    while (high >> shift) - (low >> shift) >= max(2, len(lane) // MIN_ROWS_PER_INTERVAL):  # 2: values of both signs
        shift += 1
    base = low >> shift
    starts = np.empty((high >> shift) - base + 2, np.int64)
    distinct, squares = fill_intervals(lane, base, shift, starts)
    return LookupTable(starts, base, shift) if squares <= max_crowding * distinct else None


def build_sparse(lane: Ints) -> LookupTable:
    """Build a table of every SPARSE_SPACINGth value."""
    return LookupTable(np.ascontiguousarray(lane[::SPARSE_SPACING]), 0, SPARSE_SHIFT)
