"""Pair the rows of two sorted blocks that have equal keys.

The key is the first `key_lanes` lanes; both blocks are sorted by it. There are two steps, so that outputs are allocated
exactly:

    find_pairs    finds the next pairs as *boxes* (left rows [l0, l1) × right rows [r0, r1)), at most `limit` pairs
    write_pairs   writes the pairs of some boxes lane by lane; the longer side of each box is the inner loop

The side with the smaller key gallops to the larger key. So the work is linear in the smaller side (times a logarithm of
the gap) plus the boxes, or less. Where the gaps of both sides are short, both sides walk row by row. `state` is
int64[7]: the next left and right row, then the box of the key that is being paired (l0, l1, r0, r1) and the number of
its pairs that are done, so a call may stop anywhere within a key. Twin: kpg.testing.kernel_twins.match_rows_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.compare_rows import ONE, ZERO, sorts_before
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit

NEAR_ROWS = 8  # rows to walk before galloping, so that sides of similar size are simply merged


@jit
def seek(a, i, end, b, j, lanes):
    """Return the first row of `a` in [i, end) with a key that is not before the key of row j of `b`."""
    near = min(end, i + NEAR_ROWS)
    while i < near:
        if not sorts_before(a, i, b, j, ZERO, lanes):
            return i
        i += 1
    step = 1
    while i + step <= end and sorts_before(a, i + step - 1, b, j, ZERO, lanes):
        i += step
        step += step
    end = min(end, i + step)
    while i < end:
        middle = (i + end) >> 1
        if sorts_before(a, middle, b, j, ZERO, lanes):
            i = middle + 1
        else:
            end = middle
    return i


@jit
def group_end(a, i, end, lanes):
    """Return the end of the group of row i: the first later row before `end` with another key, or `end`."""
    first = i
    i += 1
    near = min(end, i + NEAR_ROWS)
    while i < near:
        if sorts_before(a, first, a, i, ZERO, lanes):
            return i
        i += 1
    step = 1
    while i + step <= end and not sorts_before(a, first, a, i + step - 1, ZERO, lanes):
        i += step
        step += step
    end = min(end, i + step)
    while i < end:
        middle = (i + end) >> 1
        if sorts_before(a, first, a, middle, ZERO, lanes):
            end = middle
        else:
            i = middle + 1
    return i


@jit
def append_box(boxes, n, l0, l1, r0, r1):
    """Append a box unless it is empty; return the new number of boxes."""
    if l0 < l1 and r0 < r1:
        boxes[n, 0] = l0
        boxes[n, 1] = l1
        boxes[n, 2] = r0
        boxes[n, 3] = r1
        return n + 1
    return n


@jit
def take_pairs_of_key(state, boxes, n, limit):
    """Take at most `limit` more pairs of the key in `state`, as up to three boxes.

    These are the rest of a left row, whole left rows, and the beginning of another.
    """
    l0, l1, r0, r1, done = state[2], state[3], state[4], state[5], state[6]
    inner = r1 - r0
    end = min((l1 - l0) * inner, done + limit)
    row = done // inner
    last = end // inner
    if row == last:  # within one left row
        n = append_box(boxes, n, l0 + row, l0 + row + 1, r0 + done - row * inner, r0 + end - row * inner)
    else:
        if done > row * inner:
            n = append_box(boxes, n, l0 + row, l0 + row + 1, r0 + done - row * inner, r1)
            row += 1
        n = append_box(boxes, n, l0 + row, l0 + last, r0, r1)
        n = append_box(boxes, n, l0 + last, l0 + last + 1, r0, r0 + end - last * inner)
    state[6] = end
    return n, end - done


@inlined
def walk_to_equal_keys(a, i, a_end, b, j, b_end, lanes):
    """Advance to the next equal keys while all lanes of the key but the last agree and both sides advance.

    The kernel computes which side advances without a branch, which would be mispredicted every other time. Return the
    next rows.
    """
    last = lanes - 1
    moves = True
    while moves and i < a_end and j < b_end:
        first_a, first_b = i, j
        for _ in range(min(NEAR_ROWS, min(a_end - i, b_end - j))):
            x, y = a[last, i], b[last, j]
            agree = x != y
            for lane in range(last):
                agree = agree and a[lane, i] == b[lane, j]
            if not agree:
                return i, j
            i += x < y
            j += y < x
        moves = i > first_a and j > first_b
    return i, j


@jit
def find_pairs(left, right, key_lanes, limit, state, boxes):
    """Fill boxes (int64[capacity, 4]) with the next pairs.

    Return the number of boxes, the number of pairs, and whether these were the last.
    """
    left_end = left.shape[1]
    right_end = right.shape[1]
    capacity = boxes.shape[0] - 3
    n = ZERO
    total = ZERO
    if state[6] < (state[3] - state[2]) * (state[5] - state[4]):
        n, total = take_pairs_of_key(state, boxes, n, limit)
    i = state[0]
    j = state[1]
    near = key_lanes > 0
    while i < left_end and j < right_end and total < limit and n <= capacity:
        if near:
            i, j = walk_to_equal_keys(left, i, left_end, right, j, right_end, key_lanes)
            if i == left_end or j == right_end:
                break
        if sorts_before(left, i, right, j, ZERO, key_lanes):
            start = i
            i = seek(left, i + 1, left_end, right, j, key_lanes)
            near = i - start <= NEAR_ROWS
        elif sorts_before(right, j, left, i, ZERO, key_lanes):
            start = j
            j = seek(right, j + 1, right_end, left, i, key_lanes)
            near = j - start <= NEAR_ROWS
        else:
            l1 = group_end(left, i, left_end, key_lanes)
            r1 = group_end(right, j, right_end, key_lanes)
            pairs = (l1 - i) * (r1 - j)
            if total + pairs <= limit:
                n = append_box(boxes, n, i, l1, j, r1)
                total += pairs
            else:
                state[2], state[3], state[4], state[5], state[6] = i, l1, j, r1, 0
                n, taken = take_pairs_of_key(state, boxes, n, limit - total)
                total += taken
            i = l1
            j = r1
    state[0] = i
    state[1] = j
    unfinished = state[6] < (state[3] - state[2]) * (state[5] - state[4])
    return n, total, not unfinished and (i == left_end or j == right_end)


@jit
def write_lane(block, lane, side, boxes, n, out, to):
    """Write, for each pair of the boxes, lane `lane` of the row on `side` into row `to` of out."""
    written = 0
    run = 0  # rows read but not yet written: consecutive boxes over consecutive rows are copied as one
    start = 0
    for b in range(n):
        rows = boxes[b, 1] - boxes[b, 0]
        across = boxes[b, 3] - boxes[b, 2]
        first = boxes[b, 2 * side]
        inner = max(rows, across)
        outer = min(rows, across)
        in_inner = (side == 1) == (across >= rows)
        if in_inner and outer == 1 and start + run == first:
            run += inner
            continue
        for k in range(run):
            out[to, written + k] = block[lane, start + k]
        written += run
        start = first
        run = inner if in_inner else 0
        if in_inner:
            for _ in range(outer - 1):
                for k in range(inner):
                    out[to, written + k] = block[lane, first + k]
                written += inner
        else:
            for o in range(outer):
                value = block[lane, first + o]
                for k in range(inner):
                    out[to, written + k] = value
                written += inner
    for k in range(run):
        out[to, written + k] = block[lane, start + k]


@jit
def times_at_or_before(times, bound, side, boxes, n):
    """Return whether all times of a side's paired rows are at or before `bound` (int64[depth, 1])."""
    for d in range(times.shape[0]):
        for b in range(n):
            for row in range(boxes[b, 2 * side], boxes[b, 2 * side + 1]):
                if times[d, row] > bound[d, 0]:
                    return False
    return True


@jit
def write_pairs(
    left, left_times, left_diffs, right, right_times, right_diffs, projection, boxes, n, data, times, diffs
):
    """Write the pairs of some boxes: data by projection, times joined, diffs multiplied; constants to one column."""
    for p in range(projection.shape[0]):
        if projection[p, 0] == 0:
            write_lane(left, projection[p, 1], ZERO, boxes, n, data, p)
        else:
            write_lane(right, projection[p, 1], ONE, boxes, n, data, p)
    left_step = 1 if left_times.shape[1] > 1 else 0
    right_step = 1 if right_times.shape[1] > 1 else 0
    total = times.shape[1]
    scratch = np.empty((1, total if left_step == 1 and right_step == 1 else 0), np.int64)
    for d in range(times.shape[0]):
        if left_step == 0 or right_step == 0 or d >= left_times.shape[0] or d >= right_times.shape[0]:
            constant_time = 0
            if left_step == 0 and d < left_times.shape[0]:
                constant_time = left_times[d, 0]
            if right_step == 0 and d < right_times.shape[0]:
                constant_time = max(constant_time, right_times[d, 0])
            if left_step == 1 and d < left_times.shape[0]:
                write_lane(left_times, d, ZERO, boxes, n, times, d)
                for k in range(total):
                    times[d, k] = max(times[d, k], constant_time)
            elif right_step == 1 and d < right_times.shape[0]:
                write_lane(right_times, d, ONE, boxes, n, times, d)
                for k in range(total):
                    times[d, k] = max(times[d, k], constant_time)
            else:
                for k in range(total):
                    times[d, k] = constant_time
        else:
            write_lane(left_times, d, ZERO, boxes, n, times, d)
            write_lane(right_times, d, ONE, boxes, n, scratch, ZERO)
            for k in range(total):
                times[d, k] = max(times[d, k], scratch[0, k])
    left_step = 1 if left_diffs.shape[1] > 1 else 0
    right_step = 1 if right_diffs.shape[1] > 1 else 0
    total = diffs.shape[1]
    if left_step == 1 and right_step == 1 and scratch.shape[1] < total:
        scratch = np.empty((1, total), np.int64)
    for w in range(diffs.shape[0]):
        a = min(w, left_diffs.shape[0] - 1)
        b = min(w, right_diffs.shape[0] - 1)
        if left_step == 0 and right_step == 0:
            diffs[w, 0] = left_diffs[a, 0] * right_diffs[b, 0]
        elif left_step == 0:
            write_lane(right_diffs, b, ONE, boxes, n, diffs, w)
            for k in range(total):
                diffs[w, k] *= left_diffs[a, 0]
        elif right_step == 0:
            write_lane(left_diffs, a, ZERO, boxes, n, diffs, w)
            for k in range(total):
                diffs[w, k] *= right_diffs[b, 0]
        else:
            write_lane(left_diffs, a, ZERO, boxes, n, diffs, w)
            write_lane(right_diffs, b, ONE, boxes, n, scratch, ZERO)
            for k in range(total):
                diffs[w, k] *= scratch[0, k]


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield find_pairs, (TABLE, TABLE, NUMBER, NUMBER, COLUMN, TABLE)
    yield times_at_or_before, (TABLE, TABLE, NUMBER, TABLE, NUMBER)
    yield write_pairs, (TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE, NUMBER, TABLE, TABLE, TABLE)
