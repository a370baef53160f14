"""Merge two sorted, consolidated runs into one, moving times to their representatives on the way.

    merge(A, B, F)  =  consolidate({(d, representative(F, t), r)  |  (d, t, r) in A or B})

Preconditions: A and B are sorted by (data, time) and consolidated, and have a lane of data; outputs have room for all
rows of both. The frontier is int64[elements, depth]; without elements times stay. `lone` says whose times, although
they are not constant, are known to have one representative, the frontier's first element: FROM_A, FROM_B, both or 0.

Resumable: `state` is int64[8], zeros at first.

    0, 1   the next row of A and of B            2   the end of the output
    3      where the output's last group of equal data begins, if settling: it may still have to be sorted and summed
    4      1 once diffs were written; before that all diffs are the one constant of A and B
    5      1 if times differ; else no time is compared, and the only one written is that of column 0
    6      1 if rows of one side may become equal, so that groups of equal data must be settled
    7      1 once begun

A call reads at most `fuel` rows (one more if they are equal) and returns how many; the merge is done when all are read.

How. A long run from one side is copied. Otherwise rows of one lane and one time are blended, which takes a third of the
time; others are first compared, without branches, into a block of steps: bit 0 takes a row of A, bit 1 one of B, both
if they are equal, bit 2 if these cancel. Where most of the last few steps were of one kind, the next are guessed to be,
too, which takes a third of the time while it is so. Then lane after lane is woven by the steps. What is read by address
is so because an index that may be negative, as far as the compiler knows, costs as much as a comparison. Cost: linear;
the times of one datum are sorted again where representatives are out of order, in n log n.
Twin: kpg.testing.kernels_trace.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.advance_times import advance_range, representative
from kpg.kernels.array_address import address_of, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.resort_times import mark, settle, settle_group
from kpg.kernels.sort_rows import compare

BLOCK = 1024  # steps decided before lanes are woven: they and their rows stay in the cache
NEAR = 32  # a run from one side of at least so many rows is copied
FEW = 8  # steps after which it is asked whether most were of one kind

FROM_A, FROM_B, CANCEL = 1, 2, 4


@jit
def merge(
    a_data, a_times, a_diffs, b_data, b_times, b_diffs, frontier, lone, out_data, out_times, out_diffs, state, fuel
):
    """Merge some more rows; returns how many were read."""
    n, m = a_data.shape[1], b_data.shape[1]
    if state[7] == 0:
        begin_merge(a_data, a_times, a_diffs, b_data, b_times, b_diffs, frontier, lone, out_times, state)
    i, j, o, group, written, timed, settling = state[0], state[1], state[2], state[3], state[4], state[5], state[6]
    steps = np.empty(BLOCK, np.int64)
    alike = a_diffs.shape[1] == 1 and b_diffs.shape[1] == 1 and compare(a_diffs, 0, b_diffs, 0) == 0
    plain = timed == 0 and a_data.shape[0] == 1 and a_diffs.shape[0] == 1
    begin = i + j
    while (i < n or j < m) and i + j < begin + fuel:
        left = begin + fuel - i - j
        if settling == 1:
            left = min(left, BLOCK)
        start = o
        next_i, next_j = i, j
        if i < n and (j == m or leads(a_data, a_times, i, n, b_data, b_times, j, timed)):
            next_i = min(run(a_data, a_times, i, n, b_data, b_times, j, m, timed), i + left)
        elif j < m and (i == n or leads(b_data, b_times, j, m, a_data, a_times, i, timed)):
            next_j = min(run(b_data, b_times, j, m, a_data, a_times, i, n, timed), j + left)
        if next_i > i or next_j > j:
            o += next_i - i + next_j - j
            copy(a_data, i, next_i, out_data, start)
            copy(b_data, j, next_j, out_data, start)
            if timed == 1:
                copy(a_times, i, next_i, out_times, start)
                copy(b_times, j, next_j, out_times, start)
            if written == 1:
                copy(a_diffs, i, next_i, out_diffs, start)
                copy(b_diffs, j, next_j, out_diffs, start)
        elif plain and written == 1:
            next_i, next_j, o = blend(a_data, a_diffs, i, b_data, b_diffs, j, left, out_data, out_diffs, start)
        else:
            count, next_i, next_j, o, met = decide(
                a_data, a_times, a_diffs, i, b_data, b_times, b_diffs, j, timed, left, steps, out_data, start
            )
            if met == 1 and written == 0:
                fill(a_diffs, out_diffs, start)
                written = 1
            weave(a_data, i, b_data, j, steps, count, 2, out_data, start)
            if timed == 1:
                weave(a_times, i, b_times, j, steps, count, 0, out_times, start)
            if written == 1 and alike and met == 0:
                copy(a_diffs, 0, o - start, out_diffs, start)
            elif written == 1:
                weave_sums(a_diffs, i, b_diffs, j, steps, count, out_diffs, start)
        i, j = next_i, next_j
        if settling == 1:
            if timed == 1 and frontier.shape[0] > 0:
                advance_range(out_times, start, o, frontier)
            repeated = mark(out_data, group, start, o, steps)
            if repeated == 0 and start - group <= 1:
                group = max(group, o - 1)
            else:
                if written == 0:
                    fill(a_diffs if n > 0 else b_diffs, out_diffs, o)
                    written = 1
                group, o = settle(out_data, out_times, out_diffs, timed, group, start, o, steps)
    if i == n and j == m and o - group > 1 and settling == 1:
        o = settle_group(out_times, out_diffs, timed, group, o)
        group = o
    state[0], state[1], state[2], state[3], state[4] = i, j, o, group, written
    return i + j - begin


@jit
def begin_merge(a_data, a_times, a_diffs, b_data, b_times, b_diffs, frontier, lone, out_times, state):
    """See what is constant: the representative of all times, and all diffs."""
    state[7] = 1
    a_rows, b_rows = a_data.shape[1] > 0, b_data.shape[1] > 0
    a_lone = a_times.shape[1] == 1 or lone & FROM_A != 0
    b_lone = b_times.shape[1] == 1 or lone & FROM_B != 0
    time = np.empty((a_times.shape[0], 2), np.int64)
    place_time(a_times, frontier, time, 0)
    place_time(b_times, frontier, time, 1)
    if a_rows and b_rows:
        one = a_lone and b_lone and compare(time, 0, time, 1) == 0
    else:
        one = a_lone if a_rows else b_lone
    if one:
        for lane in range(time.shape[0]):
            out_times[lane, 0] = time[lane, 0 if a_rows else 1]
    else:
        state[5] = 1
    if frontier.shape[0] > 0 and (not one or a_times.shape[1] > 1 or b_times.shape[1] > 1):
        state[6] = 1
    if (a_rows and a_diffs.shape[1] > 1) or (b_rows and b_diffs.shape[1] > 1):
        state[4] = 1
    elif a_rows and b_rows and compare(a_diffs, 0, b_diffs, 0) != 0:
        state[4] = 1


@jit
def place_time(times, frontier, out, o):
    """Write the representative of the only time of a block, or of all."""
    for lane in range(times.shape[0]):
        out[lane, o] = times[lane, 0] if frontier.shape[0] == 0 or times.shape[1] == 1 else frontier[0, lane]
    if frontier.shape[0] > 0:
        representative(out, o, frontier, out, o)


@inlined
def before(a_data, a_times, i, b_data, b_times, j, timed):
    """Whether row i of A sorts before row j of B."""
    sign = compare(a_data, i, b_data, j)
    if sign == 0 and timed == 1:
        a_step = 1 if a_times.shape[1] > 1 else 0
        b_step = 1 if b_times.shape[1] > 1 else 0
        sign = compare(a_times, i * a_step, b_times, j * b_step)
    return sign < 0


@jit
def leads(a_data, a_times, i, n, b_data, b_times, j, timed):
    """Whether the next NEAR rows of A all sort before row j of B."""
    return i + NEAR <= n and before(a_data, a_times, i + NEAR - 1, b_data, b_times, j, timed)


@jit
def run(a_data, a_times, i, n, b_data, b_times, j, m, timed):
    """The first row of A from i on that does not sort before row j of B, which sorts after row i: a gallop."""
    if j == m:
        return n
    step = NEAR
    while i + step < n and before(a_data, a_times, i + step, b_data, b_times, j, timed):
        i += step
        step += step
    high = min(n, i + step)
    while i + 1 < high:
        middle = (i + high) >> 1
        if before(a_data, a_times, middle, b_data, b_times, j, timed):
            i = middle
        else:
            high = middle
    return high


@jit
def blend(a_data, a_diffs, i, b_data, b_diffs, j, most, out_data, out_diffs, o):
    """Merge up to BLOCK rows of one lane, one time and diffs of one lane, in a single loop without a step to be undone.

    Returns the next row of each side and the end of the output.
    """
    n, m = a_data.shape[1], b_data.shape[1]
    a_keys, a_sums, a_step = address_of(a_data), address_of(a_diffs), 1 if a_diffs.shape[1] > 1 else 0
    b_keys, b_sums, b_step = address_of(b_data), address_of(b_diffs), 1 if b_diffs.shape[1] > 1 else 0
    keys, sums = out_data[0], out_diffs[0]
    end = i + j + min(most, BLOCK)
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
def take_run(first, second, i, end, x, xx, out_first, out_second, o):
    """Write the first two lanes of the rows [i, end) until one is not before (x, xx) in these; how many that is."""
    start = i
    while i < end and (first[i] < x or (first[i] == x and second[i] < xx)):
        out_first[o] = first[i]
        out_second[o] = second[i]
        i += 1
        o += 1
    return i - start


@inlined
def cancelling(a_data, a_times, a_diffs, i, b_data, b_times, b_diffs, j, timed, most):
    """How many rows from row i of A and j of B on, at most `most`, are equal one after the other and cancel."""
    a_time_step = 1 if a_times.shape[1] > 1 else 0
    b_time_step = 1 if b_times.shape[1] > 1 else 0
    a_diff_step = 1 if a_diffs.shape[1] > 1 else 0
    b_diff_step = 1 if b_diffs.shape[1] > 1 else 0
    for k in range(most):
        x, y = i + k, j + k
        if compare(a_data, x, b_data, y) != 0:
            return k
        if timed == 1 and compare(a_times, x * a_time_step, b_times, y * b_time_step) != 0:
            return k
        for lane in range(a_diffs.shape[0]):
            if a_diffs[lane, x * a_diff_step] + b_diffs[lane, y * b_diff_step] != 0:
                return k
    return most


@inlined
def fill_steps(steps, count, taken, step):
    """Write the same step so many times."""
    for k in range(count, count + taken):
        steps[k] = step


@jit
def decide(a_data, a_times, a_diffs, i, b_data, b_times, b_diffs, j, timed, most, steps, out_data, o):
    """Write the next steps and what they take of the first two lanes, reading at most about `most` rows.

    Returns how many steps, the next row of each side, the end of the output, and 1 if equal rows met.
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
    end = i + j + most
    count = 0
    met = 0
    while i < n and j < m and count < BLOCK and i + j < end:
        from_a, from_b, begin = i, j, o
        few = min(min(n - i, m - j), min((end - i - j + 1) >> 1, BLOCK - count))
        for _ in range(min(FEW, few)):
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
                    sign = compare(a_times, i * a_time_step, b_times, j * b_time_step)
                step = FROM_A if sign < 0 else FROM_B
                if sign == 0:
                    met = 1
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
        room = min(BLOCK - count, end - i - j)
        if i == n or j == m or room <= 0:
            break
        if lead > FEW // 2:
            taken = take_run(a_first, a_second, i, min(n, i + room), b_first[j], b_second[j], out_first, out_second, o)
            fill_steps(steps, count, taken, FROM_A)
            count, i, o = count + taken, i + taken, o + taken
        elif lead < -FEW // 2:
            taken = take_run(b_first, b_second, j, min(m, j + room), a_first[i], a_second[i], out_first, out_second, o)
            fill_steps(steps, count, taken, FROM_B)
            count, j, o = count + taken, j + taken, o + taken
        elif o - begin < FEW // 2:
            most = min(room >> 1, min(n - i, m - j))
            taken = cancelling(a_data, a_times, a_diffs, i, b_data, b_times, b_diffs, j, timed, most)
            fill_steps(steps, count, taken, FROM_A | FROM_B | CANCEL)
            count, i, j = count + taken, i + taken, j + taken
    return count, i, j, o, met


@jit
def weave(a, i, b, j, steps, count, first, out, o):
    """Write what the steps take of the lanes from `first` on."""
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
def weave_sums(a, i, b, j, steps, count, out, o):
    """Write the diffs that the steps take, added where they take both."""
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
def copy(block, start, end, out, o):
    """Copy the columns [start, end); a block of one column is repeated."""
    for lane in range(block.shape[0]):
        if end > start:
            if block.shape[1] > 1:
                out[lane, o : o + end - start] = block[lane, start:end]
            else:
                out[lane, o : o + end - start] = block[lane, 0]


@jit
def fill(block, out, end):
    """Repeat the first column of a block in the columns before `end`."""
    for lane in range(block.shape[0]):
        out[lane, :end] = block[lane, 0]


def examples() -> Iterator[Example]:
    """How Python calls this."""
    yield (
        merge,
        (TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, NUMBER, TABLE, TABLE, TABLE, COLUMN, NUMBER),
    )
