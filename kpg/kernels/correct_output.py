"""Compute the corrections that make a key's output equal to the target rows at each of its evaluation times.

    correct_output   at each evaluation time t, in order:  target rows  −  Σ (output and corrections) at times ≤ t

The output is a run: per key (offsets) sorted by value, then time. The evaluation times of a key are sorted and
distinct. Target rows are those of kpg.kernels.evaluate_output. If a key has one evaluation time, the usual case, or a
short chain of them, the kernel merges sorted lists; otherwise it replays the history (kpg.kernels.replay_history).

The caller provides the buffers. When one is full, the kernel returns the position it has reached, and the caller calls
it again from that position. Twin: kpg.testing.kernel_twins.evaluate_output_twin.correct_output.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.compare_rows import ONE, ORDER, ZERO, equal, less_equal, sort_columns, sorts_before
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.replay_history import (
    EVAL,
    FIELDS,
    LANES,
    RANK,
    add_diff,
    begin_replay,
    clear_tally,
    largest_sizes,
    next_nonzero,
    plan_passes,
    queue_corrections,
    replay_is_cheaper,
    same_tail,
    settle_updates,
    sweep_to,
    undo_pass,
)

INSERTION_SORT_ROWS = 24  # target rows up to which the corrections of a chain are sorted by insertion
TARGET_RANK, FIRST_ROW = 0, 1  # lanes of `numbers`: the rank of a target row, and a row of each rank


@jit
def span_of_key(spans, lo, hi):
    """Return where the target rows of evaluation times lo to hi begin and end."""
    if spans.shape[1] == 0:
        return lo, hi
    begins = spans[0, lo]
    ends = spans[1, lo]
    for t in range(lo + 1, hi):
        begins = min(begins, spans[0, t])
        ends = max(ends, spans[1, t])
    return begins, ends


@jit
def is_short_chain(lo, hi, rows, target_count, max_reads, eval_times):
    """Return whether a key has one evaluation time, or a chain of them (lo to hi) with few output and target rows."""
    if replay_is_cheaper(hi - lo, rows, max_reads) or (hi - lo > 1 and target_count > INSERTION_SORT_ROWS):
        return False
    for t in range(lo + 1, hi):
        if not less_equal(eval_times, t - 1, eval_times, t):
            return False
    return True


@jit
def correct_by_merge(
    max_reads, key, n, eval_offsets, eval_times, spans, target, target_diffs, offsets, data, times, diffs,
    out_keys, out, out_times, out_diffs,
):  # fmt: skip
    """Write the corrections of keys from `key` on while they are short chains and fit into the buffer.

    Along a chain, the output at a time is the target rows of the time before plus the output rows that are new since
    then. So the kernel merges three sorted lists: these two and the new target rows. Return the first key that is not
    done, and the number of corrections.
    """
    lanes = out.shape[0]
    depth = out_times.shape[0]
    one_each = spans.shape[1] == 0
    while key < eval_offsets.shape[0] - 1:
        lo = eval_offsets[key]
        hi = eval_offsets[key + 1]
        end = offsets[key + 1]
        rows = end - offsets[key]
        target_count = hi - lo
        if not one_each and hi > lo:
            target_count = spans[1, hi - 1] - spans[0, lo]
        if n + 2 * target_count + rows > out_keys.shape[0] or not is_short_chain(
            lo, hi, rows, target_count, max_reads, eval_times
        ):
            break
        start = n
        v = ZERO
        v_end = ZERO
        for t in range(lo, hi):
            w = t if one_each else spans[0, t]
            w_end = t + 1 if one_each else spans[1, t]
            next_v = w
            row = offsets[key]
            while w < w_end or v < v_end or row < end:
                head = w
                if w == w_end or (v < v_end and sorts_before(target, v, target, w, ZERO, lanes)):
                    head = v
                first = row
                correction = 0
                has_target = w < w_end or v < v_end
                if row < end and not (has_target and sorts_before(target, head, data, row, ZERO, lanes)):
                    has_target = has_target and not sorts_before(data, row, target, head, ZERO, lanes)
                    while row < end and equal(data, first, data, row, lanes):
                        if less_equal(times, row, eval_times, t) and (
                            t == lo or not less_equal(times, row, eval_times, t - 1)
                        ):
                            correction -= diffs[0, row]
                        row += 1
                if has_target:
                    if v < v_end and equal(target, head, target, v, lanes):
                        correction -= target_diffs[0, v]
                        v += 1
                    if w < w_end and equal(target, head, target, w, lanes):
                        correction += target_diffs[0, w]
                        w += 1
                if correction != 0:
                    out_keys[n] = key
                    for lane in range(lanes):
                        out[lane, n] = target[lane, head] if has_target else data[lane, first]
                    for d in range(depth):
                        out_times[d, n] = eval_times[d, t]
                    out_diffs[0, n] = correction
                    n += 1
            v = next_v
            v_end = w_end
        for i in range(start + 1, n):  # they were written by time: sort them by value, stably
            position = i
            while position > start and sorts_before(out, position, out, position - 1, ZERO, lanes):
                for lane in range(lanes):
                    out[lane, position], out[lane, position - 1] = out[lane, position - 1], out[lane, position]
                for d in range(depth):
                    out_times[d, position], out_times[d, position - 1] = (
                        out_times[d, position - 1],
                        out_times[d, position],
                    )
                out_diffs[0, position], out_diffs[0, position - 1] = out_diffs[0, position - 1], out_diffs[0, position]
                position -= 1
        key += 1
    return key, n


@jit
def rank_target(target, w_lo, w_hi, data, lo, hi, work, numbers):
    """Number the values of target and output rows together; return the number of ranks.

    FIRST_ROW of a rank is an output row, or ~(target row).
    """
    lanes = data.shape[0]
    target_count = w_hi - w_lo
    for w in range(target_count):
        work[ORDER, w] = w_lo + w
    sort_columns(target, ZERO, lanes, work, target_count)
    n = 0
    w = 0
    row = lo
    while w < target_count or row < hi:
        if row == hi or (w < target_count and sorts_before(target, work[ORDER, w], data, row, ZERO, lanes)):
            first = work[ORDER, w]
            numbers[FIRST_ROW, n] = ~first
            while w < target_count and equal(target, first, target, work[ORDER, w], lanes):
                numbers[TARGET_RANK, work[ORDER, w] - w_lo] = n
                w += 1
        else:
            first = row
            numbers[FIRST_ROW, n] = first
            while row < hi and equal(data, first, data, row, lanes):
                work[RANK, row - lo] = n
                row += 1
            while w < target_count and equal(data, first, target, work[ORDER, w], lanes):
                numbers[TARGET_RANK, work[ORDER, w] - w_lo] = n
                w += 1
        n += 1
    return n


@jit
def write_corrections(corrections, count, numbers, work, target, data, eval_times, out, out_times, out_diffs, n):
    """Write the corrections (diff, rank, evaluation time) of a key by value, then time."""
    for c in range(count):
        work[ORDER, c] = c
    sort_columns(corrections, ONE, corrections.shape[0], work, count)
    for c in range(count):
        column = work[ORDER, c]
        first = numbers[FIRST_ROW, corrections[1, column]]
        for lane in range(out.shape[0]):
            out[lane, n + c] = data[lane, first] if first >= 0 else target[lane, ~first]
        for d in range(out_times.shape[0]):
            out_times[d, n + c] = eval_times[d, corrections[2, column]]
        out_diffs[0, n + c] = corrections[0, column]


@jit
def correct_output(
    max_reads, key, n, eval_offsets, eval_times, spans, target, target_diffs, offsets, data, times, diffs,
    out_keys, out, out_times, out_diffs,
):  # fmt: skip
    """Write the corrections of keys from `key` on behind the first n, sorted by key, value, time.

    Return the first key that is not done, and the number of corrections.
    """
    depth = times.shape[0]
    keys = offsets.shape[0] - 1
    rows, evals = largest_sizes(offsets, eval_offsets, key, keys)
    target_count = ZERO
    for other in range(key, keys):
        if eval_offsets[other + 1] - eval_offsets[other] > 1:
            lo, hi = span_of_key(spans, eval_offsets[other], eval_offsets[other + 1])
            target_count = max(target_count, hi - lo)
    capacity = out_keys.shape[0]
    correction_space = capacity if evals > 0 else ZERO
    meets = np.empty((depth, evals), np.int64)
    work = np.empty((LANES, max(rows + correction_space, max(evals, target_count))), np.int64)
    unsettled = np.empty((depth + 2, rows + correction_space), np.int64)
    corrections = np.empty((3, correction_space), np.int64)
    numbers = np.empty((2, rows + target_count), np.int64)
    sums = np.zeros((1, rows + target_count + 1), np.int64)
    nonzero_counts = np.zeros((2, ((rows + target_count) >> 6) + 1), np.int64)
    state = np.empty(FIELDS, np.int64)
    while key < keys:
        key, n = correct_by_merge(
            max_reads, key, n, eval_offsets, eval_times, spans, target, target_diffs, offsets, data, times, diffs,
            out_keys, out, out_times, out_diffs,
        )  # fmt: skip
        if key == keys or eval_offsets[key + 1] - eval_offsets[key] <= 1:
            return key, n
        lo = eval_offsets[key]
        hi = eval_offsets[key + 1]
        row_lo = offsets[key]
        row_hi = offsets[key + 1]
        target_lo, target_hi = span_of_key(spans, lo, hi)
        ranks = rank_target(target, target_lo, target_hi, data, row_lo, row_hi, work, numbers)
        swept = plan_passes(eval_times, lo, hi, meets, work)
        begin_replay(times, diffs, row_lo, row_hi, meets, swept, unsettled, work, sums, nonzero_counts, state)
        count = ZERO
        earlier = ZERO  # corrections of earlier passes
        last = work[EVAL, 0]
        for j in range(hi - lo):
            t = work[EVAL, j]
            if not same_tail(eval_times, last, t, swept):
                undo_pass(unsettled, eval_times, last, sums, nonzero_counts, state)
                queue_corrections(
                    corrections, earlier, count, eval_times, swept, unsettled, sums, nonzero_counts, state
                )
                settle_updates(unsettled, meets, j, swept, sums, nonzero_counts, state)
                earlier = count
            last = t
            sweep_to(unsettled, eval_times, t, swept, sums, nonzero_counts, state)
            w_lo, w_hi = span_of_key(spans, t, t + 1)
            # Without the target rows the tally holds the negated corrections.
            for w in range(w_lo, w_hi):
                add_diff(sums, nonzero_counts, numbers[TARGET_RANK, w - target_lo], target_diffs, ZERO, w, -ONE)
            rank = next_nonzero(sums, nonzero_counts, ZERO, ranks)
            while rank < ranks:
                if n + count == capacity:
                    return key, n
                corrections[0, count] = -sums[0, rank]
                corrections[1, count] = rank
                corrections[2, count] = t
                add_diff(sums, nonzero_counts, rank, corrections, ZERO, count, ONE)
                count += 1
                rank = next_nonzero(sums, nonzero_counts, rank + 1, ranks)
            for w in range(w_lo, w_hi):
                add_diff(sums, nonzero_counts, numbers[TARGET_RANK, w - target_lo], target_diffs, ZERO, w, ONE)
        clear_tally(sums, nonzero_counts, ranks)
        write_corrections(corrections, count, numbers, work, target, data, eval_times, out, out_times, out_diffs, n)
        for c in range(n, n + count):
            out_keys[c] = key
        n += count
        key += 1
    return key, n


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield correct_output, (
        NUMBER, NUMBER, NUMBER, COLUMN, TABLE, TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE,
        COLUMN, TABLE, TABLE, TABLE,
    )  # fmt: skip
