"""Columns of a block compared, sorted, and given room.

A block is int64[lanes, n]; a column is one row of data or one time. Sorting is by all lanes, lexicographically, which for
times is a linear extension of their partial order. `sort_columns` is a stable merge sort of column numbers: linear when
they are sorted already, insertion for a few.
Twin: kpg.testing.kernels_operators.sort_columns.
"""

import numpy as np

from kpg.kernels.jit import jit

FEW = 12  # runs of so many columns are sorted by insertion


@jit
def at_most(a, i, b, j):
    """Whether time i of a is at or before time j of b."""
    for d in range(a.shape[0]):
        if a[d, i] > b[d, j]:
            return False
    return True


@jit
def sorts_before(a, i, b, j):
    """Whether column i of a sorts before column j of b."""
    for lane in range(a.shape[0]):
        x = a[lane, i]
        y = b[lane, j]
        if x != y:
            return x < y
    return False


@jit
def grow(block, used):
    """A block of at least twice the room with the same first `used` columns."""
    room = np.empty((block.shape[0], 2 * used + 16), np.int64)
    for lane in range(block.shape[0]):
        for i in range(used):
            room[lane, i] = block[lane, i]
    return room


@jit
def sort_columns(block, order, n, spare):
    """Sort the first n column numbers in `order` by the columns they name; `spare` is as long."""
    for lo in range(0, n, FEW):
        for i in range(lo + 1, min(lo + FEW, n)):
            column = order[i]
            at = i
            while at > lo and sorts_before(block, column, block, order[at - 1]):
                order[at] = order[at - 1]
                at -= 1
            order[at] = column
    run = FEW
    while run < n:
        for lo in range(0, n - run, 2 * run):
            merge_runs(block, order, lo, lo + run, min(lo + 2 * run, n), spare)
        run += run


@jit
def merge_runs(block, order, lo, middle, hi, spare):
    """Merge two neighbouring sorted runs of column numbers in place."""
    if not sorts_before(block, order[middle], block, order[middle - 1]):
        return
    for i in range(lo, middle):
        spare[i] = order[i]
    i = lo
    j = middle
    at = lo
    while i < middle and j < hi:
        if sorts_before(block, order[j], block, spare[i]):
            order[at] = order[j]
            j += 1
        else:
            order[at] = spare[i]
            i += 1
        at += 1
    while i < middle:
        order[at] = spare[i]
        i += 1
        at += 1
