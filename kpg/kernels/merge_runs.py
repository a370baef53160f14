"""Merge two sorted, consolidated runs into one, and replace times by their representatives.

    merge_runs(A, B, F)  =  consolidate({(d, representative(F, t), r)  |  (d, t, r) in A or B})

Preconditions: A and B are sorted by (data, time), consolidated, and have at least one lane of data; outputs have space
for all rows of both. The frontier is int64[elements, depth]; without elements times stay as they are. `one_time_sides`
names the sides (FROM_A, FROM_B, both or 0) for which the caller knows, although their times are not constant, that all
times have the same representative, the first element of the frontier.

Resumable: `state` is int64[8], zeros at first.

    0, 1   the next row of A and of B            2   the end of the output
    3      the start of the last group of equal data, if state[6] is 1: it may still need to be sorted and summed
    4      1 once diffs were written; before that all diffs are the one constant of A and B
    5      1 if times differ; otherwise no time is compared, and only column 0 of the output's times is written
    6      1 if rows of one side may become equal, so that kpg.kernels.resort_times must sort groups
    7      1 once the merge has begun

A call reads at most `fuel` rows (one more if they are equal) and returns the number read; the merge is complete when
all rows are read.

How. The kernel copies a long run from one side. It merges rows of one lane and one time in a single loop, which takes a
third of the time of the general method. The general method first compares rows, without branches, and writes a block of
steps: bit 0 takes a row of A, bit 1 a row of B, both bits two equal rows, and bit 2 drops the row because the two
cancel. If most of the last few steps were alike, the kernel predicts that the next ones are too; correct predictions
also cut the time to a third. Then it applies the steps lane by lane. Some arrays are read by address: for an array
index, the compiler adds a check for negative numbers, which costs as much as a comparison of rows. Cost: linear; where
representatives are out of order, sorting the times of one datum takes n log n. Twin:
kpg.testing.kernel_twins.merge_runs_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.advance_times import advance_columns, write_representative
from kpg.kernels.array_address import address_of, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.resort_times import mark_repeated_data, resort_group, resort_groups
from kpg.kernels.sort_rows import compare_columns

BLOCK_STEPS = 1024  # steps planned before they are applied: the steps and their rows stay in the cache
MIN_COPIED_ROWS = 32  # a run from one side of at least this length is copied
SAMPLE_STEPS = 8  # steps after which the kernel checks whether most were of one kind

FROM_A, FROM_B, CANCEL = 1, 2, 4  # bits of a step


@jit
def merge_runs(
    a_data, a_times, a_diffs, b_data, b_times, b_diffs, frontier, one_time_sides, out_data, out_times, out_diffs,
    state, fuel,
):  # fmt: skip
    """Merge up to `fuel` more rows; return the number read."""
    n, m = a_data.shape[1], b_data.shape[1]
    if state[7] == 0:
        begin_merge(a_data, a_times, a_diffs, b_data, b_times, b_diffs, frontier, one_time_sides, out_times, state)
    i, j, o, group, written, timed, resorting = state[0], state[1], state[2], state[3], state[4], state[5], state[6]
    steps = np.empty(BLOCK_STEPS, np.int64)
    alike = a_diffs.shape[1] == 1 and b_diffs.shape[1] == 1 and compare_columns(a_diffs, 0, b_diffs, 0) == 0
    single_lane = timed == 0 and a_data.shape[0] == 1 and a_diffs.shape[0] == 1
    read_before = i + j
    while (i < n or j < m) and i + j < read_before + fuel:
        left = read_before + fuel - i - j
        if resorting == 1:
            left = min(left, BLOCK_STEPS)
        start = o
        next_i, next_j = i, j
        if i < n and (j == m or starts_long_run(a_data, a_times, i, n, b_data, b_times, j, timed)):
            next_i = min(end_of_run(a_data, a_times, i, n, b_data, b_times, j, m, timed), i + left)
        elif j < m and (i == n or starts_long_run(b_data, b_times, j, m, a_data, a_times, i, timed)):
            next_j = min(end_of_run(b_data, b_times, j, m, a_data, a_times, i, n, timed), j + left)
        if next_i > i or next_j > j:
            o += next_i - i + next_j - j
            copy_columns(a_data, i, next_i, out_data, start)
            copy_columns(b_data, j, next_j, out_data, start)
            if timed == 1:
                copy_columns(a_times, i, next_i, out_times, start)
                copy_columns(b_times, j, next_j, out_times, start)
            if written == 1:
                copy_columns(a_diffs, i, next_i, out_diffs, start)
                copy_columns(b_diffs, j, next_j, out_diffs, start)
        elif single_lane and written == 1:
            next_i, next_j, o = merge_single_lane(
                a_data, a_diffs, i, b_data, b_diffs, j, left, out_data, out_diffs, start
            )
        else:
            count, next_i, next_j, o, met_equal = plan_steps(
                a_data, a_times, a_diffs, i, b_data, b_times, b_diffs, j, timed, left, steps, out_data, start
            )
            if met_equal == 1 and written == 0:
                repeat_column(a_diffs, out_diffs, start)
                written = 1
            apply_steps(a_data, i, b_data, j, steps, count, 2, out_data, start)
            if timed == 1:
                apply_steps(a_times, i, b_times, j, steps, count, 0, out_times, start)
            if written == 1 and alike and met_equal == 0:
                copy_columns(a_diffs, 0, o - start, out_diffs, start)
            elif written == 1:
                apply_steps_to_diffs(a_diffs, i, b_diffs, j, steps, count, out_diffs, start)
        i, j = next_i, next_j
        if resorting == 1:
            if timed == 1 and frontier.shape[0] > 0:
                advance_columns(out_times, start, o, frontier)
            repeated = mark_repeated_data(out_data, group, start, o, steps)
            if repeated == 0 and start - group <= 1:
                group = max(group, o - 1)
            else:
                if written == 0:
                    repeat_column(a_diffs if n > 0 else b_diffs, out_diffs, o)
                    written = 1
                group, o = resort_groups(out_data, out_times, out_diffs, timed, group, start, o, steps)
    if i == n and j == m and o - group > 1 and resorting == 1:
        o = resort_group(out_times, out_diffs, timed, group, o)
        group = o
    state[0], state[1], state[2], state[3], state[4] = i, j, o, group, written
    return i + j - read_before


@jit
def begin_merge(a_data, a_times, a_diffs, b_data, b_times, b_diffs, frontier, one_time_sides, out_times, state):
    """Find out whether the representatives of all times are equal, and whether all diffs are."""
    state[7] = 1
    a_rows, b_rows = a_data.shape[1] > 0, b_data.shape[1] > 0
    a_one_time = a_times.shape[1] == 1 or one_time_sides & FROM_A != 0
    b_one_time = b_times.shape[1] == 1 or one_time_sides & FROM_B != 0
    time = np.empty((a_times.shape[0], 2), np.int64)
    write_only_time(a_times, frontier, time, 0)
    write_only_time(b_times, frontier, time, 1)
    if a_rows and b_rows:
        single_time = a_one_time and b_one_time and compare_columns(time, 0, time, 1) == 0
    else:
        single_time = a_one_time if a_rows else b_one_time
    if single_time:
        for lane in range(time.shape[0]):
            out_times[lane, 0] = time[lane, 0 if a_rows else 1]
    else:
        state[5] = 1
    if frontier.shape[0] > 0 and (not single_time or a_times.shape[1] > 1 or b_times.shape[1] > 1):
        state[6] = 1
    if (a_rows and a_diffs.shape[1] > 1) or (b_rows and b_diffs.shape[1] > 1):
        state[4] = 1
    elif a_rows and b_rows and compare_columns(a_diffs, 0, b_diffs, 0) != 0:
        state[4] = 1


@jit
def write_only_time(times, frontier, out, o):
    """Write the representative of the only time of a block, or of all its times if they share one."""
    for lane in range(times.shape[0]):
        out[lane, o] = times[lane, 0] if frontier.shape[0] == 0 or times.shape[1] == 1 else frontier[0, lane]
    if frontier.shape[0] > 0:
        write_representative(out, o, frontier, out, o)


@inlined
def sorts_before(a_data, a_times, i, b_data, b_times, j, timed):
    """Return whether row i of A sorts before row j of B."""
    sign = compare_columns(a_data, i, b_data, j)
    if sign == 0 and timed == 1:
        a_step = 1 if a_times.shape[1] > 1 else 0
        b_step = 1 if b_times.shape[1] > 1 else 0
        sign = compare_columns(a_times, i * a_step, b_times, j * b_step)
    return sign < 0


@jit
def starts_long_run(a_data, a_times, i, n, b_data, b_times, j, timed):
    """Return whether the next MIN_COPIED_ROWS rows of A all sort before row j of B."""
    return i + MIN_COPIED_ROWS <= n and sorts_before(
        a_data, a_times, i + MIN_COPIED_ROWS - 1, b_data, b_times, j, timed
    )


@jit
def end_of_run(a_data, a_times, i, n, b_data, b_times, j, m, timed):
    """Return the first row of A after i that does not sort before row j of B; gallop. Row i must sort before it."""
    if j == m:
        return n
    step = MIN_COPIED_ROWS
    while i + step < n and sorts_before(a_data, a_times, i + step, b_data, b_times, j, timed):
        i += step
        step += step
    high = min(n, i + step)
    while i + 1 < high:
        middle = (i + high) >> 1
        if sorts_before(a_data, a_times, middle, b_data, b_times, j, timed):
            i = middle
        else:
            high = middle
    return high


@jit
def merge_single_lane(a_data, a_diffs, i, b_data, b_diffs, j, limit, out_data, out_diffs, o):
    """Merge up to BLOCK_STEPS rows of one lane, one time and diffs of one lane, in a single loop.

    Return the next row of each side and the end of the output.
    """
    n, m = a_data.shape[1], b_data.shape[1]
    a_keys, a_sums, a_step = address_of(a_data), address_of(a_diffs), 1 if a_diffs.shape[1] > 1 else 0
    b_keys, b_sums, b_step = address_of(b_data), address_of(b_diffs), 1 if b_diffs.shape[1] > 1 else 0
    keys, sums = out_data[0], out_diffs[0]
    end = i + j + min(limit, BLOCK_STEPS)
    while i < n and j < m and i + j < end:
        x, y = peek(a_keys, i), peek(b_keys, j)
        from_a, from_b = np.int64(x <= y), np.int64(x >= y)
        total = (peek(a_sums, i * a_step) & -from_a) + (peek(b_sums, j * b_step) & -from_b)
        keys[np.uint64(o)] = y ^ ((x ^ y) & -from_a)
        sums[np.uint64(o)] = total
        i += from_a
        j += from_b
        o += np.int64(total != 0)
    return i, j, o


@inlined
def copy_run(first, second, i, end, x, xx, out_first, out_second, o):
    """Write the first two lanes of the rows [i, end) up to the first not before (x, xx); return the number written."""
    start = i
    while i < end and (first[i] < x or (first[i] == x and second[i] < xx)):
        out_first[o] = first[i]
        out_second[o] = second[i]
        i += 1
        o += 1
    return i - start


@inlined
def count_cancelling(a_data, a_times, a_diffs, i, b_data, b_times, b_diffs, j, timed, limit):
    """Return the number of rows, up to `limit`, from rows i of A and j of B on that are equal pairwise and cancel."""
    a_time_step = 1 if a_times.shape[1] > 1 else 0
    b_time_step = 1 if b_times.shape[1] > 1 else 0
    a_diff_step = 1 if a_diffs.shape[1] > 1 else 0
    b_diff_step = 1 if b_diffs.shape[1] > 1 else 0
    for k in range(limit):
        x, y = i + k, j + k
        if compare_columns(a_data, x, b_data, y) != 0:
            return k
        if timed == 1 and compare_columns(a_times, x * a_time_step, b_times, y * b_time_step) != 0:
            return k
        for lane in range(a_diffs.shape[0]):
            if a_diffs[lane, x * a_diff_step] + b_diffs[lane, y * b_diff_step] != 0:
                return k
    return limit


@inlined
def fill_steps(steps, count, taken, step):
    """Write the same step `taken` times."""
    for k in range(count, count + taken):
        steps[k] = step


@jit
def plan_steps(a_data, a_times, a_diffs, i, b_data, b_times, b_diffs, j, timed, limit, steps, out_data, o):
    """Write the next steps, and the first two lanes of the rows they take; read about `limit` rows at most.

    Return the number of steps, the next row of each side, the end of the output, and 1 if some rows were equal.
    """
    lanes = a_data.shape[0]
    n, m = a_data.shape[1], b_data.shape[1]
    a_time_step = 1 if a_times.shape[1] > 1 else 0
    b_time_step = 1 if b_times.shape[1] > 1 else 0
    a_diff_step = 1 if a_diffs.shape[1] > 1 else 0
    b_diff_step = 1 if b_diffs.shape[1] > 1 else 0
    second = min(1, lanes - 1)
    a_first, a_second = a_data[0], a_data[second]
    b_first, b_second = b_data[0], b_data[second]
    out_first, out_second = out_data[0], out_data[second]
    end = i + j + limit
    count = 0
    met_equal = 0
    while i < n and j < m and count < BLOCK_STEPS and i + j < end:
        from_a, from_b, output_before = i, j, o
        samples = min(min(n - i, m - j), min((end - i - j + 1) >> 1, BLOCK_STEPS - count))
        for _ in range(min(SAMPLE_STEPS, samples)):
            x, y, xx, yy = a_first[i], b_first[j], a_second[i], b_second[j]
            same = x == y
            less = (x < y) | (same & (xx < yy))
            step = FROM_B - less  # FROM_A if less
            if same & (xx == yy):
                sign = 0
                for lane in range(2, lanes):
                    if a_data[lane, i] != b_data[lane, j]:
                        sign = -1 if a_data[lane, i] < b_data[lane, j] else 1
                        break
                if sign == 0 and timed == 1:
                    sign = compare_columns(a_times, i * a_time_step, b_times, j * b_time_step)
                step = FROM_A if sign < 0 else FROM_B
                if sign == 0:
                    met_equal = 1
                    step = FROM_A | FROM_B | CANCEL
                    for lane in range(a_diffs.shape[0]):
                        if a_diffs[lane, i * a_diff_step] + b_diffs[lane, j * b_diff_step] != 0:
                            step = FROM_A | FROM_B
            taken = -(step & 1)
            out_first[o] = y ^ ((x ^ y) & taken)
            out_second[o] = yy ^ ((xx ^ yy) & taken)
            steps[count] = step
            count += 1
            i += step & 1
            j += (step >> 1) & 1
            o += 1 - (step >> 2)
        lead = (i - from_a) - (j - from_b)
        remaining = min(BLOCK_STEPS - count, end - i - j)
        if i == n or j == m or remaining <= 0:
            break
        if lead > SAMPLE_STEPS // 2:
            taken = copy_run(
                a_first, a_second, i, min(n, i + remaining), b_first[j], b_second[j], out_first, out_second, o
            )
            fill_steps(steps, count, taken, FROM_A)
            count, i, o = count + taken, i + taken, o + taken
        elif lead < -SAMPLE_STEPS // 2:
            taken = copy_run(
                b_first, b_second, j, min(m, j + remaining), a_first[i], a_second[i], out_first, out_second, o
            )
            fill_steps(steps, count, taken, FROM_B)
            count, j, o = count + taken, j + taken, o + taken
        elif o - output_before < SAMPLE_STEPS // 2:
            limit = min(remaining >> 1, min(n - i, m - j))
            taken = count_cancelling(a_data, a_times, a_diffs, i, b_data, b_times, b_diffs, j, timed, limit)
            fill_steps(steps, count, taken, FROM_A | FROM_B | CANCEL)
            count, i, j = count + taken, i + taken, j + taken
    return count, i, j, o, met_equal


@jit
def apply_steps(a, i, b, j, steps, count, first, out, o):
    """Write the rows that the steps take, in the lanes from `first` on."""
    a_step = 1 if a.shape[1] > 1 else 0
    b_step = 1 if b.shape[1] > 1 else 0
    for lane in range(first, a.shape[0]):
        xs, ys, zs = address_of(a) + 8 * lane * a.shape[1], address_of(b) + 8 * lane * b.shape[1], out[lane]
        p, q, end = i * a_step, j * b_step, o
        for k in range(count):
            step = steps[k]
            x, y = peek(xs, p), peek(ys, q)
            zs[np.uint64(end)] = y ^ ((x ^ y) & -(step & 1))
            p += step & a_step
            q += (step >> 1) & b_step
            end += 1 - (step >> 2)


@jit
def apply_steps_to_diffs(a, i, b, j, steps, count, out, o):
    """Write the diffs that the steps take, added where a step takes both."""
    a_step = 1 if a.shape[1] > 1 else 0
    b_step = 1 if b.shape[1] > 1 else 0
    for lane in range(a.shape[0]):
        xs, ys, zs = address_of(a) + 8 * lane * a.shape[1], address_of(b) + 8 * lane * b.shape[1], out[lane]
        p, q, end = i * a_step, j * b_step, o
        for k in range(count):
            step = steps[k]
            zs[np.uint64(end)] = (peek(xs, p) & -(step & 1)) + (peek(ys, q) & -((step >> 1) & 1))
            p += step & a_step
            q += (step >> 1) & b_step
            end += 1 - (step >> 2)


@jit
def copy_columns(block, start, end, out, o):
    """Copy the columns [start, end); a block of one column is repeated."""
    for lane in range(block.shape[0]):
        if end > start:
            if block.shape[1] > 1:
                out[lane, o : o + end - start] = block[lane, start:end]
            else:
                out[lane, o : o + end - start] = block[lane, 0]


@jit
def repeat_column(block, out, end):
    """Repeat the first column of a block in the columns before `end`."""
    for lane in range(block.shape[0]):
        out[lane, :end] = block[lane, 0]


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield (
        merge_runs,
        (TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, NUMBER, TABLE, TABLE, TABLE, COLUMN, NUMBER),
    )
