"""Columns of a block compared and sorted.

A block is int64[lanes, n]; a column is one row of data or one time. Sorting is by a range of lanes, lexicographically,
which for times is a linear extension of their partial order. `sort_columns` is a stable merge sort of column numbers:
linear when they are sorted already, insertion for a few.
Twin: kpg.testing.kernels_operators.sort_columns.
"""

import numpy as np

from kpg.kernels.jit import jit

FEW = 12  # runs of so many columns are sorted by insertion
ORDER = 0  # lanes of `work`: the column numbers being sorted, and room to merge them
SPARE = 1
ZERO = np.int64(0)  # as arguments of kernels: a literal would have the callee compiled once more, for that literal
ONE = np.int64(1)


@jit
def at_most(a, i, b, j):
    """Whether time i of a is at or before time j of b."""
    for d in range(b.shape[0]):
        if a[d, i] > b[d, j]:
            return False
    return True


@jit
def sorts_before(a, i, b, j, first, end):
    """Whether column i of a sorts before column j of b, by the lanes from `first` to `end`."""
    for lane in range(first, end):
        x = a[lane, i]
        y = b[lane, j]
        if x != y:
            return x < y
    return False


@jit
def equal(a, i, b, j, lanes):
    """Whether column i of a equals column j of b."""
    for lane in range(lanes):
        if a[lane, i] != b[lane, j]:
            return False
    return True


@jit
def sort_columns(block, first, end, work, n):
    """Sort the first n column numbers in work[ORDER] by the lanes from `first` to `end` of the columns they name."""
    for lo in range(0, n, FEW):
        for i in range(lo + 1, min(lo + FEW, n)):
            column = work[ORDER, i]
            at = i
            while at > lo and sorts_before(block, column, block, work[ORDER, at - 1], first, end):
                work[ORDER, at] = work[ORDER, at - 1]
                at -= 1
            work[ORDER, at] = column
    run = FEW
    while run < n:
        for lo in range(0, n - run, 2 * run):
            middle = lo + run
            i = lo
            j = middle
            stop = min(lo + 2 * run, n)
            at = lo
            if sorts_before(block, work[ORDER, middle], block, work[ORDER, middle - 1], first, end):
                for k in range(lo, middle):
                    work[SPARE, k] = work[ORDER, k]
                while i < middle:
                    if j < stop and sorts_before(block, work[ORDER, j], block, work[SPARE, i], first, end):
                        work[ORDER, at] = work[ORDER, j]
                        j += 1
                    else:
                        work[ORDER, at] = work[SPARE, i]
                        i += 1
                    at += 1
        run += run
