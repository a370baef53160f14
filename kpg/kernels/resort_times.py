"""Restore the order of a datum's rows after their times changed, and sum the rows that became equal.

Rows are sorted by data; a *group* is the rows of one datum. The kernel works in place on the end of a block that
kpg.kernels.merge_runs is writing: it sorts, sums and moves complete groups to the left, while the last group waits for
more rows. If `timed` is 0, all rows of a group have one time. Cost: linear if times are sorted, otherwise n log n in
the rows of a group. Twin: kpg.testing.kernel_twins.merge_runs_twin.
"""

from kpg.kernels.consolidate_rows import is_zero
from kpg.kernels.jit import inlined, jit
from kpg.kernels.sort_rows import compare_columns


@jit
def mark_repeated_data(data, group, start, end, same):
    """Mark each row of [start, end) that has the data of the row before it; return the number of marks.

    `group` is the start of the first group, which has no row before it.
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


@inlined
def swap_columns(block, i, j):
    """Exchange two columns."""
    for lane in range(block.shape[0]):
        block[lane, i], block[lane, j] = block[lane, j], block[lane, i]


@inlined
def resort_pair(times, diffs, start):
    """Sort and sum a group of two columns; return its new end.

    Most groups are two columns, an old and a new value; inlining avoids a call that costs more than the work.
    """
    sign = compare_columns(times, start, times, start + 1)
    if sign > 0:
        swap_columns(times, start, start + 1)
        swap_columns(diffs, start, start + 1)
    if sign != 0:
        return start + 2
    for lane in range(diffs.shape[0]):
        diffs[lane, start] += diffs[lane, start + 1]
    return start if is_zero(diffs, start) else start + 1


@jit
def resort_groups(data, times, diffs, timed, group, start, end, same):
    """Sort and sum the complete groups of equal data, and close the gaps.

    Rows [group, start) are one group; rows from `start` on are new and marked in `same`. Return where the last group
    begins and ends. The kernel overwrites the marks, with 1 for each row that it drops.
    """
    first = max(start, group + 1)
    while first < end and same[first - start] == 1:
        first += 1
    if first == end:
        return group, end
    kept = resort_group(times, diffs, timed, group, first)
    group = first
    dropped = 0
    for row in range(first + 1, end):
        if same[row - start] == 0:
            if row - group > 1:
                if row - group == 2 and timed == 1:
                    group_end = resort_pair(times, diffs, group)
                else:
                    group_end = resort_group(times, diffs, timed, group, row)
                dropped += row - group_end
                for i in range(group, row):
                    same[i - start] = 1 if i >= group_end else 0
            group = row
    for row in range(group, end):
        same[row - start] = 0
    if kept == first and dropped == 0:
        return group, end
    close_gaps(data, first, end, same, start, kept)
    close_gaps(diffs, first, end, same, start, kept)
    if timed == 1:
        close_gaps(times, first, end, same, start, kept)
    last = kept + end - first - dropped
    return last - (end - group), last


@jit
def close_gaps(block, first, end, dropped, start, to):
    """Move the columns [first, end) that are not dropped to the left, from `to` on."""
    for lane in range(block.shape[0]):
        values = block[lane]
        position = to
        for i in range(first, end):
            values[position] = values[i]
            position += 1 - dropped[i - start]


@jit
def resort_group(times, diffs, timed, start, end):
    """Sort the columns [start, end), all of one datum, by time and sum those of equal time; return the new end."""
    if end - start == 1:
        return end
    if timed == 0:
        for lane in range(diffs.shape[0]):
            for i in range(start + 1, end):
                diffs[lane, start] += diffs[lane, i]
        return start if is_zero(diffs, start) else start + 1
    ordered = True
    for i in range(start + 1, end):
        if compare_columns(times, i - 1, times, i) >= 0:
            ordered = False
            break
    if ordered:
        return end
    sort_by_time(times, diffs, start, end)
    kept = start
    for i in range(start, end):
        if kept > start and compare_columns(times, kept - 1, times, i) == 0:
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


@jit
def sort_by_time(times, diffs, start, end):
    """Sort the columns [start, end) by time, unless they are sorted: by insertion if few, otherwise by heap sort."""
    n = end - start
    ordered = True
    for i in range(start + 1, end):
        if compare_columns(times, i - 1, times, i) > 0:
            ordered = False
            break
    if ordered:
        return
    if n <= 16:
        for i in range(start + 1, end):
            j = i
            while j > start and compare_columns(times, j - 1, times, j) > 0:
                swap_columns(times, j - 1, j)
                swap_columns(diffs, j - 1, j)
                j -= 1
        return
    for root in range(n // 2 - 1, -1, -1):
        sift_down(times, diffs, start, root, n)
    for last in range(n - 1, 0, -1):
        swap_columns(times, start, start + last)
        swap_columns(diffs, start, start + last)
        sift_down(times, diffs, start, 0, last)


@jit
def sift_down(times, diffs, start, root, n):
    """Move a column down to its position in the heap of n columns from `start`."""
    while True:
        child = 2 * root + 1
        if child >= n:
            return
        if child + 1 < n and compare_columns(times, start + child, times, start + child + 1) < 0:
            child += 1
        if compare_columns(times, start + root, times, start + child) >= 0:
            return
        swap_columns(times, start + root, start + child)
        swap_columns(diffs, start + root, start + child)
        root = child
