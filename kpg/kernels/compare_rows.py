"""Compare and sort columns of a block.

A block is int64[lanes, n]; a column is one row of data or one time. The order is lexicographic over a range of lanes;
for times this is a linear extension of their partial order. `sort_columns` is a stable merge sort of column numbers:
linear if they are sorted already, insertion sort for a few. Twin: kpg.testing.kernel_twins.sort_rows_twin.sort_columns.
"""

import numpy as np

from kpg.kernels.jit import jit

INSERTION_SORT_COLUMNS = 12  # length of the runs that are sorted by insertion, before merging begins
ORDER = 0  # lanes of `work`: the column numbers being sorted, and scratch space to merge them
SPARE = 1
ZERO = np.int64(0)  # passed to kernels instead of a literal, for which Numba would compile the callee once more
ONE = np.int64(1)


@jit
def less_equal(a, i, b, j):
    """Return whether time i of a is at or before time j of b."""
    for d in range(b.shape[0]):
        if a[d, i] > b[d, j]:
            return False
    return True


@jit
def sorts_before(a, i, b, j, first, end):
    """Return whether column i of a sorts before column j of b, by the lanes from `first` to `end`."""
    for lane in range(first, end):
        x = a[lane, i]
        y = b[lane, j]
        if x != y:
            return x < y
    return False


@jit
def equal(a, i, b, j, lanes):
    """Return whether column i of a equals column j of b."""
    for lane in range(lanes):
        if a[lane, i] != b[lane, j]:
            return False
    return True


@jit
def sort_columns(block, first, end, work, n):
    """Sort the first n column numbers in work[ORDER] by the lanes from `first` to `end` of their columns."""
    for lo in range(0, n, INSERTION_SORT_COLUMNS):
        for i in range(lo + 1, min(lo + INSERTION_SORT_COLUMNS, n)):
            column = work[ORDER, i]
            position = i
            while position > lo and sorts_before(block, column, block, work[ORDER, position - 1], first, end):
                work[ORDER, position] = work[ORDER, position - 1]
                position -= 1
            work[ORDER, position] = column
    run = INSERTION_SORT_COLUMNS
    while run < n:
        for lo in range(0, n - run, 2 * run):
            middle = lo + run
            i = lo
            j = middle
            stop = min(lo + 2 * run, n)
            position = lo
            if sorts_before(block, work[ORDER, middle], block, work[ORDER, middle - 1], first, end):
                for k in range(lo, middle):
                    work[SPARE, k] = work[ORDER, k]
                while i < middle:
                    if j < stop and sorts_before(block, work[ORDER, j], block, work[SPARE, i], first, end):
                        work[ORDER, position] = work[ORDER, j]
                        j += 1
                    else:
                        work[ORDER, position] = work[SPARE, i]
                        i += 1
                    position += 1
        run += run
