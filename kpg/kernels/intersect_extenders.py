"""Extend tuples by one value that two indexes both hold: the step that closes a triangle, hot in most cyclic rules.

Arguments and meaning are those of kpg.kernels.extend_tuples with two extenders, none negative, one new lane, and times
of one coordinate. A visible row is then not after the tuple, so the tuple keeps its time, and equal rows are summed.
For each pair of batches, one of each extender, that hold the key, the kernel intersects two sorted runs. It merges runs
of similar length. If one run is much longer, it gallops through that run. If the runs do not overlap, which is common
when values arrive in order, it reads only their ends.

Cost: for each pair of batches the rows of the shorter run, times a search in the longer. The kernel is one loop that
reads arrays by address. If it passed arrays to functions, Numba would count references to them for each tuple, which
costs more than the work. Twin: kpg.testing.kernel_twins.extend_tuples_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.array_address import DATA, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, peek, prefetch
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.extend_tuples import KEYS, PREFETCH_TUPLES, STRICT
from kpg.kernels.jit import jit
from kpg.kernels.search_lane import gallop, lower_bound

MERGED_LENGTH_RATIO = 16  # runs are merged unless one is longer than the other by more than this factor


@jit
def intersect_extenders(
    data, times, diffs, start, stop, table, bounds, flags, ranges, floor, low, high, projection, progress, limit,
    out_data, out_times, out_diffs,
):  # fmt: skip
    """Write the extensions of tuples from `start` on, and the next tuple to progress[0].

    The kernel stops before tuple `stop` if the buffer is full or if it has read more than `limit` rows. Return the
    number written, whether all times are equal, and whether all diffs are.
    """
    batches = table.shape[0]
    capacity = out_data.shape[1]
    lanes = np.empty(batches, np.int64)  # the address of the lane after the key
    time_steps = np.empty(batches, np.int64)  # 0 if all rows have one time; likewise for diffs
    diff_steps = np.empty(batches, np.int64)
    earliest = np.empty(batches, np.int64)  # a lower bound of the times of a batch
    for block in range(batches):
        lanes[block] = table[block, DATA] + 8 * flags[0 if block < bounds[1] else 1, KEYS] * table[block, ROWS]
        time_steps[block] = 0 if table[block, TIME_ROWS] == 1 else 1
        diff_steps[block] = 0 if table[block, DIFF_ROWS] == 1 else 1
        earliest[block] = max(floor[0], peek(table[block, TIMES], 0)) if time_steps[block] == 0 else floor[0]
    blocks = np.empty(batches + 1, np.int64)  # the runs of a tuple: batch, start, end
    starts = np.empty(batches + 1, np.int64)
    ends = np.empty(batches + 1, np.int64)
    n = 0
    rows_read = 0
    times_alike = 1
    diffs_alike = 1
    for i in range(start, stop):
        if rows_read > limit:
            stop = i
            break
        if i + PREFETCH_TUPLES < stop:
            for block in range(batches):
                prefetch(lanes[block], ranges[2 * block, i + PREFETCH_TUPLES])
        written = n
        time = times[0, i if times.shape[1] > 1 else 0]
        diff = diffs[0, i if diffs.shape[1] > 1 else 0]
        runs = 0
        first_runs = 0
        for side in range(2):
            for block in range(bounds[side], bounds[side + 1]):
                row = ranges[2 * block, i]
                end = ranges[2 * block + 1, i]
                if low >= 0:
                    row = lower_bound(lanes[block], row, end, data[low, i])
                if high >= 0:
                    end = lower_bound(lanes[block], row, end, data[high, i])
                blocks[runs] = block
                starts[runs] = row
                ends[runs] = end
                runs += 1 if (row < end) & (earliest[block] + flags[side, STRICT] <= time) else 0
            if side == 0:
                first_runs = runs
            if runs == 0:
                break
        for left_run in range(first_runs):
            p = blocks[left_run]
            p_lane = lanes[p]
            for right_run in range(first_runs, runs):
                q = blocks[right_run]
                q_lane = lanes[q]
                a = starts[left_run]
                b = starts[right_run]
                a_end = ends[left_run]
                b_end = ends[right_run]
                if peek(p_lane, a_end - 1) < peek(q_lane, b) or peek(q_lane, b_end - 1) < peek(p_lane, a):
                    continue
                shorter = min(a_end - a, b_end - b)
                similar = max(a_end - a, b_end - b) <= MERGED_LENGTH_RATIO * shorter
                rows_read += shorter
                while a < a_end and b < b_end:
                    x = peek(p_lane, a)
                    y = peek(q_lane, b)
                    if x != y:
                        if similar:  # computed without branches, which would be mispredicted
                            a += 1 if x < y else 0
                            b += 1 if y < x else 0
                        elif x < y:
                            a = gallop(p_lane, a + 1, a_end, y)
                        else:
                            b = gallop(q_lane, b + 1, b_end, x)
                        continue
                    left_total = 0
                    while a < a_end and peek(p_lane, a) == x:
                        if peek(table[p, TIMES], a * time_steps[p]) + flags[0, STRICT] <= time:
                            left_total += peek(table[p, DIFFS], a * diff_steps[p])
                        a += 1
                    right_total = 0
                    while b < b_end and peek(q_lane, b) == x:
                        if peek(table[q, TIMES], b * time_steps[q]) + flags[1, STRICT] <= time:
                            right_total += peek(table[q, DIFFS], b * diff_steps[q])
                        b += 1
                    amount = diff * left_total * right_total
                    if amount == 0:
                        continue
                    if n >= capacity:
                        progress[0] = i
                        progress[1] += rows_read
                        return written, times_alike, diffs_alike
                    for lane in range(projection.shape[0]):
                        out_data[lane, n] = x if projection[lane, 0] == 1 else data[projection[lane, 1], i]
                    out_times[0, n] = time
                    out_diffs[0, n] = amount
                    times_alike &= 1 if time == out_times[0, 0] else 0
                    diffs_alike &= 1 if amount == out_diffs[0, 0] else 0
                    n += 1
    progress[0] = stop
    progress[1] += rows_read
    return n, times_alike, diffs_alike


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield intersect_extenders, (
        TABLE, TABLE, TABLE, NUMBER, NUMBER, TABLE, COLUMN, TABLE, TABLE, COLUMN, NUMBER, NUMBER, TABLE,
        COLUMN, NUMBER, TABLE, TABLE, TABLE,
    )  # fmt: skip
