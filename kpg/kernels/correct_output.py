"""The corrections that make a key's output what is wanted at each of its evaluation times.

    correct   at each evaluation time t, in order:  wanted rows  −  Σ output ≤ t, corrections made before included

The output is a run: per key (offsets) sorted by value, then time. Evaluation times are per key sorted and distinct.
Wanted rows are as kpg.kernels.evaluate_output gives them. A key with one evaluation time, the usual one, or a short chain of
them is a merge of sorted lists; others are replayed (kpg.kernels.replay_history).

Results go into buffers of the caller; when one is full, the kernel says how far it got, and is called again from there.
Twin: kpg.testing.kernels_operators.correct.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.compare_rows import ONE, ORDER, ZERO, at_most, equal, sort_columns, sorts_before
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.replay_history import (
    EVAL,
    FIELDS,
    LANES,
    RANK,
    add,
    begin,
    clear,
    line_up,
    next_present,
    plan,
    reach,
    same_tail,
    settle,
    sizes,
    take_back,
    too_many,
)

SHORT = 24  # wanted rows of a key up to which corrections are sorted by insertion
WANT_RANK, FIRST_ROW = 0, 1  # lanes of `numbers`: of a wanted row its rank, of a rank a row


@jit
def span_of_key(spans, lo, hi):
    """Where the wanted rows of evaluation times lo to hi begin and end."""
    if spans.shape[1] == 0:
        return lo, hi
    begins = spans[0, lo]
    ends = spans[1, lo]
    for t in range(lo + 1, hi):
        begins = min(begins, spans[0, t])
        ends = max(ends, spans[1, t])
    return begins, ends


@jit
def is_plain(lo, hi, rows, wants, few, eval_times):
    """Whether the evaluation times lo to hi of a key are one, or a chain with few rows and few wanted."""
    if too_many(hi - lo, rows, few) or (hi - lo > 1 and wants > SHORT):
        return False
    for t in range(lo + 1, hi):
        if not at_most(eval_times, t - 1, eval_times, t):
            return False
    return True


@jit
def plain_corrections(few, key, n, eval_offsets, eval_times, spans, want, want_diffs, offsets, data, times, diffs,
                      out_keys, out, out_times, out_diffs):  # fmt: skip
    """Write the corrections of keys from `key` on while their evaluation times are plain and there is room.

    Along a chain output is what was wanted at the time before, and what of it comes new: three sorted lists are merged.
    Returns the first key not done, and how many corrections there are.
    """
    lanes = out.shape[0]
    depth = out_times.shape[0]
    one_each = spans.shape[1] == 0
    while key < eval_offsets.shape[0] - 1:
        lo = eval_offsets[key]
        hi = eval_offsets[key + 1]
        end = offsets[key + 1]
        rows = end - offsets[key]
        wants = hi - lo
        if not one_each and hi > lo:
            wants = spans[1, hi - 1] - spans[0, lo]
        if n + 2 * wants + rows > out_keys.shape[0] or not is_plain(lo, hi, rows, wants, few, eval_times):
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
                if w == w_end or (v < v_end and sorts_before(want, v, want, w, ZERO, lanes)):
                    head = v
                first = row
                correction = 0
                wanted = w < w_end or v < v_end
                if row < end and not (wanted and sorts_before(want, head, data, row, ZERO, lanes)):
                    wanted = wanted and not sorts_before(data, row, want, head, ZERO, lanes)
                    while row < end and equal(data, first, data, row, lanes):
                        if at_most(times, row, eval_times, t) and (
                            t == lo or not at_most(times, row, eval_times, t - 1)
                        ):
                            correction -= diffs[0, row]
                        row += 1
                if wanted:
                    if v < v_end and equal(want, head, want, v, lanes):
                        correction -= want_diffs[0, v]
                        v += 1
                    if w < w_end and equal(want, head, want, w, lanes):
                        correction += want_diffs[0, w]
                        w += 1
                if correction != 0:
                    out_keys[n] = key
                    for lane in range(lanes):
                        out[lane, n] = want[lane, head] if wanted else data[lane, first]
                    for d in range(depth):
                        out_times[d, n] = eval_times[d, t]
                    out_diffs[0, n] = correction
                    n += 1
            v = next_v
            v_end = w_end
        for i in range(start + 1, n):  # made in order of time: by value now, those of a value staying in order
            at = i
            while at > start and sorts_before(out, at, out, at - 1, ZERO, lanes):
                for lane in range(lanes):
                    out[lane, at], out[lane, at - 1] = out[lane, at - 1], out[lane, at]
                for d in range(depth):
                    out_times[d, at], out_times[d, at - 1] = out_times[d, at - 1], out_times[d, at]
                out_diffs[0, at], out_diffs[0, at - 1] = out_diffs[0, at - 1], out_diffs[0, at]
                at -= 1
        key += 1
    return key, n


@jit
def rank_wanted(want, w_lo, w_hi, data, lo, hi, work, numbers):
    """Number the values of wanted and output rows together; how many. A rank's row: an output row, or ~(wanted row)."""
    lanes = data.shape[0]
    wants = w_hi - w_lo
    for w in range(wants):
        work[ORDER, w] = w_lo + w
    sort_columns(want, ZERO, lanes, work, wants)
    n = 0
    w = 0
    row = lo
    while w < wants or row < hi:
        if row == hi or (w < wants and sorts_before(want, work[ORDER, w], data, row, ZERO, lanes)):
            first = work[ORDER, w]
            numbers[FIRST_ROW, n] = ~first
            while w < wants and equal(want, first, want, work[ORDER, w], lanes):
                numbers[WANT_RANK, work[ORDER, w] - w_lo] = n
                w += 1
        else:
            first = row
            numbers[FIRST_ROW, n] = first
            while row < hi and equal(data, first, data, row, lanes):
                work[RANK, row - lo] = n
                row += 1
            while w < wants and equal(data, first, want, work[ORDER, w], lanes):
                numbers[WANT_RANK, work[ORDER, w] - w_lo] = n
                w += 1
        n += 1
    return n


@jit
def put_made(made, count, numbers, work, want, data, eval_times, out, out_times, out_diffs, n):
    """Write the corrections (diff, rank, evaluation time) of a key by value, then time."""
    for c in range(count):
        work[ORDER, c] = c
    sort_columns(made, ONE, made.shape[0], work, count)
    for c in range(count):
        column = work[ORDER, c]
        first = numbers[FIRST_ROW, made[1, column]]
        for lane in range(out.shape[0]):
            out[lane, n + c] = data[lane, first] if first >= 0 else want[lane, ~first]
        for d in range(out_times.shape[0]):
            out_times[d, n + c] = eval_times[d, made[2, column]]
        out_diffs[0, n + c] = made[0, column]


@jit
def correct(few, key, n, eval_offsets, eval_times, spans, want, want_diffs, offsets, data, times, diffs,
            out_keys, out, out_times, out_diffs):  # fmt: skip
    """Fill the corrections of keys from `key` on behind the first n, sorted by key, value, time.

    Returns the first key not done, and how many corrections there are.
    """
    depth = times.shape[0]
    keys = offsets.shape[0] - 1
    rows, evals = sizes(offsets, eval_offsets, key, keys)
    wants = ZERO
    for other in range(key, keys):
        if eval_offsets[other + 1] - eval_offsets[other] > 1:
            lo, hi = span_of_key(spans, eval_offsets[other], eval_offsets[other + 1])
            wants = max(wants, hi - lo)
    room = out_keys.shape[0]
    several = room if evals > 0 else ZERO
    meets = np.empty((depth, evals), np.int64)
    work = np.empty((LANES, max(rows + several, max(evals, wants))), np.int64)
    late = np.empty((depth + 2, rows + several), np.int64)
    made = np.empty((3, several), np.int64)
    numbers = np.empty((2, rows + wants), np.int64)
    sums = np.zeros((1, rows + wants + 1), np.int64)
    marks = np.zeros((2, ((rows + wants) >> 6) + 1), np.int64)
    state = np.empty(FIELDS, np.int64)
    while key < keys:
        key, n = plain_corrections(
            few, key, n, eval_offsets, eval_times, spans, want, want_diffs, offsets, data, times, diffs,
            out_keys, out, out_times, out_diffs,
        )  # fmt: skip
        if key == keys or eval_offsets[key + 1] - eval_offsets[key] <= 1:
            return key, n
        lo = eval_offsets[key]
        hi = eval_offsets[key + 1]
        row_lo = offsets[key]
        row_hi = offsets[key + 1]
        want_lo, want_hi = span_of_key(spans, lo, hi)
        ranks = rank_wanted(want, want_lo, want_hi, data, row_lo, row_hi, work, numbers)
        swept = plan(eval_times, lo, hi, meets, work)
        begin(times, diffs, row_lo, row_hi, meets, swept, late, work, sums, marks, state)
        count = ZERO
        passed = ZERO  # corrections of passes before this one
        last = work[EVAL, 0]
        for j in range(hi - lo):
            t = work[EVAL, j]
            if not same_tail(eval_times, last, t, swept):
                take_back(late, eval_times, last, sums, marks, state)
                line_up(made, passed, count, eval_times, swept, late, sums, marks, state)
                settle(late, meets, j, swept, sums, marks, state)
                passed = count
            last = t
            reach(late, eval_times, t, swept, sums, marks, state)
            w_lo, w_hi = span_of_key(spans, t, t + 1)
            # With what is wanted taken away the tally holds the corrections, negated.
            for w in range(w_lo, w_hi):
                add(sums, marks, numbers[WANT_RANK, w - want_lo], want_diffs, ZERO, w, -ONE)
            rank = next_present(sums, marks, ZERO, ranks)
            while rank < ranks:
                if n + count == room:
                    return key, n
                made[0, count] = -sums[0, rank]
                made[1, count] = rank
                made[2, count] = t
                add(sums, marks, rank, made, ZERO, count, ONE)
                count += 1
                rank = next_present(sums, marks, rank + 1, ranks)
            for w in range(w_lo, w_hi):
                add(sums, marks, numbers[WANT_RANK, w - want_lo], want_diffs, ZERO, w, ONE)
        clear(sums, marks, ranks)
        put_made(made, count, numbers, work, want, data, eval_times, out, out_times, out_diffs, n)
        for c in range(n, n + count):
            out_keys[c] = key
        n += count
        key += 1
    return key, n


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield correct, (
        NUMBER, NUMBER, NUMBER, COLUMN, TABLE, TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE,
        COLUMN, TABLE, TABLE, TABLE,
    )  # fmt: skip
