"""Key probes: answer questions about a key from the ranges of its rows, without collecting its history.

`table` describes the batches of a trace (kpg.kernels.array_address); `ranges` holds where each batch has the rows of
each key (kpg.kernels.locate_keys). Most keys that change have one row, or rows of one batch and one time, so that
reading the first row is enough. Cost: one read per batch, independent of the number of rows; `sum_diffs_of_range` reads
all rows if diffs differ. Twins: those of the calling kernels, in kpg.testing.kernel_twins.one_pass_corrections_twin.
"""

from kpg.kernels.array_address import DATA, DEPTH, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, peek, prefetch
from kpg.kernels.jit import inlined

UNCACHED_BATCH_ROWS = 1 << 13  # a batch with at least this many rows may not be in the cache
PREFETCH_ROWS_PER_KEY = 8  # with fewer rows per key the hardware prefetches by itself


@inlined
def batch_of_only_row(ranges, k):
    """Return the batch that holds the only row of key k: −1 if there is no row, −2 if there are several."""
    only = -1
    for block in range(ranges.shape[0] // 2):
        rows = ranges[2 * block + 1, k] - ranges[2 * block, k]
        if rows == 1 and only == -1:
            only = block
        elif rows != 0:
            return -2
    return only


@inlined
def batch_of_only_time(table, ranges, k):
    """Return the batch that holds all rows of key k if these share one time, else −1."""
    only = -1
    for block in range(ranges.shape[0] // 2):
        if ranges[2 * block, k] < ranges[2 * block + 1, k]:
            if only >= 0 or table[block, TIME_ROWS] != 1:
                return -1
            only = block
    return only


@inlined
def sum_diffs_of_range(table, block, start, end):
    """Return the sum of the diffs of the rows [start, end) of a batch."""
    if table[block, DIFF_ROWS] == 1:
        return (end - start) * peek(table[block, DIFFS], 0)
    total = 0
    for row in range(start, end):
        total += peek(table[block, DIFFS], row)
    return total


@inlined
def diff_as_of(table, block, row, seeds, seed, depth):
    """Return the diff of a row if its time is at or before a seed, else 0."""
    time_rows = table[block, TIME_ROWS]
    column = row if time_rows > 1 else 0
    for lane in range(min(depth, table[block, DEPTH])):
        if peek(table[block, TIMES], lane * time_rows + column) > seeds[lane, seed]:
            return 0
    return peek(table[block, DIFFS], row if table[block, DIFF_ROWS] > 1 else 0)


@inlined
def is_least_value(in_table, in_ranges, k, key_lanes, value_lanes, out_table, block, row):
    """Return whether no input row of key k, at any time, has values before those of an output row."""
    out_rows = out_table[block, ROWS]
    for in_block in range(in_table.shape[0]):
        first = in_ranges[2 * in_block, k]
        if first < in_ranges[2 * in_block + 1, k]:  # sorted, so the first row has the least values
            for lane in range(key_lanes, key_lanes + value_lanes):
                x = peek(in_table[in_block, DATA], lane * in_table[in_block, ROWS] + first)
                y = peek(out_table[block, DATA], lane * out_rows + row)
                if x < y:
                    return False
                if x > y:
                    break
    return True


@inlined
def prefetch_rows_of_key(table, ranges, k, skip, value_lanes):
    """Prefetch the rows of key k in large batches; waiting for them would take most of a key's time."""
    for block in range(table.shape[0]):
        rows = table[block, ROWS]
        start = ranges[2 * block, k]
        if (
            rows >= PREFETCH_ROWS_PER_KEY * ranges.shape[1]
            and rows >= UNCACHED_BATCH_ROWS
            and start < ranges[2 * block + 1, k]
        ):
            for lane in range(value_lanes):
                prefetch(table[block, DATA], (skip + lane) * rows + start)
            if table[block, TIME_ROWS] > 1:
                for lane in range(table[block, DEPTH]):
                    prefetch(table[block, TIMES], lane * rows + start)
            if table[block, DIFF_ROWS] > 1:
                prefetch(table[block, DIFFS], start)
