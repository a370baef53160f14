"""Sweep the totals of keys through totally ordered times, and compute the changes they cause, without an output trace.

The caller passes the total of each key so far (`before`, int64[width, keys]) and the new updates, all of them at times
not before those that the totals include.

    running_totals          the totals after each new time: per key (offsets), in order of time
    presence_changes        where "total of lane 0 ≥ at_least" changes: a row without lanes, diff ±1
    sums_changes            where the totals change: the old totals as a row with diff −1, the new with +1; no zero rows
    sums_changes_of_batch   the same from updates sorted by time, as rows of a batch

The times of a key may be in any order; constant times or diffs are one column. Cost: one pass, plus a sort for each key
that has unsorted times. Twins: kpg.testing.kernel_twins.sweep_totals_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.compare_rows import ORDER, ZERO, sort_columns
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit

COUNTING_SORT_ROWS = 64  # changes of one key above which a counting sort pays for its table


@jit
def most_rows(offsets):
    """Return the maximum number of rows of a key."""
    largest = 0
    for key in range(offsets.shape[0] - 1):
        largest = max(largest, offsets[key + 1] - offsets[key])
    return largest


@jit
def running_totals_at_one_time(offsets, time, diffs, before, step_offsets, step_times, totals):
    """Fill the totals if all updates are at one time."""
    step = 1 if diffs.shape[1] > 1 else 0
    keys = offsets.shape[0] - 1
    n = 0
    for key in range(keys):
        if offsets[key] < offsets[key + 1]:
            step_times[0, n] = time
            n += 1
        step_offsets[key + 1] = n
    for w in range(before.shape[0]):
        for key in range(keys):
            lo = offsets[key]
            hi = offsets[key + 1]
            if lo < hi:
                total = before[w, key]
                if step == 0:
                    total += (hi - lo) * diffs[w, 0]
                else:
                    for row in range(lo, hi):
                        total += diffs[w, row]
                totals[w, step_offsets[key]] = total


@jit
def running_totals(offsets, times, diffs, before):
    """Return (offsets, times, totals): the totals after each distinct new time of each key."""
    keys = offsets.shape[0] - 1
    width = before.shape[0]
    one_time = times.shape[1] == 1
    step = 1 if diffs.shape[1] > 1 else 0
    capacity = min(keys, offsets[keys]) if one_time else offsets[keys]
    step_offsets = np.zeros(keys + 1, np.int64)
    step_times = np.empty((1, capacity), np.int64)
    totals = np.empty((width, capacity), np.int64)
    if one_time:
        running_totals_at_one_time(offsets, times[0, 0], diffs, before, step_offsets, step_times, totals)
        return step_offsets, step_times, totals
    work = np.empty((2, most_rows(offsets)), np.int64)
    n = 0
    for key in range(keys):
        lo = offsets[key]
        hi = offsets[key + 1]
        in_order = True
        for row in range(lo + 1, hi):
            in_order = in_order and times[0, row - 1] <= times[0, row]
        if not in_order:
            for row in range(lo, hi):
                work[ORDER, row - lo] = row
            sort_columns(times, ZERO, times.shape[0], work, hi - lo)
        start = n
        for row in range(lo, hi):
            column = row if in_order else work[ORDER, row - lo]
            if n == start or times[0, column] != step_times[0, n - 1]:
                step_times[0, n] = times[0, column]
                for w in range(width):
                    totals[w, n] = before[w, key] if n == start else totals[w, n - 1]
                n += 1
            for w in range(width):
                totals[w, n - 1] += diffs[w, column * step]
        step_offsets[key + 1] = n
    return step_offsets, step_times, totals


@jit
def presence_changes(at_least, before, step_offsets, step_times, totals):
    """Return (keys, times, diffs): the changes of presence, sorted by key and time."""
    keys = step_offsets.shape[0] - 1
    count = 0
    for key in range(keys):
        present = before[0, key] >= at_least
        for s in range(step_offsets[key], step_offsets[key + 1]):
            now = totals[0, s] >= at_least
            if now != present:
                count += 1
            present = now
    out_keys = np.empty(count, np.int64)
    out_times = np.empty((1, count), np.int64)
    out_diffs = np.empty((1, count), np.int64)
    n = 0
    for key in range(keys):
        present = before[0, key] >= at_least
        for s in range(step_offsets[key], step_offsets[key + 1]):
            now = totals[0, s] >= at_least
            if now != present:
                out_keys[n] = key
                out_times[0, n] = step_times[0, s]
                out_diffs[0, n] = 1 if now else -1
                n += 1
            present = now
    return out_keys, out_times, out_diffs


@jit
def count_changes(before, step_offsets, totals):
    """Return the number of changes of totals, and the maximum of a key."""
    count = 0
    most = 0
    for key in range(step_offsets.shape[0] - 1):
        start = count
        for s in range(step_offsets[key], step_offsets[key + 1]):
            differ = False
            old = False
            new = False
            for w in range(before.shape[0]):
                was = before[w, key] if s == step_offsets[key] else totals[w, s - 1]
                differ = differ or was != totals[w, s]
                old = old or was != 0
                new = new or totals[w, s] != 0
            if differ:
                count += (1 if old else 0) + (1 if new else 0)
        most = max(most, count - start)
    return count, most


@jit
def is_ascending(totals, lo, hi):
    """Return whether totals are sorted, as they are in order of time if they only grow."""
    for i in range(lo + 1, hi):
        if totals[i - 1] > totals[i]:
            return False
    return True


@jit
def counting_sort(totals, lo, hi, low, value_count, work):
    """Write the order of the rows lo to hi by one-lane totals, which are `value_count` values from `low` on: linear."""
    counts = np.zeros(value_count + 1, np.int64)
    for i in range(lo, hi):
        counts[totals[i] - low + 1] += 1
    for value in range(value_count):
        counts[value + 1] += counts[value]
    for i in range(lo, hi):
        value = totals[i] - low
        work[ORDER, counts[value]] = i
        counts[value] += 1


@jit
def sort_changes(lo, hi, work, scratch, out, out_times, out_diffs):
    """Sort the changes lo to hi, written in order of time, by totals; changes of equal totals keep their order."""
    low, high = ZERO, ZERO
    if out.shape[0] == 1 and hi > lo:
        if is_ascending(out[0], lo, hi):
            return
        low = high = out[0, lo]
        for i in range(lo + 1, hi):
            low = min(low, out[0, i])
            high = max(high, out[0, i])
    if out.shape[0] == 1 and hi - lo > COUNTING_SORT_ROWS and 0 <= high - low < 4 * (hi - lo):
        counting_sort(out[0], lo, hi, low, high - low + 1, work)
    else:
        for i in range(lo, hi):
            work[ORDER, i - lo] = i
        sort_columns(out, ZERO, out.shape[0], work, hi - lo)
    for lane in range(out.shape[0] + 2):
        block = out_times if lane == out.shape[0] else out_diffs if lane > out.shape[0] else out
        row = lane if lane < out.shape[0] else 0
        for i in range(hi - lo):
            scratch[i] = block[row, work[ORDER, i]]
        for i in range(hi - lo):
            block[row, lo + i] = scratch[i]


@jit
def sums_changes(before, step_offsets, step_times, totals):
    """Return (keys, totals, times, diffs): the changes of the totals, sorted by key, totals, time."""
    keys = step_offsets.shape[0] - 1
    width = before.shape[0]
    count, most = count_changes(before, step_offsets, totals)
    out_keys = np.empty(count, np.int64)
    out = np.empty((width, count), np.int64)
    out_times = np.empty((1, count), np.int64)
    out_diffs = np.empty((1, count), np.int64)
    work = np.empty((2, most), np.int64)
    scratch = np.empty(most, np.int64)
    n = ZERO
    for key in range(keys):
        start = n
        for s in range(step_offsets[key], step_offsets[key + 1]):
            order = 0  # negative if the old totals sort before the new, positive if after
            old = False
            new = False
            for w in range(width):
                was = before[w, key] if s == step_offsets[key] else totals[w, s - 1]
                if order == 0:
                    order = (1 if was > totals[w, s] else 0) - (1 if was < totals[w, s] else 0)
                old = old or was != 0
                new = new or totals[w, s] != 0
            if order != 0:
                old_at = n + 1 if order > 0 and new else n
                new_at = n + 1 if order < 0 and old else n
                if old:
                    for w in range(width):
                        out[w, old_at] = before[w, key] if s == step_offsets[key] else totals[w, s - 1]
                    out_diffs[0, old_at] = -1
                if new:
                    for w in range(width):
                        out[w, new_at] = totals[w, s]
                    out_diffs[0, new_at] = 1
                end = n + (1 if old else 0) + (1 if new else 0)
                for i in range(n, end):
                    out_keys[i] = key
                    out_times[0, i] = step_times[0, s]
                n = end
        if step_offsets[key + 1] - step_offsets[key] > 1:
            sort_changes(start, n, work, scratch, out, out_times, out_diffs)
    return out_keys, out, out_times, out_diffs


@jit
def single_sum_changes(keys, offsets, times, diffs, before, out, values, out_times, out_diffs):
    """Write what `sums_changes_of_batch` writes, for one sum: a few instructions for each row."""
    step = 1 if diffs.shape[1] > 1 else 0
    n = ZERO
    for key in range(offsets.shape[0] - 1):
        start = n
        new = before[0, key]
        last = new  # the greatest value written
        ascending = True
        row, end = offsets[key], offsets[key + 1]
        while row < end:
            time = times[0, row]
            old = new
            new += diffs[0, row * step]
            row += 1
            while row < end and times[0, row] <= time:
                if times[0, row] < time:
                    return -1
                new += diffs[0, row * step]
                row += 1
            if old == new:
                continue
            sign = 1 if old < new else -1
            lesser, greater = min(old, new), max(old, new)
            if lesser != 0:
                ascending = ascending and (n == start or last <= lesser)
                values[0, n] = last = lesser
                out_times[0, n] = time
                out_diffs[0, n] = -sign
                n += 1
            if greater != 0:
                ascending = ascending and (n == start or last <= greater)
                values[0, n] = last = greater
                out_times[0, n] = time
                out_diffs[0, n] = sign
                n += 1
        for lane in range(keys.shape[0]):
            for i in range(start, n):
                out[lane, i] = keys[lane, key]
        if not ascending:
            work, scratch = np.empty((2, n - start), np.int64), np.empty(n - start, np.int64)
            sort_changes(start, n, work, scratch, values, out_times, out_diffs)
    return n


@jit
def sums_changes_of_batch(keys, offsets, times, diffs, before, out, values, out_times, out_diffs):
    """Write `sums_changes` of `running_totals` as rows of a batch, without the arrays of either; times must be sorted.

    `out` has space for two rows of each update, the key first; `values` are its lanes after the key. Return the number
    of rows, or −1 if the times of a key are not sorted.
    """
    width = before.shape[0]
    if width == 1:
        return single_sum_changes(keys, offsets, times, diffs, before, out, values, out_times, out_diffs)
    step = 1 if diffs.shape[1] > 1 else 0
    old, new = np.empty(width, np.int64), np.empty(width, np.int64)
    n = ZERO
    for key in range(offsets.shape[0] - 1):
        start = n
        for w in range(width):
            new[w] = before[w, key]
        row = offsets[key]
        while row < offsets[key + 1]:
            time = times[0, row]
            for w in range(width):
                old[w] = new[w]
            while row < offsets[key + 1] and times[0, row] == time:
                for w in range(width):
                    new[w] += diffs[w, row * step]
                row += 1
            if row < offsets[key + 1] and times[0, row] < time:
                return -1
            order = 0  # negative if the old totals sort before the new, positive if after
            was, now = False, False
            for w in range(width):
                if order == 0:
                    order = (1 if old[w] > new[w] else 0) - (1 if old[w] < new[w] else 0)
                was = was or old[w] != 0
                now = now or new[w] != 0
            if order != 0:
                old_at = n + 1 if order > 0 and now else n
                new_at = n + 1 if order < 0 and was else n
                if was:
                    for w in range(width):
                        values[w, old_at] = old[w]
                    out_diffs[0, old_at] = -1
                if now:
                    for w in range(width):
                        values[w, new_at] = new[w]
                    out_diffs[0, new_at] = 1
                end = n + (1 if was else 0) + (1 if now else 0)
                for i in range(n, end):
                    out_times[0, i] = time
                    for lane in range(keys.shape[0]):
                        out[lane, i] = keys[lane, key]
                n = end
        if n - start > 1:
            work, scratch = np.empty((2, n - start), np.int64), np.empty(n - start, np.int64)
            sort_changes(start, n, work, scratch, values, out_times, out_diffs)
    return n


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield running_totals, (COLUMN, TABLE, TABLE, TABLE)
    yield presence_changes, (NUMBER, TABLE, COLUMN, TABLE, TABLE)
    yield sums_changes, (TABLE, COLUMN, TABLE, TABLE)
    yield sums_changes_of_batch, (TABLE, COLUMN, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE)
