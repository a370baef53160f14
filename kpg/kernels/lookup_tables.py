"""Lookup tables of a batch: an array that narrows a search by key to a few rows, by the first lane of the key.

    interval   starts[p] is the first row with value >> shift at least base + p; the last entry is the row count. So one
               read gives the rows of 2^shift neighbouring values. For values that are spread evenly.
    sparse     every `SPARSE_SPACING`th value. A search first finds two neighbouring entries, then searches the rows
               between them. For values that are not spread evenly.
    bitmap     one bit per value, for batches with a single lane: kpg.kernels.bitmap_lookup.

The shift in a batch's row of the table (kpg.kernels.array_address) encodes the form: SPARSE_SHIFT for sparse, below
BITMAP_FLAG for interval, BITMAP_FLAG and above for bitmap. Values are shifted before they are subtracted, and clamped
to the first and the last interval, so that no difference overflows. Cost to build: one pass over the lane. Twin:
kpg.testing.kernel_twins.locate_keys_twin.fill_intervals.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, NUMBER, Example
from kpg.kernels.jit import inlined, jit

SPARSE_SPACING = 64  # rows per entry: the rows between two entries are eight cache lines
SPARSE_SHIFT = -1  # stands in for the shift in a batch's row to mark sparse lookup


@jit
def fill_intervals(lane, base, shift, starts):
    """Fill the starts of the intervals of a sorted lane.

    Return the number of distinct values, and the sum, over all intervals, of the squared number of its distinct values.
    """
    interval = 0
    starts[0] = 0
    distinct = 0
    distinct_here = 0
    squares = 0
    for i in range(len(lane)):
        new = i == 0 or lane[i] != lane[i - 1]
        next_interval = (lane[i] >> shift) - base
        if next_interval != interval:
            squares += distinct_here * distinct_here
            distinct_here = 0
            for skipped in range(interval + 1, next_interval + 1):
                starts[skipped] = i
            interval = next_interval
        distinct_here += new
        distinct += new
    for skipped in range(interval + 1, len(starts)):
        starts[skipped] = len(lane)
    return distinct, squares + distinct_here * distinct_here


@inlined
def interval_of(value, base, shift, top):
    """Return the interval of a value, clamped to the first and the last; `top` is base plus the number of the last."""
    return min(max(value >> shift, base), top) - base


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield fill_intervals, (COLUMN, NUMBER, NUMBER, COLUMN)
