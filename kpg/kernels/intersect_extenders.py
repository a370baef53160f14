"""Extend tuples by one value that two indexes both hold: what closes a triangle, and the hot loop of most cyclic rules.

The arguments and the meaning are those of kpg.kernels.extend_tuples with two extenders, none negative, one new lane, and times
of one coordinate: there a row that counts is not after the tuple, so the tuple's time stays and equal rows are summed.
Each batch of the one extender meets each batch of the other where both hold the key: two sorted runs. Runs of like
length are merged, a short one gallops through a long one, and runs that lie apart, as they do where values come in
order, cost a look at their ends.

Cost: for each pair of batches the rows of the shorter run, times a search in the longer. Everything is in this one loop
and read by address: arrays that are passed on to functions would be counted for each tuple, which costs more than the
work. Twin: kpg.testing.kernels_extend.extend.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.array_address import DATA, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, fetch, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.extend_tuples import AHEAD, KEYS, STRICT
from kpg.kernels.jit import jit
from kpg.kernels.search_lane import gallop, lower_bound

EVEN = 16  # runs of which none is longer than so many times the other are merged


@jit
def intersect(data, times, diffs, start, stop, table, bounds, shape, ranges, floor, low, high, projection, meter,
              limit, out_data, out_times, out_diffs):  # fmt: skip
    """Write the extensions of tuples from `start` on; meter[0] is where to go on.

    That is before `stop` if room is short, or after a tuple with which more than `limit` rows were looked at. Returns
    how many were written, whether all times are alike, and diffs.
    """
    batches = table.shape[0]
    capacity = out_data.shape[1]
    lanes = np.empty(batches, np.int64)  # where the lane after the key begins
    time_steps = np.empty(batches, np.int64)  # 0 where all rows have one time, and so for diffs
    diff_steps = np.empty(batches, np.int64)
    earliest = np.empty(batches, np.int64)  # no row is before
    for block in range(batches):
        lanes[block] = table[block, DATA] + 8 * shape[0 if block < bounds[1] else 1, KEYS] * table[block, ROWS]
        time_steps[block] = 0 if table[block, TIME_ROWS] == 1 else 1
        diff_steps[block] = 0 if table[block, DIFF_ROWS] == 1 else 1
        earliest[block] = max(floor[0], peek(table[block, TIMES], 0)) if time_steps[block] == 0 else floor[0]
    blocks = np.empty(batches + 1, np.int64)  # the runs of a tuple: in which batch, from where, to where
    starts = np.empty(batches + 1, np.int64)
    ends = np.empty(batches + 1, np.int64)
    n = 0
    looks = 0
    times_alike = 1
    diffs_alike = 1
    for i in range(start, stop):
        if looks > limit:
            stop = i
            break
        if i + AHEAD < stop:
            for block in range(batches):
                fetch(lanes[block], ranges[2 * block, i + AHEAD])
        written = n
        moment = times[0, i if times.shape[1] > 1 else 0]
        diff = diffs[0, i if diffs.shape[1] > 1 else 0]
        found = 0
        ours = 0
        for side in range(2):
            for block in range(bounds[side], bounds[side + 1]):
                row = ranges[2 * block, i]
                end = ranges[2 * block + 1, i]
                if low >= 0:
                    row = lower_bound(lanes[block], row, end, data[low, i])
                if high >= 0:
                    end = lower_bound(lanes[block], row, end, data[high, i])
                blocks[found] = block
                starts[found] = row
                ends[found] = end
                found += 1 if (row < end) & (earliest[block] + shape[side, STRICT] <= moment) else 0
            if side == 0:
                ours = found
            if found == 0:
                break
        for one in range(ours):
            p = blocks[one]
            p_lane = lanes[p]
            for other in range(ours, found):
                q = blocks[other]
                q_lane = lanes[q]
                a = starts[one]
                b = starts[other]
                a_end = ends[one]
                b_end = ends[other]
                if peek(p_lane, a_end - 1) < peek(q_lane, b) or peek(q_lane, b_end - 1) < peek(p_lane, a):
                    continue
                shorter = min(a_end - a, b_end - b)
                even = max(a_end - a, b_end - b) <= EVEN * shorter
                looks += shorter
                while a < a_end and b < b_end:
                    x = peek(p_lane, a)
                    y = peek(q_lane, b)
                    if x != y:
                        if even:  # a choice of numbers, not of ways
                            a += 1 if x < y else 0
                            b += 1 if y < x else 0
                        elif x < y:
                            a = gallop(p_lane, a + 1, a_end, y)
                        else:
                            b = gallop(q_lane, b + 1, b_end, x)
                        continue
                    left = 0
                    while a < a_end and peek(p_lane, a) == x:
                        if peek(table[p, TIMES], a * time_steps[p]) + shape[0, STRICT] <= moment:
                            left += peek(table[p, DIFFS], a * diff_steps[p])
                        a += 1
                    right = 0
                    while b < b_end and peek(q_lane, b) == x:
                        if peek(table[q, TIMES], b * time_steps[q]) + shape[1, STRICT] <= moment:
                            right += peek(table[q, DIFFS], b * diff_steps[q])
                        b += 1
                    amount = diff * left * right
                    if amount == 0:
                        continue
                    if n >= capacity:
                        meter[0] = i
                        meter[1] += looks
                        return written, times_alike, diffs_alike
                    for lane in range(projection.shape[0]):
                        out_data[lane, n] = x if projection[lane, 0] == 1 else data[projection[lane, 1], i]
                    out_times[0, n] = moment
                    out_diffs[0, n] = amount
                    times_alike &= 1 if moment == out_times[0, 0] else 0
                    diffs_alike &= 1 if amount == out_diffs[0, 0] else 0
                    n += 1
    meter[0] = stop
    meter[1] += looks
    return n, times_alike, diffs_alike


def examples() -> Iterator[Example]:
    """How the engine calls this kernel."""
    yield intersect, (TABLE, TABLE, TABLE, NUMBER, NUMBER, TABLE, COLUMN, TABLE, TABLE, COLUMN, NUMBER, NUMBER, TABLE,
                      COLUMN, NUMBER, TABLE, TABLE, TABLE)  # fmt: skip
