"""The sum of all diffs of some keys over the batches of a trace, in one call.

    totals   for each key:  Σ diffs of its rows in all batches

`keys` is int64[key_lanes, m], sorted and distinct; `table` describes the batches (kpg.kernels.array_address). Where the keys
are is found batch after batch, so that it is at hand when their diffs are added. Cost: that of kpg.kernels.locate_keys, and
linear in the rows of the keys; diffs are asked for before they are read. Twin: kpg.testing.kernels_trace.total.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import DIFF_ROWS, DIFFS, fetch, peek
from kpg.kernels.example import TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.locate_keys import ascending, locate_in

AHEAD = 16  # keys between asking for diffs and reading them


@jit
def add_constant(diff, starts, ends, sums):
    """Add the one diff of all rows as often as each key has a row."""
    for k in range(len(sums)):
        sums[k] += diff * (ends[k] - starts[k])


@jit
def add_rows(diffs, starts, ends, sums):
    """Add the diffs of the rows of each key."""
    m = len(sums)
    for k in range(m):
        if k + AHEAD < m and starts[k + AHEAD] < ends[k + AHEAD]:
            fetch(diffs, starts[k + AHEAD])
        for row in range(starts[k], ends[k]):
            sums[k] += peek(diffs, row)


@jit
def totals(table, keys, ranges, sums):
    """Add the diffs of the rows of each key to `sums`, int64[width, m]; `ranges` is room for int64[2, m]."""
    starts, ends = ranges[0], ranges[1]
    ordered = ascending(keys)
    for block in range(table.shape[0]):
        if locate_in(table, block, keys, ordered, starts, ends) > 0:
            rows = table[block, DIFF_ROWS]
            for lane in range(sums.shape[0]):
                if rows == 1:
                    add_constant(peek(table[block, DIFFS], lane), starts, ends, sums[lane])
                else:
                    add_rows(table[block, DIFFS] + 8 * lane * rows, starts, ends, sums[lane])


def examples() -> Iterator[Example]:
    """How the engine calls this kernel."""
    yield totals, (TABLE, TABLE, TABLE, TABLE)
