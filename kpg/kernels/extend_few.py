"""Extend few tuples by one or two extenders, with the search for their keys, in one call.

    extend_few  =  intersect_extenders (two extenders, none negative, one new lane) or extend_tuples (others), where
                   `ranges` are found by locate_keys in the first rows of two search tables

Arguments are those of kpg.kernels.extend_tuples. Times have one coordinate. `lanes` and `constants` have a row for each
extender: lane of the tuple, or -1 and a constant, for each lane of its key. The second table has no rows if there is
one extender. For one tuple the call takes about as long as reading its arguments.
Twin: kpg.testing.kernel_twins.extend_tuples_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.extend_tuples import KEYS, NEGATIVE, extend_tuples
from kpg.kernels.intersect_extenders import intersect_extenders
from kpg.kernels.jit import jit
from kpg.kernels.locate_keys import locate_keys

MAX_ROWS_READ = 1 << 12  # of two extenders; with more, the general path divides the work into slices
MAX_PRODUCTS = 16  # times of one pair of tuple and row


@jit
def extend_few(
    data, times, diffs, first, first_count, second, second_count, lanes, constants, flags, floor, new, low, high,
    projection, progress, out_data, out_times, out_diffs,
):  # fmt: skip
    """Write the extensions of all tuples; progress[0] is less than their number if the buffers are too small.

    Return the number of extensions.
    """
    n = data.shape[1]
    extenders = flags.shape[0]
    bounds = np.zeros(extenders + 1, np.int64)
    bounds[1] = first_count
    if extenders > 1:
        bounds[2] = first_count + second_count
    batches = bounds[extenders]
    table = np.empty((batches, first.shape[1]), np.int64)
    for batch in range(batches):
        for field in range(first.shape[1]):
            table[batch, field] = first[batch, field] if batch < first_count else second[batch - first_count, field]
    ranges = np.empty((2 * batches, n), np.int64)
    negatives = False
    for j in range(extenders):
        negatives = negatives or flags[j, NEGATIVE] == 1
        keys = np.empty((flags[j, KEYS], n), np.int64)
        for lane in range(keys.shape[0]):
            for i in range(n):
                keys[lane, i] = constants[j, lane] if lanes[j, lane] < 0 else data[lanes[j, lane], i]
        locate_keys(table[bounds[j] : bounds[j + 1]], keys, ranges[2 * bounds[j] : 2 * bounds[j + 1]])
    if extenders == 2 and new == 1 and not negatives:
        written = intersect_extenders(
            data, times, diffs, 0, n, table, bounds, flags, ranges, floor, low, high, projection, progress,
            MAX_ROWS_READ, out_data, out_times, out_diffs,
        )[0]  # fmt: skip
    else:
        written = extend_tuples(
            data, times, diffs, 0, n, table, bounds, flags, ranges, floor, new, low, high, projection, progress,
            MAX_PRODUCTS, out_data, out_times, out_diffs,
        )[0]  # fmt: skip
    return written


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield extend_few, (
        TABLE, TABLE, TABLE, TABLE, NUMBER, TABLE, NUMBER, TABLE, TABLE, TABLE, COLUMN, NUMBER, NUMBER, NUMBER,
        TABLE, COLUMN, TABLE, TABLE, TABLE,
    )  # fmt: skip
