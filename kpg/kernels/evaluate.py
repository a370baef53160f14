"""What a key's output should be at each of its evaluation times, and the corrections that make it so.

    accumulate   the rows wanted at each evaluation time t, made of  Σ input at times ≤ t  as `kind` says
    correct      at each t in order:  wanted rows  −  Σ output at times ≤ t, corrections made before included

Histories are runs: per key (offsets) sorted by value, then time. Evaluation times are per key sorted and distinct.
Wanted rows are per evaluation time (spans int64[2, n]: where they begin and end) sorted by value, values distinct;
those of a key are next to each other; a diff of zero stands for no row. A key with one evaluation time, the usual one,
is read once; with several it is replayed (kpg.kernels.history).

Results go into buffers of the caller; when one is full, the kernel says how far it got, and is called again from there.
Twins: kpg.testing.kernels_operators.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.history import (
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
    take_back,
)
from kpg.kernels.jit import jit
from kpg.kernels.ordering import ONE, ORDER, ZERO, at_most, equal, sort_columns, sorts_before

PRESENCE = 0  # a row without lanes, where the total of lane 0 is at least `limit`
SUMS = 1  # a row of the totals, where one is not zero
FIRST = 2  # the first `limit` values of positive multiplicity, each once
COPIES = 3  # the first `limit` copies of values of positive multiplicity
ALL = 4  # every value of non-zero multiplicity

WANT_RANK, FIRST_ROW = 0, 1  # lanes of `numbers`: of a wanted row its rank, of a rank a row


@jit
def sizes(offsets, eval_offsets, key_lo, key_hi):
    """The most rows and the most evaluation times of any key that has several evaluation times."""
    rows = 0
    evals = 0
    for key in range(key_lo, key_hi):
        if eval_offsets[key + 1] - eval_offsets[key] > 1:
            rows = max(rows, offsets[key + 1] - offsets[key])
            evals = max(evals, eval_offsets[key + 1] - eval_offsets[key])
    return rows, evals


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
def put_row(kind, room, count, data, row, out, out_diffs, n):
    """Write a value if it is wanted while `room` more are; how many are written and how much room is left."""
    if kind == ALL:
        out_diffs[0, n] = count
    elif kind == FIRST:
        out_diffs[0, n] = 1
        room -= 1
    else:
        out_diffs[0, n] = min(count, room)
        room -= min(count, room)
    for lane in range(data.shape[0]):
        out[lane, n] = data[lane, row]
    return n + 1, room


@jit
def rows_once(kind, limit, data, times, diffs, lo, hi, eval_times, t, out, out_diffs, n):
    """The rows wanted at a key's only evaluation time."""
    row = lo
    while row < hi and limit > 0:
        first = row
        count = 0
        while row < hi and equal(data, first, data, row, data.shape[0]):
            if at_most(times, row, eval_times, t):
                count += diffs[0, row]
            row += 1
        if count > 0 or (kind == ALL and count != 0):
            n, limit = put_row(kind, limit, count, data, first, out, out_diffs, n)
    return n


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
            n, limit = put_row(kind, limit, sums[0, rank], data, lo + low, out, out_diffs, n)
        rank = next_present(sums, marks, rank + 1, ranks)
    return n


@jit
def accumulate(kind, limit, eval_lo, eval_hi, eval_offsets, eval_times, offsets, data, times, diffs,
               spans, out, out_diffs):  # fmt: skip
    """Fill the wanted rows of evaluation times from eval_lo on; column i of spans is that of time eval_lo + i.

    Returns the first evaluation time not done, and how many rows there are. A total is row i of time eval_lo + i. The
    room must be enough for the rows of any one time.
    """
    depth = times.shape[0]
    width = diffs.shape[0]
    totals = kind == PRESENCE or kind == SUMS
    key = first_key(eval_offsets, eval_lo)
    keys = eval_offsets.shape[0] - 1
    rows, evals = sizes(offsets, eval_offsets, key, keys)
    meets = np.empty((depth, evals), np.int64)
    work = np.zeros((LANES, max(rows, evals)), np.int64)
    late = np.empty((depth + 1 + width, rows), np.int64)
    sums = np.zeros((width, rows + 1), np.int64)
    marks = np.zeros((2, (rows >> 6) + 1), np.int64)
    state = np.empty(FIELDS, np.int64)
    lo = eval_lo
    n = ZERO
    while lo < eval_hi:
        if lo >= eval_offsets[key + 1]:
            key += 1
            continue
        row_lo = offsets[key]
        row_hi = offsets[key + 1]
        most = ONE if totals else max(ONE, min(limit, row_hi - row_lo))
        hi = min(min(eval_offsets[key + 1], eval_hi), lo + (out.shape[1] - n) // most)
        if lo == hi:
            return lo, n
        if hi - lo == 1:
            spans[0, lo - eval_lo] = n
            if totals:
                for w in range(width):
                    total = 0
                    for row in range(row_lo, row_hi):
                        if at_most(times, row, eval_times, lo):
                            total += diffs[w, row]
                    sums[w, 0] = total
                put_total(kind, limit, sums, out, out_diffs, n)
                for w in range(width):
                    sums[w, 0] = 0
                n += 1
            else:
                n = rows_once(kind, limit, data, times, diffs, row_lo, row_hi, eval_times, lo, out, out_diffs, n)
            spans[1, lo - eval_lo] = n
        else:
            ranks = ONE if totals else rank_rows(data, row_lo, row_hi, work)
            swept = plan(eval_times, lo, hi, meets, work)
            begin(times, diffs, row_lo, row_hi, meets, swept, late, work, sums, marks, state)
            last = work[EVAL, 0]
            for j in range(hi - lo):
                t = work[EVAL, j]
                if not same_tail(eval_times, last, t, swept):
                    take_back(late, eval_times, last, sums, marks, state)
                    settle(late, meets, j, swept, sums, marks, state)
                last = t
                reach(late, eval_times, t, swept, sums, marks, state)
                if totals:
                    spans[0, t - eval_lo] = n + t - lo
                    spans[1, t - eval_lo] = n + t - lo + 1
                    put_total(kind, limit, sums, out, out_diffs, n + t - lo)
                else:
                    spans[0, t - eval_lo] = n
                    n = rows_of_tally(kind, limit, data, row_lo, row_hi, work, sums, marks, ranks, out, out_diffs, n)
                    spans[1, t - eval_lo] = n
            if totals:
                n += hi - lo
            clear(sums, marks, ranks)
        lo = hi
    return lo, n


@jit
def correct_once(want, want_diffs, w, w_hi, data, times, diffs, row, hi, eval_times, t, out, out_times, out_diffs, n):
    """The corrections at a key's only evaluation time: wanted rows minus output, merged by value. How many then."""
    lanes = out.shape[0]
    while w < w_hi or row < hi:
        first = row
        correction = 0
        wanted = row == hi or (w < w_hi and not sorts_before(data, row, want, w, ZERO, lanes))
        if row < hi and not (wanted and sorts_before(want, w, data, row, ZERO, lanes)):
            while row < hi and equal(data, first, data, row, lanes):
                if at_most(times, row, eval_times, t):
                    correction -= diffs[0, row]
                row += 1
        if wanted:
            correction += want_diffs[0, w]
            w += 1
        if correction != 0:
            for lane in range(lanes):
                out[lane, n] = want[lane, w - 1] if wanted else data[lane, first]
            for d in range(out_times.shape[0]):
                out_times[d, n] = eval_times[d, t]
            out_diffs[0, n] = correction
            n += 1
    return n


@jit
def span_of_key(spans, lo, hi):
    """Where the wanted rows of evaluation times lo to hi begin and end."""
    begins = spans[0, lo]
    ends = spans[1, lo]
    for t in range(lo + 1, hi):
        begins = min(begins, spans[0, t])
        ends = max(ends, spans[1, t])
    return begins, ends


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
def correct(key, n, eval_offsets, eval_times, spans, want, want_diffs, offsets, data, times, diffs,
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
        lo = eval_offsets[key]
        hi = eval_offsets[key + 1]
        row_lo = offsets[key]
        row_hi = offsets[key + 1]
        before = n
        if hi - lo == 1:
            if n + spans[1, lo] - spans[0, lo] + row_hi - row_lo > room:
                return key, n
            n = correct_once(
                want, want_diffs, spans[0, lo], spans[1, lo], data, times, diffs, row_lo, row_hi,
                eval_times, lo, out, out_times, out_diffs, n,
            )  # fmt: skip
        elif hi > lo:
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
                # With what is wanted taken away the tally holds the corrections, negated.
                for w in range(spans[0, t], spans[1, t]):
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
                for w in range(spans[0, t], spans[1, t]):
                    add(sums, marks, numbers[WANT_RANK, w - want_lo], want_diffs, ZERO, w, ONE)
            clear(sums, marks, ranks)
            put_made(made, count, numbers, work, want, data, eval_times, out, out_times, out_diffs, n)
            n += count
        for c in range(before, n):
            out_keys[c] = key
        key += 1
    return key, n


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield accumulate, (NUMBER, NUMBER, NUMBER, NUMBER, COLUMN, TABLE, COLUMN, TABLE, TABLE, TABLE, TABLE, TABLE, TABLE)
    yield correct, (
        NUMBER, NUMBER, COLUMN, TABLE, TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE,
    )  # fmt: skip
