"""Merge two sorted, consolidated runs into one, moving times to their representatives on the way.

    merge(A, B, F)  =  consolidate({(d, representative(F, t), r)  |  (d, t, r) in A or B})

Resumable: `state` is int64[4], the next row of A, of B, of the output, and where the output's last group of equal data
begins; a call reads about `fuel` rows and returns how many it read. The merge is done when both runs are read.
Preconditions: A and B are sorted by (data, time) and consolidated; outputs have room for all rows of both. `frontier` is
int64[elements, depth]; without elements times are kept.
Cost: linear; the times of one datum are sorted again where representatives are out of order, in n log n.
Twins: kpg.testing.kernels_trace.
"""

from collections.abc import Iterator

from kpg.kernels.advance import representative
from kpg.kernels.consolidate import is_zero
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.sort import compare


@jit
def merge_data(a_data, a_diffs, b_data, b_diffs, out_data, out_diffs, state, fuel):
    """Merge runs whose times are all one and the same."""
    n, m = a_data.shape[1], b_data.shape[1]
    lanes, width = a_data.shape[0], a_diffs.shape[0]
    a_step = 1 if a_diffs.shape[1] > 1 else 0
    b_step = 1 if b_diffs.shape[1] > 1 else 0
    i, j, o = state[0], state[1], state[2]
    end = i + j + fuel
    while i < n and j < m and i + j < end:
        sign = compare(a_data, i, b_data, j)
        if sign < 0:
            for lane in range(lanes):
                out_data[lane, o] = a_data[lane, i]
            for lane in range(width):
                out_diffs[lane, o] = a_diffs[lane, i * a_step]
            i += 1
            o += 1
        elif sign > 0:
            for lane in range(lanes):
                out_data[lane, o] = b_data[lane, j]
            for lane in range(width):
                out_diffs[lane, o] = b_diffs[lane, j * b_step]
            j += 1
            o += 1
        else:
            for lane in range(width):
                out_diffs[lane, o] = a_diffs[lane, i * a_step] + b_diffs[lane, j * b_step]
            if not is_zero(out_diffs, o):
                for lane in range(lanes):
                    out_data[lane, o] = a_data[lane, i]
                o += 1
            i += 1
            j += 1
    if j == m and i < n:
        rows = min(n - i, max(0, end - i - j))
        copy(a_data, i, rows, out_data, o)
        copy(a_diffs, i, rows, out_diffs, o)
        i += rows
        o += rows
    elif i == n and j < m:
        rows = min(m - j, max(0, end - i - j))
        copy(b_data, j, rows, out_data, o)
        copy(b_diffs, j, rows, out_diffs, o)
        j += rows
        o += rows
    used = i + j - state[0] - state[1]
    state[0], state[1], state[2] = i, j, o
    return used


@jit
def copy(block, i, rows, out, o):
    """Copy some columns; a block of one column is repeated."""
    step = 1 if block.shape[1] > 1 else 0
    for lane in range(block.shape[0]):
        for row in range(rows):
            out[lane, o + row] = block[lane, (i + row) * step]


@jit
def merge_times(
    a_data, a_times, a_diffs, b_data, b_times, b_diffs, frontier, out_data, out_times, out_diffs, state, fuel
):
    """Merge runs of any times."""
    n, m = a_data.shape[1], b_data.shape[1]
    lanes, width = a_data.shape[0], a_diffs.shape[0]
    a_time_step = 1 if a_times.shape[1] > 1 else 0
    b_time_step = 1 if b_times.shape[1] > 1 else 0
    a_diff_step = 1 if a_diffs.shape[1] > 1 else 0
    b_diff_step = 1 if b_diffs.shape[1] > 1 else 0
    i, j, o, group = state[0], state[1], state[2], state[3]
    end = i + j + fuel
    while (i < n or j < m) and i + j < end:
        left = j == m
        if i < n and j < m:
            sign = compare(a_data, i, b_data, j)
            if sign == 0:
                sign = compare(a_times, i * a_time_step, b_times, j * b_time_step)
            left = sign <= 0
        if left:
            if o > group and compare(a_data, i, out_data, o - 1) != 0:
                o = settle(out_data, out_times, out_diffs, group, o)
                group = o
            for lane in range(lanes):
                out_data[lane, o] = a_data[lane, i]
            for lane in range(width):
                out_diffs[lane, o] = a_diffs[lane, i * a_diff_step]
            place(a_times, i * a_time_step, frontier, out_times, o)
            i += 1
        else:
            if o > group and compare(b_data, j, out_data, o - 1) != 0:
                o = settle(out_data, out_times, out_diffs, group, o)
                group = o
            for lane in range(lanes):
                out_data[lane, o] = b_data[lane, j]
            for lane in range(width):
                out_diffs[lane, o] = b_diffs[lane, j * b_diff_step]
            place(b_times, j * b_time_step, frontier, out_times, o)
            j += 1
        o += 1
        if o - 1 > group and compare(out_times, o - 2, out_times, o - 1) == 0:
            o -= 1
            for lane in range(width):
                out_diffs[lane, o - 1] += out_diffs[lane, o]
            if is_zero(out_diffs, o - 1):
                o -= 1
    if i == n and j == m:
        o = settle(out_data, out_times, out_diffs, group, o)
        group = o
    used = i + j - state[0] - state[1]
    state[0], state[1], state[2], state[3] = i, j, o, group
    return used


@jit
def place(times, i, frontier, out, o):
    """Write a time, or its representative."""
    if frontier.shape[0] == 0:
        for lane in range(times.shape[0]):
            out[lane, o] = times[lane, i]
    else:
        representative(times, i, frontier, out, o)


@jit
def settle(data, times, diffs, start, end):
    """Sort and consolidate the columns [start, end), all of one datum; returns the new end."""
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


@jit
def swap(block, i, j):
    """Exchange two columns."""
    for lane in range(block.shape[0]):
        block[lane, i], block[lane, j] = block[lane, j], block[lane, i]


@jit
def sort_times(times, diffs, start, end):
    """Sort the columns [start, end) by time: by insertion if few, else as a heap."""
    n = end - start
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
    """Let an element sink to its place in the heap of n columns from `start`."""
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


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield merge_data, (TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, COLUMN, NUMBER)
    yield merge_times, (TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, COLUMN, NUMBER)
