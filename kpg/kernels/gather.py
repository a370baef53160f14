"""Find the rows of some keys in a sorted block, and bring those of several blocks together by key.

`keys` is int64[key_lanes, m], sorted and distinct; `data` is sorted by its first `key_lanes` lanes. Seeks gallop from
where the last key was found, so few keys cost a logarithm each and many keys cost one walk.
`ranges` is int64[2 * blocks, m]: row 2 b is where the rows of each key begin in block b, row 2 b + 1 where they end.
Twins: kpg.testing.kernels_trace.
"""

from collections.abc import Iterator

from kpg.kernels.consolidate import is_zero
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.sort import compare_rows, merge_runs


@jit
def compare_key(data, i, keys, k):
    """Below, at or above 0 as the key of row i sorts before, with or after key k."""
    for lane in range(keys.shape[0]):
        x = data[lane, i]
        y = keys[lane, k]
        if x < y:
            return -1
        if x > y:
            return 1
    return 0


@jit
def seek(data, start, end, keys, k, least):
    """The first row in [start, end) whose key compares with key k at or above `least`."""
    if start >= end or compare_key(data, start, keys, k) >= least:
        return start
    step = 1
    while start + step < end and compare_key(data, start + step, keys, k) < least:
        start += step
        step += step
    low = start + 1
    high = min(end, start + step)
    while low < high:
        middle = (low + high) >> 1
        if compare_key(data, middle, keys, k) < least:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def find(data, keys, ranges, block):
    """Fill the ranges of one block; returns how many rows they hold."""
    n = data.shape[1]
    at = 0
    total = 0
    for k in range(keys.shape[1]):
        at = seek(data, at, n, keys, k, 0)
        ranges[2 * block, k] = at
        at = seek(data, at, n, keys, k, 1)
        ranges[2 * block + 1, k] = at
        total += at - ranges[2 * block, k]
    return total


@jit
def layout(ranges, offsets, cursor):
    """Where the rows of each key go when all blocks are brought together; `cursor` begins there."""
    total = 0
    for k in range(ranges.shape[1]):
        offsets[k] = total
        cursor[k] = total
        for block in range(ranges.shape[0] // 2):
            total += ranges[2 * block + 1, k] - ranges[2 * block, k]
    offsets[ranges.shape[1]] = total


@jit
def take(data, times, diffs, key_lanes, ranges, block, cursor, floor, out_data, out_times, out_diffs):
    """Copy the values, times and diffs of the ranges of one block to the cursors of their keys.

    Times get the coordinates they lack as zeros, and are joined with `floor`.
    """
    time_step = 1 if times.shape[1] > 1 else 0
    diff_step = 1 if diffs.shape[1] > 1 else 0
    depth = times.shape[0]
    for k in range(ranges.shape[1]):
        o = cursor[k]
        start = ranges[2 * block, k]
        rows = ranges[2 * block + 1, k] - start
        for lane in range(key_lanes, data.shape[0]):
            for row in range(rows):
                out_data[lane - key_lanes, o + row] = data[lane, start + row]
        for lane in range(depth):
            for row in range(rows):
                out_times[lane, o + row] = max(times[lane, (start + row) * time_step], floor[lane])
        for lane in range(depth, out_times.shape[0]):
            for row in range(rows):
                out_times[lane, o + row] = max(0, floor[lane])
        for lane in range(diffs.shape[0]):
            for row in range(rows):
                out_diffs[lane, o + row] = diffs[lane, (start + row) * diff_step]
        cursor[k] = o + rows


@jit
def settle_keys(offsets, data, times, diffs, order, scratch, out_offsets, out_data, out_times, out_diffs):
    """Sort the rows of each key by value, then time, and consolidate them; returns how many remain."""
    kept = 0
    for k in range(len(offsets) - 1):
        out_offsets[k] = kept
        start, end = offsets[k], offsets[k + 1]
        for i in range(start, end):
            order[i] = i
        merge_runs(data, times, start, end, order, scratch)
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
    out_offsets[len(offsets) - 1] = kept
    return kept


@jit
def total(data, diffs, keys, out):
    """Add the diffs of each key to `out`, int64[width, m]."""
    n = data.shape[1]
    step = 1 if diffs.shape[1] > 1 else 0
    at = 0
    for k in range(keys.shape[1]):
        start = seek(data, at, n, keys, k, 0)
        at = seek(data, start, n, keys, k, 1)
        for lane in range(diffs.shape[0]):
            if step == 0:
                out[lane, k] += diffs[lane, 0] * (at - start)
            else:
                for row in range(start, at):
                    out[lane, k] += diffs[lane, row]


@jit
def boundaries(data, key_lanes, offsets):
    """Where each group of equal keys begins, and the end; returns how many groups."""
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


@jit
def upto(data, times, diffs, start, end, at, out_data, out_diffs, o):
    """Copy data and diffs of the rows in [start, end) whose time is at or before `at`; returns the next free column."""
    time_step = 1 if times.shape[1] > 1 else 0
    diff_step = 1 if diffs.shape[1] > 1 else 0
    for i in range(start, end):
        early = True
        for lane in range(times.shape[0]):
            if times[lane, i * time_step] > at[lane]:
                early = False
        if early:
            for lane in range(data.shape[0]):
                out_data[lane, o] = data[lane, i]
            for lane in range(diffs.shape[0]):
                out_diffs[lane, o] = diffs[lane, i * diff_step]
            o += 1
    return o


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield find, (TABLE, TABLE, TABLE, NUMBER)
    yield layout, (TABLE, COLUMN, COLUMN)
    yield take, (TABLE, TABLE, TABLE, NUMBER, TABLE, NUMBER, COLUMN, COLUMN, TABLE, TABLE, TABLE)
    yield settle_keys, (COLUMN, TABLE, TABLE, TABLE, COLUMN, COLUMN, COLUMN, TABLE, TABLE, TABLE)
    yield total, (TABLE, TABLE, TABLE, TABLE)
    yield boundaries, (TABLE, NUMBER, COLUMN)
    yield upto, (TABLE, TABLE, TABLE, NUMBER, NUMBER, COLUMN, TABLE, TABLE, NUMBER)
