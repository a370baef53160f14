"""Totals by key through a total order of times, and the changes they make to an answer, without an output trace.

Of each key we know the total before (int64[width, keys]) and its new updates, none of them before any known:

    running             the totals after each new time: per key (offsets), in order of time
    presence_changes    where "total of lane 0 is at least …" changes: a row without lanes, diff ±1
    sums_changes        where the totals change: −old +new, a row being the totals themselves, none when all are zero

Times of a key may come in any order; constant times or diffs are one column. Cost: one pass, and a sort of the times of
those keys whose times are not sorted.
Twins: kpg.testing.kernels_operators.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.ordering import ORDER, ZERO, sort_columns


@jit
def most_rows(offsets):
    """The most rows of any key."""
    most = 0
    for key in range(offsets.shape[0] - 1):
        most = max(most, offsets[key + 1] - offsets[key])
    return most


@jit
def running(offsets, times, diffs, before):
    """(offsets, times, totals) of the totals after each distinct new time of each key."""
    keys = offsets.shape[0] - 1
    width = before.shape[0]
    one_time = times.shape[1] == 1
    step = 1 if diffs.shape[1] > 1 else 0
    most = 0 if one_time else most_rows(offsets)
    work = np.empty((2, most), np.int64)
    room = min(keys, offsets[keys]) if one_time else offsets[keys]
    step_offsets = np.zeros(keys + 1, np.int64)
    step_times = np.empty((1, room), np.int64)
    totals = np.empty((width, room), np.int64)
    n = 0
    for key in range(keys):
        lo = offsets[key]
        hi = offsets[key + 1]
        if one_time and lo < hi:
            step_times[0, n] = times[0, 0]
            for w in range(width):
                total = before[w, key]
                if step == 0:
                    total += (hi - lo) * diffs[w, 0]
                else:
                    for row in range(lo, hi):
                        total += diffs[w, row]
                totals[w, n] = total
            n += 1
        elif lo < hi:
            for row in range(lo, hi):
                work[ORDER, row - lo] = row
            sort_columns(times, ZERO, times.shape[0], work, hi - lo)
            for k in range(hi - lo):
                row = work[ORDER, k]
                if k == 0 or times[0, row] != step_times[0, n - 1]:
                    step_times[0, n] = times[0, row]
                    for w in range(width):
                        totals[w, n] = before[w, key] if k == 0 else totals[w, n - 1]
                    n += 1
                for w in range(width):
                    totals[w, n - 1] += diffs[w, row * step]
        step_offsets[key + 1] = n
    return step_offsets, step_times, totals


@jit
def presence_changes(at_least, before, step_offsets, step_times, totals):
    """(keys, times, diffs) of the changes of presence, sorted by key and time."""
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
def changed(a, i, b, j):
    """Whether two columns of totals differ, and whether the first and the second are not all zero."""
    differ = False
    first = False
    second = False
    for w in range(a.shape[0]):
        differ = differ or a[w, i] != b[w, j]
        first = first or a[w, i] != 0
        second = second or b[w, j] != 0
    return differ, first, second


@jit
def sums_changes(before, step_offsets, step_times, totals):
    """(keys, totals, times, diffs) of the changes of the totals, sorted by key, totals, time."""
    keys = step_offsets.shape[0] - 1
    width = before.shape[0]
    count = 0
    most = 0
    for key in range(keys):
        start = count
        for s in range(step_offsets[key], step_offsets[key + 1]):
            if s == step_offsets[key]:
                differ, old, new = changed(before, key, totals, s)
            else:
                differ, old, new = changed(totals, s - 1, totals, s)
            if differ:
                count += (1 if old else 0) + (1 if new else 0)
        most = max(most, count - start)
    out_keys = np.empty(count, np.int64)
    out = np.empty((width, count), np.int64)
    out_times = np.empty((1, count), np.int64)
    out_diffs = np.empty((1, count), np.int64)
    made = np.empty((width + 1, most), np.int64)
    made_diffs = np.empty(most, np.int64)
    work = np.empty((2, most), np.int64)
    n = 0
    for key in range(keys):
        size = ZERO
        for s in range(step_offsets[key], step_offsets[key + 1]):
            if s == step_offsets[key]:
                differ, old, new = changed(before, key, totals, s)
            else:
                differ, old, new = changed(totals, s - 1, totals, s)
            if differ and old:
                for w in range(width):
                    made[w, size] = before[w, key] if s == step_offsets[key] else totals[w, s - 1]
                made[width, size] = step_times[0, s]
                made_diffs[size] = -1
                size += 1
            if differ and new:
                for w in range(width):
                    made[w, size] = totals[w, s]
                made[width, size] = step_times[0, s]
                made_diffs[size] = 1
                size += 1
        for k in range(size):
            work[ORDER, k] = k
        sort_columns(made, ZERO, width + 1, work, size)
        for k in range(size):
            out_keys[n] = key
            for w in range(width):
                out[w, n] = made[w, work[ORDER, k]]
            out_times[0, n] = made[width, work[ORDER, k]]
            out_diffs[0, n] = made_diffs[work[ORDER, k]]
            n += 1
    return out_keys, out, out_times, out_diffs


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield running, (COLUMN, TABLE, TABLE, TABLE)
    yield presence_changes, (NUMBER, TABLE, COLUMN, TABLE, TABLE)
    yield sums_changes, (TABLE, COLUMN, TABLE, TABLE)
