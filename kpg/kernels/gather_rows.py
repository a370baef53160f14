"""Collect the rows of some keys from all batches of a trace, in one call for any number of batches.

`table` describes the batches (kpg.kernels.array_address). `ranges` is int64[2 * batches, m]: row 2 b holds where the
rows of each key begin in batch b, row 2 b + 1 where they end (kpg.kernels.locate_keys). Cost: linear in the rows of the
keys; consolidating them adds a factor of the logarithm of the number of batches. Twins:
kpg.testing.kernel_twins.gather_rows_twin.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import DATA, DEPTH, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, peek
from kpg.kernels.consolidate_rows import is_zero
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.sort_rows import compare_rows, merge_sort

INSERTION_SORT_ROWS = 24  # rows of a key up to which insertion sort is faster than merge sort


@jit
def fill_offsets(ranges, offsets):
    """Write where the rows of each key begin when the rows of all batches are collected, and the end."""
    total = 0
    for k in range(ranges.shape[1]):
        offsets[k] = total
        for batch in range(ranges.shape[0] // 2):
            total += ranges[2 * batch + 1, k] - ranges[2 * batch, k]
    offsets[ranges.shape[1]] = total


@jit
def copy_histories(table, key_lanes, ranges, floor, out_data, out_times, out_diffs):
    """Copy the values, times and diffs of each key, batch after batch.

    Missing coordinates of times are zero; times are joined with `floor`.
    """
    o = 0
    for k in range(ranges.shape[1]):
        for batch in range(table.shape[0]):
            start = ranges[2 * batch, k]
            rows = ranges[2 * batch + 1, k] - start
            if rows > 0:
                n = table[batch, ROWS]
                for lane in range(out_data.shape[0]):
                    position = (key_lanes + lane) * n + start
                    for row in range(rows):
                        out_data[lane, o + row] = peek(table[batch, DATA], position + row)
                for lane in range(out_times.shape[0]):
                    least = floor[lane]
                    if lane >= table[batch, DEPTH]:
                        for row in range(rows):
                            out_times[lane, o + row] = max(least, 0)
                    elif table[batch, TIME_ROWS] == 1:
                        time = max(least, peek(table[batch, TIMES], lane))
                        for row in range(rows):
                            out_times[lane, o + row] = time
                    else:
                        for row in range(rows):
                            out_times[lane, o + row] = max(least, peek(table[batch, TIMES], lane * n + start + row))
                for lane in range(out_diffs.shape[0]):
                    if table[batch, DIFF_ROWS] == 1:
                        for row in range(rows):
                            out_diffs[lane, o + row] = peek(table[batch, DIFFS], lane)
                    else:
                        for row in range(rows):
                            out_diffs[lane, o + row] = peek(table[batch, DIFFS], lane * n + start + row)
                o += rows


@jit
def consolidate_keys(offsets, data, times, diffs, order, scratch, spare_data, spare_times, spare_diffs):
    """Sort the rows of each key by value, then time, and consolidate them, in place; return the number that remain."""
    kept = 0
    end = offsets[0]
    for k in range(len(offsets) - 1):
        start = end
        end = offsets[k + 1]
        offsets[k] = kept
        if is_consolidated(data, times, start, end):
            if kept != start:
                copy_rows(data, start, end, data, kept)
                copy_rows(times, start, end, times, kept)
                copy_rows(diffs, start, end, diffs, kept)
            kept += end - start
        else:
            sort_rows(data, times, start, end, order, scratch)
            n = sum_rows(data, times, diffs, start, end, order, spare_data, spare_times, spare_diffs)
            copy_rows(spare_data, 0, n, data, kept)
            copy_rows(spare_times, 0, n, times, kept)
            copy_rows(spare_diffs, 0, n, diffs, kept)
            kept += n
    offsets[len(offsets) - 1] = kept
    return kept


@inlined
def is_consolidated(data, times, start, end):
    """Return whether each of the rows [start, end) sorts after the one before it: they are already consolidated."""
    for i in range(start + 1, end):
        if compare_rows(data, times, 1, i - 1, i) >= 0:
            return False
    return True


@inlined
def copy_rows(block, start, end, out, o):
    """Copy the columns [start, end)."""
    for lane in range(block.shape[0]):
        for i in range(end - start):
            out[lane, o + i] = block[lane, start + i]


@jit
def sort_rows(data, times, start, end, order, scratch):
    """Write the positions of the rows [start, end) into order[start:end], sorted: by insertion if few."""
    if end - start > INSERTION_SORT_ROWS:
        for i in range(start, end):
            order[i] = i
        merge_sort(data, times, start, end, order, scratch)
        return
    for i in range(start, end):
        j = i
        while j > start and compare_rows(data, times, 1, order[j - 1], i) > 0:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@jit
def sum_rows(data, times, diffs, start, end, order, out_data, out_times, out_diffs):
    """Consolidate the rows at the sorted positions order[start:end]; return the number that remain."""
    kept = 0
    i = start
    while i < end:
        row = order[i]
        for lane in range(diffs.shape[0]):
            out_diffs[lane, kept] = diffs[lane, row]
        i += 1
        while i < end and compare_rows(data, times, 1, row, order[i]) == 0:
            for lane in range(diffs.shape[0]):
                out_diffs[lane, kept] += diffs[lane, order[i]]
            i += 1
        if not is_zero(out_diffs, kept):
            for lane in range(data.shape[0]):
                out_data[lane, kept] = data[lane, row]
            for lane in range(times.shape[0]):
                out_times[lane, kept] = times[lane, row]
            kept += 1
    return kept


@jit
def copy_rows_as_of(table, ranges, time, out_data, out_diffs):
    """Copy data and diffs of the rows at or before a time, batch after batch; return their number."""
    o = 0
    for batch in range(table.shape[0]):
        n = table[batch, ROWS]
        time_step = 1 if table[batch, TIME_ROWS] > 1 else 0
        diff_step = 1 if table[batch, DIFF_ROWS] > 1 else 0
        for k in range(ranges.shape[1]):
            for row in range(ranges[2 * batch, k], ranges[2 * batch + 1, k]):
                visible = True
                for lane in range(len(time)):
                    if peek(table[batch, TIMES], lane * table[batch, TIME_ROWS] + row * time_step) > time[lane]:
                        visible = False
                if visible:
                    for lane in range(out_data.shape[0]):
                        out_data[lane, o] = peek(table[batch, DATA], lane * n + row)
                    for lane in range(out_diffs.shape[0]):
                        out_diffs[lane, o] = peek(table[batch, DIFFS], lane * table[batch, DIFF_ROWS] + row * diff_step)
                    o += 1
    return o


@jit
def group_offsets(data, key_lanes, offsets):
    """Write where each group of equal keys begins, and the end; return the number of groups."""
    n = data.shape[1]
    groups = 0
    for i in range(n):
        new = i == 0
        for lane in range(key_lanes):
            if not new and data[lane, i] != data[lane, i - 1]:
                new = True
        if new:
            offsets[groups] = i
            groups += 1
    offsets[groups] = n
    return groups


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield fill_offsets, (TABLE, COLUMN)
    yield copy_histories, (TABLE, NUMBER, TABLE, COLUMN, TABLE, TABLE, TABLE)
    yield consolidate_keys, (COLUMN, TABLE, TABLE, TABLE, COLUMN, COLUMN, TABLE, TABLE, TABLE)
    yield copy_rows_as_of, (TABLE, TABLE, COLUMN, TABLE, TABLE)
    yield group_offsets, (TABLE, NUMBER, COLUMN)
