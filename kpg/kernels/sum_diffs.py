"""Sum the diffs of some keys over all batches of a trace, in one call.

    sum_diffs   for each key:  Σ diffs of its rows in all batches

`keys` is int64[key_lanes, m], sorted and distinct; `table` describes the batches (kpg.kernels.array_address). The
kernel locates the keys batch by batch, so that the ranges are still in the cache when it adds their diffs. Cost: that
of kpg.kernels.locate_keys, plus linear in the rows of the keys; diffs are prefetched. Twin:
kpg.testing.kernel_twins.gather_rows_twin.sum_diffs.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import DIFF_ROWS, DIFFS, peek, prefetch
from kpg.kernels.example import TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.locate_keys import is_ascending, locate_in_batch

PREFETCH_KEYS = 16  # distance in keys between prefetching diffs and reading them


@jit
def add_constant(diff, starts, ends, sums):
    """Add the one diff of all rows, times the number of rows of each key."""
    for k in range(len(sums)):
        sums[k] += diff * (ends[k] - starts[k])


@jit
def add_rows(diffs, starts, ends, sums):
    """Add the diffs of the rows of each key."""
    m = len(sums)
    for k in range(m):
        if k + PREFETCH_KEYS < m and starts[k + PREFETCH_KEYS] < ends[k + PREFETCH_KEYS]:
            prefetch(diffs, starts[k + PREFETCH_KEYS])
        for row in range(starts[k], ends[k]):
            sums[k] += peek(diffs, row)


@jit
def sum_diffs(table, keys, ranges, sums):
    """Add the diffs of the rows of each key to `sums`, int64[width, m]; `ranges` is scratch space, int64[2, m]."""
    starts, ends = ranges[0], ranges[1]
    ordered = is_ascending(keys)
    for block in range(table.shape[0]):
        if locate_in_batch(table, block, keys, ordered, starts, ends) > 0:
            rows = table[block, DIFF_ROWS]
            for lane in range(sums.shape[0]):
                if rows == 1:
                    add_constant(peek(table[block, DIFFS], lane), starts, ends, sums[lane])
                else:
                    add_rows(table[block, DIFFS] + 8 * lane * rows, starts, ends, sums[lane])


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield sum_diffs, (TABLE, TABLE, TABLE, TABLE)
