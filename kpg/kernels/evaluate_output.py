"""What a key's output should be at each of its evaluation times.

    accumulate   the rows wanted at each evaluation time t, made of  Σ input at times ≤ t  as `kind` says

The input is a run: per key (offsets) sorted by value, then time. Evaluation times are per key sorted and distinct.
Wanted rows are per evaluation time (spans int64[2, n]: where they begin and end; without columns: one row each),
sorted by value, values distinct; those of a key are next to each other; a diff of zero stands for no row. A key with
one evaluation time, the usual one, or few rows is read for each; others are replayed (kpg.kernels.replay_history).

Results go into buffers of the caller; when one is full, the kernel says how far it got, and is called again from there.
Twin: kpg.testing.kernels_operators.accumulate.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.compare_rows import ONE, ZERO, at_most, equal
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.replay_history import (
    EVAL,
    FIELDS,
    LANES,
    RANK,
    begin,
    clear,
    next_present,
    plan,
    reach,
    same_tail,
    settle,
    sizes,
    take_back,
    too_many,
)

PRESENCE = 0  # a row without lanes, where the total of lane 0 is at least `limit`
SUMS = 1  # a row of the totals, where one is not zero
FIRST = 2  # the first `limit` values of positive multiplicity, each once
COPIES = 3  # the first `limit` copies of values of positive multiplicity
ALL = 4  # every value of non-zero multiplicity


@jit
def first_key(eval_offsets, t):
    """The key that evaluation time t belongs to."""
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
    """Number the distinct values of sorted rows; how many."""
    n = 0
    for row in range(lo, hi):
        if row > lo and not equal(data, row - 1, data, row, data.shape[0]):
            n += 1
        work[RANK, row - lo] = n
    return n + 1


@jit
def put_total(kind, limit, sums, out, out_diffs, n):
    """Write the row wanted of a total as row n."""
    diff = 0
    if kind == PRESENCE:
        diff = 1 if sums[0, 0] >= limit else 0
    else:
        for w in range(sums.shape[0]):
            out[w, n] = sums[w, 0]
            diff = 1 if sums[w, 0] != 0 else diff
    out_diffs[0, n] = diff


@jit
def plain_totals(kind, limit, few, key, start, eval_offsets, eval_times, offsets, times, diffs, out, out_diffs):
    """Write the totals of keys from `key` on, reading their rows for each time, while these are few; the first left."""
    while key < eval_offsets.shape[0] - 1:
        if too_many(eval_offsets[key + 1] - eval_offsets[key], offsets[key + 1] - offsets[key], few):
            break
        for t in range(eval_offsets[key], eval_offsets[key + 1]):
            diff = 0
            for w in range(diffs.shape[0]):
                total = 0
                for row in range(offsets[key], offsets[key + 1]):
                    if at_most(times, row, eval_times, t):
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
def plain_rows(kind, limit, few, key, start, eval_offsets, eval_times, offsets, data, times, diffs,
              spans, out, out_diffs, n):  # fmt: skip
    """Write the rows wanted of keys from `key` on, likewise, while there is room."""
    lanes = data.shape[0]
    while key < eval_offsets.shape[0] - 1:
        evals = eval_offsets[key + 1] - eval_offsets[key]
        end = offsets[key + 1]
        if n + evals * min(limit, end - offsets[key]) > out.shape[1] or too_many(evals, end - offsets[key], few):
            break
        if eval_offsets[key] < start:  # begun by the call before this one
            break
        for t in range(eval_offsets[key], eval_offsets[key + 1]):
            spans[0, t - start] = n
            row = offsets[key]
            left = limit
            while row < end and left > 0:
                first = row
                count = 0
                while row < end and equal(data, first, data, row, lanes):
                    if at_most(times, row, eval_times, t):
                        count += diffs[0, row]
                    row += 1
                if count > 0 or (kind == ALL and count != 0):
                    taken = 1 if kind == FIRST else min(count, left)
                    left -= taken
                    for lane in range(lanes):
                        out[lane, n] = data[lane, first]
                    out_diffs[0, n] = taken
                    n += 1
            spans[1, t - start] = n
        key += 1
    return key, n


@jit
def rows_of_tally(kind, limit, data, lo, hi, work, sums, marks, ranks, out, out_diffs, n):
    """The rows wanted of a tally; the row of a rank is found by bisection, ranks of rows being sorted."""
    rank = next_present(sums, marks, ZERO, ranks)
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
        rank = next_present(sums, marks, rank + 1, ranks)
    return n


@jit
def accumulate(kind, limit, few, done, eval_offsets, eval_times, offsets, data, times, diffs, spans, out, out_diffs):
    """Fill the wanted rows of evaluation times from `done` on; column i of spans is that of time done + i.

    Returns the first evaluation time not done, and how many rows there are. Totals have no spans: row i is that of time
    done + i. The room must be enough for all totals, or for the rows of any one time.
    """
    depth = times.shape[0]
    width = diffs.shape[0]
    totals = kind == PRESENCE or kind == SUMS
    start = done
    key = first_key(eval_offsets, done)
    keys = eval_offsets.shape[0] - 1
    rows, evals = sizes(offsets, eval_offsets, key, keys)
    meets = np.empty((depth, evals), np.int64)
    work = np.zeros((LANES, max(rows, evals)), np.int64)
    late = np.empty((depth + 1 + width, rows), np.int64)
    sums = np.zeros((width, rows + 1), np.int64)
    marks = np.zeros((2, (rows >> 6) + 1), np.int64)
    state = np.empty(FIELDS, np.int64)
    n = ZERO
    while done < eval_times.shape[1]:
        if totals:
            key = plain_totals(
                kind, limit, few, key, start, eval_offsets, eval_times, offsets, times, diffs, out, out_diffs
            )
        else:
            key, n = plain_rows(
                kind, limit, few, key, start, eval_offsets, eval_times, offsets, data, times, diffs,
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
        swept = plan(eval_times, done, end, meets, work)
        begin(times, diffs, row_lo, row_hi, meets, swept, late, work, sums, marks, state)
        last = work[EVAL, 0]
        for j in range(end - done):
            t = work[EVAL, j]
            if not same_tail(eval_times, last, t, swept):
                take_back(late, eval_times, last, sums, marks, state)
                settle(late, meets, j, swept, sums, marks, state)
            last = t
            reach(late, eval_times, t, swept, sums, marks, state)
            if totals:
                put_total(kind, limit, sums, out, out_diffs, t - start)
            else:
                spans[0, t - start] = n
                n = rows_of_tally(kind, limit, data, row_lo, row_hi, work, sums, marks, ranks, out, out_diffs, n)
                spans[1, t - start] = n
        clear(sums, marks, ranks)
        done = end
        if done == eval_offsets[key + 1]:
            key += 1
    return done, done - start if totals else n


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield accumulate, (NUMBER, NUMBER, NUMBER, NUMBER, COLUMN, TABLE, COLUMN, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE)
