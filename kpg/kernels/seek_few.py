"""Pair few rows with the rows of equal keys in all batches of a trace, with the search for their keys, in one call.

    seek_few  =  group_offsets, locate_keys, count_pairs and write_seek_pairs (kpg.kernels.seek_rows), in the first
                 `batches` rows of a search table

All pairs have the one time of the few rows; otherwise, and if the pairs do not fit the buffers, it returns -1. For one
row the call takes about as long as reading its arguments. Twin: kpg.testing.kernel_twins.match_rows_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import NUMBER, TABLE, Example
from kpg.kernels.gather_rows import group_offsets
from kpg.kernels.jit import jit
from kpg.kernels.locate_keys import locate_keys
from kpg.kernels.seek_rows import count_pairs, write_seek_pairs


@jit
def seek_few(data, times, diffs, key_lanes, table, batches, side, projection, out_data, out_diffs):
    """Write all pairs of rows that are sorted by key; return their number, and whether all their diffs are equal."""
    rows = data.shape[1]
    starts = np.empty(rows + 1, np.int64)
    m = group_offsets(data, key_lanes, starts)
    offsets = starts[: m + 1].copy()
    keys = np.empty((key_lanes, m), np.int64)
    for lane in range(key_lanes):
        for k in range(m):
            keys[lane, k] = data[lane, offsets[k]]
    found = table[:batches]
    ranges = np.empty((2 * batches, m), np.int64)
    if locate_keys(found, keys, ranges) == 0:
        return 0, 1
    total, plain = count_pairs(times, offsets, found, ranges)
    if plain == 0 or total > out_data.shape[1]:
        return -1, 0
    write_seek_pairs(
        data, times, diffs, offsets, found, ranges, side, 1, projection, 0, out_data, times, out_diffs
    )  # fmt: skip
    alike = 1
    for pair in range(1, total):
        alike &= 1 if out_diffs[0, pair] == out_diffs[0, 0] else 0
    return total, alike


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield seek_few, (TABLE, TABLE, TABLE, NUMBER, TABLE, NUMBER, NUMBER, TABLE, TABLE, TABLE)
