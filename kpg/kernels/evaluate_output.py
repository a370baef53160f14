"""Compute the rows that a key's output should hold at each of its evaluation times.

    evaluate_output   the target rows at each evaluation time t  =  f(Σ input at times ≤ t),  where `kind` names f

The input is a run: per key (offsets) sorted by value, then time. The evaluation times of a key are sorted and distinct.
The target rows of an evaluation time are sorted by value, values distinct; spans (int64[2, n]) holds where they begin
and end, or has no columns if each time has one row. The target rows of a key are contiguous; a diff of zero stands for
no row. If a key has one evaluation time, the usual case, or few rows, the kernel reads all rows for each time;
otherwise it replays the history (kpg.kernels.replay_history).

The caller provides the buffers. When one is full, the kernel returns the position it has reached, and the caller calls
it again from that position. Twin: kpg.testing.kernel_twins.evaluate_output_twin.evaluate_output.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.compare_rows import ONE, ZERO, equal, less_equal
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.replay_history import (
    EVAL,
    FIELDS,
    LANES,
    RANK,
    begin_replay,
    clear_tally,
    largest_sizes,
    next_nonzero,
    plan_passes,
    replay_is_cheaper,
    same_tail,
    settle_updates,
    sweep_to,
    undo_pass,
)

# The functions f. Their totals are the sums of diffs over all rows of the key.
PRESENCE = 0  # one row without lanes if the total of lane 0 is at least `limit`
SUMS = 1  # one row of the totals, unless all are zero
FIRST = 2  # the first `limit` values of positive multiplicity, each once
COPIES = 3  # the first `limit` copies of values of positive multiplicity
ALL = 4  # every value of non-zero multiplicity


@jit
def key_of_evaluation(eval_offsets, t):
    """Return the key of evaluation time t."""
    low = 0
    high = eval_offsets.shape[0] - 1
    while low < high:
        middle = (low + high) >> 1
        if eval_offsets[middle + 1] <= t:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def rank_rows(data, lo, hi, work):
    """Number the distinct values of sorted rows; return their number."""
    n = 0
    for row in range(lo, hi):
        if row > lo and not equal(data, row - 1, data, row, data.shape[0]):
            n += 1
        work[RANK, row - lo] = n
    return n + 1


@jit
def write_total(kind, limit, sums, out, out_diffs, n):
    """Write the target row for a total as row n."""
    diff = 0
    if kind == PRESENCE:
        diff = 1 if sums[0, 0] >= limit else 0
    else:
        for w in range(sums.shape[0]):
            out[w, n] = sums[w, 0]
            diff = 1 if sums[w, 0] != 0 else diff
    out_diffs[0, n] = diff


@jit
def total_by_reading(
    kind, limit, max_reads, key, start, eval_offsets, eval_times, offsets, times, diffs, out, out_diffs
):
    """Write totals of keys from `key` on, reading all rows for each time, while that is cheap; return the next key."""
    while key < eval_offsets.shape[0] - 1:
        if replay_is_cheaper(eval_offsets[key + 1] - eval_offsets[key], offsets[key + 1] - offsets[key], max_reads):
            break
        for t in range(eval_offsets[key], eval_offsets[key + 1]):
            diff = 0
            for w in range(diffs.shape[0]):
                total = 0
                for row in range(offsets[key], offsets[key + 1]):
                    if less_equal(times, row, eval_times, t):
                        total += diffs[w, row]
                if kind == SUMS:
                    out[w, t - start] = total
                    diff = 1 if total != 0 else diff
                elif w == 0:
                    diff = 1 if total >= limit else 0
            out_diffs[0, t - start] = diff
        key += 1
    return key


@jit
def rows_by_reading(
    kind, limit, max_reads, key, start, eval_offsets, eval_times, offsets, data, times, diffs, spans, out, out_diffs, n,
):  # fmt: skip
    """Write the target rows of keys from `key` on, reading all rows for each time, while that is cheap and they fit.

    Return the first key that is not done, and the number of rows.
    """
    lanes = data.shape[0]
    while key < eval_offsets.shape[0] - 1:
        evals = eval_offsets[key + 1] - eval_offsets[key]
        end = offsets[key + 1]
        if n + evals * min(limit, end - offsets[key]) > out.shape[1] or replay_is_cheaper(
            evals, end - offsets[key], max_reads
        ):
            break
        if eval_offsets[key] < start:  # the previous call has begun this key
            break
        for t in range(eval_offsets[key], eval_offsets[key + 1]):
            spans[0, t - start] = n
            row = offsets[key]
            remaining = limit
            while row < end and remaining > 0:
                first = row
                count = 0
                while row < end and equal(data, first, data, row, lanes):
                    if less_equal(times, row, eval_times, t):
                        count += diffs[0, row]
                    row += 1
                if count > 0 or (kind == ALL and count != 0):
                    taken = 1 if kind == FIRST else min(count, remaining)
                    remaining -= taken
                    for lane in range(lanes):
                        out[lane, n] = data[lane, first]
                    out_diffs[0, n] = taken
                    n += 1
            spans[1, t - start] = n
        key += 1
    return key, n


@jit
def write_rows_of_tally(kind, limit, data, lo, hi, work, sums, nonzero_counts, ranks, out, out_diffs, n):
    """Write the target rows for a tally, finding the row of a rank by bisection; return the new number of rows."""
    rank = next_nonzero(sums, nonzero_counts, ZERO, ranks)
    while rank < ranks and limit > 0:
        if sums[0, rank] > 0 or kind == ALL:
            low = 0
            high = hi - lo
            while low < high:
                middle = (low + high) >> 1
                if work[RANK, middle] < rank:
                    low = middle + 1
                else:
                    high = middle
            taken = 1 if kind == FIRST else min(sums[0, rank], limit)
            limit -= taken
            for lane in range(data.shape[0]):
                out[lane, n] = data[lane, lo + low]
            out_diffs[0, n] = taken
            n += 1
        rank = next_nonzero(sums, nonzero_counts, rank + 1, ranks)
    return n


@jit
def evaluate_output(
    kind, limit, max_reads, done, eval_offsets, eval_times, offsets, data, times, diffs, spans, out, out_diffs
):
    """Write the target rows of evaluation times from `done` on; column i of spans is that of time done + i.

    Return the first evaluation time that is not done, and the number of rows. Totals have no spans: row i is that of
    time done + i. The buffer must hold all totals, or the rows of any one time.
    """
    depth = times.shape[0]
    width = diffs.shape[0]
    totals = kind == PRESENCE or kind == SUMS
    start = done
    key = key_of_evaluation(eval_offsets, done)
    keys = eval_offsets.shape[0] - 1
    rows, evals = largest_sizes(offsets, eval_offsets, key, keys)
    meets = np.empty((depth, evals), np.int64)
    work = np.zeros((LANES, max(rows, evals)), np.int64)
    unsettled = np.empty((depth + 1 + width, rows), np.int64)
    sums = np.zeros((width, rows + 1), np.int64)
    nonzero_counts = np.zeros((2, (rows >> 6) + 1), np.int64)
    state = np.empty(FIELDS, np.int64)
    n = ZERO
    while done < eval_times.shape[1]:
        if totals:
            key = total_by_reading(
                kind, limit, max_reads, key, start, eval_offsets, eval_times, offsets, times, diffs, out, out_diffs
            )
        else:
            key, n = rows_by_reading(
                kind, limit, max_reads, key, start, eval_offsets, eval_times, offsets, data, times, diffs,
                spans, out, out_diffs, n,
            )  # fmt: skip
        done = max(done, eval_offsets[key])
        if key == keys:
            break
        row_lo = offsets[key]
        row_hi = offsets[key + 1]
        end = eval_offsets[key + 1]
        if not totals:
            end = min(end, done + (out.shape[1] - n) // max(ONE, min(limit, row_hi - row_lo)))
        if done == end:
            break
        ranks = ONE if totals else rank_rows(data, row_lo, row_hi, work)
        swept = plan_passes(eval_times, done, end, meets, work)
        begin_replay(times, diffs, row_lo, row_hi, meets, swept, unsettled, work, sums, nonzero_counts, state)
        last = work[EVAL, 0]
        for j in range(end - done):
            t = work[EVAL, j]
            if not same_tail(eval_times, last, t, swept):
                undo_pass(unsettled, eval_times, last, sums, nonzero_counts, state)
                settle_updates(unsettled, meets, j, swept, sums, nonzero_counts, state)
            last = t
            sweep_to(unsettled, eval_times, t, swept, sums, nonzero_counts, state)
            if totals:
                write_total(kind, limit, sums, out, out_diffs, t - start)
            else:
                spans[0, t - start] = n
                n = write_rows_of_tally(
                    kind, limit, data, row_lo, row_hi, work, sums, nonzero_counts, ranks, out, out_diffs, n
                )
                spans[1, t - start] = n
        clear_tally(sums, nonzero_counts, ranks)
        done = end
        if done == eval_offsets[key + 1]:
            key += 1
    return done, done - start if totals else n


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield (
        evaluate_output,
        (NUMBER, NUMBER, NUMBER, NUMBER, COLUMN, TABLE, COLUMN, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE),
    )
