"""Put the rows of each datum into order again after their times were moved, and sum those that became equal.

Rows are sorted by data; a *group* is the rows of one datum. Works in place on the end of a block that is being written
(kpg.kernels.merge): complete groups are settled and moved to the left, the last one waits for more. With `timed` 0 all
rows of a group are of one time. Cost: linear where times are in order, n log n in the rows of a group where not.
Twin: kpg.testing.kernels_trace.merge.
"""

from kpg.kernels.consolidate import is_zero
from kpg.kernels.jit import inlined, jit
from kpg.kernels.sort import compare


@jit
def mark(data, group, start, end, same):
    """Note for each row of [start, end) whether it has the data of the row before it; returns how many have.

    `group` is where the first group begins, and has no row before it.
    """
    for k in range(end - start):
        same[k] = 1
    for lane in range(data.shape[0]):
        values = data[lane]
        for k in range(max(0, group + 1 - start), end - start):
            same[k] &= values[start + k] == values[start + k - 1]
    if group == start and end > start:
        same[0] = 0
    count = 0
    for k in range(end - start):
        count += same[k]
    return count


@jit
def settle(data, times, diffs, timed, group, start, end, same):
    """Sort and sum the groups of equal data that are complete, and close the gaps.

    Rows [group, start) are one group, rows from `start` on are new and marked. Returns where the last group now begins
    and ends.
    """
    kept = group
    for row in range(max(start, group + 1), end):
        if same[row - start] == 0:
            group_end = row if row - group == 1 else settle_group(times, diffs, timed, group, row)
            if kept != group:
                move(data, group, group_end, kept)
                move(diffs, group, group_end, kept)
                if timed == 1:
                    move(times, group, group_end, kept)
            kept += group_end - group
            group = row
    if kept != group:
        move(data, group, end, kept)
        move(diffs, group, end, kept)
        if timed == 1:
            move(times, group, end, kept)
    return kept, kept + end - group


@jit
def move(block, start, end, to):
    """Move columns to the left."""
    for lane in range(block.shape[0]):
        for i in range(end - start):
            block[lane, to + i] = block[lane, start + i]


@jit
def settle_group(times, diffs, timed, start, end):
    """Sort the columns [start, end), all of one datum, by time and sum those of equal time; returns the new end."""
    if timed == 0:
        for lane in range(diffs.shape[0]):
            for i in range(start + 1, end):
                diffs[lane, start] += diffs[lane, i]
        return start if is_zero(diffs, start) else start + 1
    ordered = True
    for i in range(start + 1, end):
        if compare(times, i - 1, times, i) >= 0:
            ordered = False
            break
    if ordered:
        return end
    sort_times(times, diffs, start, end)
    kept = start
    for i in range(start, end):
        if kept > start and compare(times, kept - 1, times, i) == 0:
            for lane in range(diffs.shape[0]):
                diffs[lane, kept - 1] += diffs[lane, i]
            if is_zero(diffs, kept - 1):
                kept -= 1
        else:
            for lane in range(times.shape[0]):
                times[lane, kept] = times[lane, i]
            for lane in range(diffs.shape[0]):
                diffs[lane, kept] = diffs[lane, i]
            kept += 1
    return kept


@inlined
def swap(block, i, j):
    """Exchange two columns."""
    for lane in range(block.shape[0]):
        block[lane, i], block[lane, j] = block[lane, j], block[lane, i]


@jit
def sort_times(times, diffs, start, end):
    """Sort the columns [start, end) by time: by insertion if few, else as a heap; nothing if they are in order."""
    n = end - start
    ordered = True
    for i in range(start + 1, end):
        if compare(times, i - 1, times, i) > 0:
            ordered = False
            break
    if ordered:
        return
    if n <= 16:
        for i in range(start + 1, end):
            j = i
            while j > start and compare(times, j - 1, times, j) > 0:
                swap(times, j - 1, j)
                swap(diffs, j - 1, j)
                j -= 1
        return
    for root in range(n // 2 - 1, -1, -1):
        sift(times, diffs, start, root, n)
    for last in range(n - 1, 0, -1):
        swap(times, start, start + last)
        swap(diffs, start, start + last)
        sift(times, diffs, start, 0, last)


@jit
def sift(times, diffs, start, root, n):
    """Let a column sink to its place in the heap of n columns from `start`."""
    while True:
        child = 2 * root + 1
        if child >= n:
            return
        if child + 1 < n and compare(times, start + child, times, start + child + 1) < 0:
            child += 1
        if compare(times, start + root, times, start + child) >= 0:
            return
        swap(times, start + root, start + child)
        swap(diffs, start + root, start + child)
        root = child
