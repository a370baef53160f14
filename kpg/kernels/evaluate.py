"""What a key's output should be at each of its evaluation times, and the corrections that make it so.

    accumulate   the rows wanted at each evaluation time t, made of  Σ input at times ≤ t  as `kind` says
    correct      at each t in order:  wanted rows  −  Σ output at times ≤ t, corrections made before included

Histories are runs: per key (offsets) sorted by value, then time. Evaluation times are per key sorted and distinct.
Wanted rows are per evaluation time sorted by value, values distinct; a diff of zero stands for no row. A key with one
evaluation time, the usual one, is a single pass; with several it is replayed (kpg.kernels.history).

Results go into buffers of the caller; when one is full, the kernel says how far it got, and is called again from there.
Twins: kpg.testing.kernels_operators.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.history import (
    FIELDS,
    HELD,
    LANES,
    RANK,
    add,
    advance,
    begin,
    clear,
    count_held,
    keep,
    next_present,
    suffix_meets,
)
from kpg.kernels.jit import jit
from kpg.kernels.ordering import ONE, ORDER, ZERO, at_most, equal, sort_columns, sorts_before

PRESENCE = 0  # a row without lanes, where the total of lane 0 is at least `limit`
SUMS = 1  # a row of the totals, where one is not zero
FIRST = 2  # the first `limit` values of positive multiplicity, each once
COPIES = 3  # the first `limit` copies of values of positive multiplicity
ALL = 4  # every value of non-zero multiplicity


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
def rank_rows(data, lo, hi, work):
    """Number the distinct values of sorted rows; how many."""
    n = 0
    for row in range(lo, hi):
        if row > lo and not equal(data, row - 1, data, row, data.shape[0]):
            n += 1
        work[RANK, row - lo] = n
    return n + 1


@jit
def put_total(kind, limit, sums, rank, out, out_diffs, n):
    """Write the row wanted of a total; always one."""
    diff = 0
    if kind == PRESENCE:
        diff = 1 if sums[0, rank] >= limit else 0
    else:
        for w in range(sums.shape[0]):
            out[w, n] = sums[w, rank]
            diff = 1 if sums[w, rank] != 0 else diff
    out_diffs[0, n] = diff
    return n + 1


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
               out_offsets, out, out_diffs):  # fmt: skip
    """Fill the wanted rows of evaluation times from eval_lo on; out_offsets[i] is where those of eval_lo + i begin.

    Returns the first evaluation time not done. The room must be enough for the rows of any one time.
    """
    depth = times.shape[0]
    totals = kind == PRESENCE or kind == SUMS
    key_lo = 0
    key_hi = eval_offsets.shape[0] - 1
    while key_lo < key_hi:  # the last key that begins at or before eval_lo, or one without evaluation times before it
        middle = (key_lo + key_hi) >> 1
        if eval_offsets[middle + 1] <= eval_lo:
            key_lo = middle + 1
        else:
            key_hi = middle
    key_hi = eval_offsets.shape[0] - 1
    rows, evals = sizes(offsets, eval_offsets, key_lo, key_hi)
    meets = np.empty((depth, evals), np.int64)
    work = np.zeros((LANES, rows), np.int64)
    held = np.empty((1 + depth + diffs.shape[0], rows), np.int64)
    sums = np.zeros((diffs.shape[0], rows + 1), np.int64)
    marks = np.zeros((2, (rows >> 6) + 1), np.int64)
    state = np.empty(FIELDS, np.int64)
    room = out.shape[1]
    n = ZERO
    out_offsets[0] = 0
    for key in range(key_lo, key_hi):
        lo = max(eval_offsets[key], eval_lo)
        hi = min(eval_offsets[key + 1], eval_hi)
        row_lo = offsets[key]
        row_hi = offsets[key + 1]
        most = ONE if totals else min(limit, row_hi - row_lo)
        if lo >= eval_hi:
            break
        if hi - lo == 1:
            if n + most > room:
                return lo
            if totals:
                for w in range(diffs.shape[0]):
                    total = 0
                    for row in range(row_lo, row_hi):
                        if at_most(times, row, eval_times, lo):
                            total += diffs[w, row]
                    sums[w, 0] = total
                n = put_total(kind, limit, sums, ZERO, out, out_diffs, n)
                for w in range(diffs.shape[0]):
                    sums[w, 0] = 0
            else:
                n = rows_once(kind, limit, data, times, diffs, row_lo, row_hi, eval_times, lo, out, out_diffs, n)
            out_offsets[lo - eval_lo + 1] = n
        elif hi > lo:
            ranks = ONE if totals else rank_rows(data, row_lo, row_hi, work)
            suffix_meets(eval_times, lo, hi, meets)
            begin(times, diffs, row_lo, row_hi, meets, work, sums, marks, state)
            for t in range(lo, hi):
                if n + most > room:
                    return t
                advance(times, diffs, row_lo, eval_times, t, meets, t - lo, held, work, sums, marks, state)
                count_held(held, state[HELD], eval_times, t, sums, marks, ONE)
                if totals:
                    n = put_total(kind, limit, sums, ZERO, out, out_diffs, n)
                else:
                    n = rows_of_tally(kind, limit, data, row_lo, row_hi, work, sums, marks, ranks, out, out_diffs, n)
                count_held(held, state[HELD], eval_times, t, sums, marks, -ONE)
                out_offsets[t - eval_lo + 1] = n
            clear(sums, marks, ranks)
    return eval_hi


@jit
def correct_once(want, want_diffs, w, w_hi, data, times, diffs, row, hi, eval_times, t, out, out_times, out_diffs, n):
    """The corrections at a key's only evaluation time: wanted rows minus output, merged by value. How many then."""
    lanes = out.shape[0]
    while w < w_hi or row < hi:
        first = row
        correction = 0
        wanted = row == hi or (w < w_hi and not sorts_before(data, row, want, w, lanes))
        if row < hi and not (wanted and sorts_before(want, w, data, row, lanes)):
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
def rank_wanted(want, w_lo, w_hi, data, lo, hi, work, want_ranks, firsts):
    """Number the values of wanted and output rows together; how many. firsts: an output row, or ~(wanted row)."""
    lanes = data.shape[0]
    wants = w_hi - w_lo
    for w in range(wants):
        work[ORDER, w] = w_lo + w
    sort_columns(want, lanes, work, wants)
    n = 0
    w = 0
    row = lo
    while w < wants or row < hi:
        if row == hi or (w < wants and sorts_before(want, work[ORDER, w], data, row, lanes)):
            first = work[ORDER, w]
            firsts[n] = ~first
            while w < wants and equal(want, first, want, work[ORDER, w], lanes):
                want_ranks[work[ORDER, w] - w_lo] = n
                w += 1
        else:
            first = row
            firsts[n] = first
            while row < hi and equal(data, first, data, row, lanes):
                work[RANK, row - lo] = n
                row += 1
            while w < wants and equal(data, first, want, work[ORDER, w], lanes):
                want_ranks[work[ORDER, w] - w_lo] = n
                w += 1
        n += 1
    return n


@jit
def sort_made(made, count, ranks, firsts, starts, want, data, eval_times, out, out_times, out_diffs, n):
    """Write corrections made in order of time (diff, rank, time) by value, then time: a counting sort by rank."""
    for rank in range(ranks + 1):
        starts[rank] = 0
    for c in range(count):
        starts[made[1, c] + 1] += 1
    for rank in range(ranks):
        starts[rank + 1] += starts[rank]
    for c in range(count):
        rank = made[1, c]
        at = n + starts[rank]
        starts[rank] += 1
        first = firsts[rank]
        for lane in range(out.shape[0]):
            out[lane, at] = data[lane, first] if first >= 0 else want[lane, ~first]
        for d in range(out_times.shape[0]):
            out_times[d, at] = eval_times[d, made[2, c]]
        out_diffs[0, at] = made[0, c]


@jit
def correct(key, n, eval_offsets, eval_times, want_offsets, want, want_diffs, offsets, data, times, diffs,
            out_keys, out, out_times, out_diffs):  # fmt: skip
    """Fill the corrections of keys from `key` on behind the first n, sorted by key, value, time.

    Returns the first key not done, and how many corrections there are.
    """
    depth = times.shape[0]
    keys = offsets.shape[0] - 1
    rows, evals = sizes(offsets, eval_offsets, key, keys)
    wants = 0
    for other in range(key, keys):
        if eval_offsets[other + 1] - eval_offsets[other] > 1:
            wants = max(wants, want_offsets[eval_offsets[other + 1]] - want_offsets[eval_offsets[other]])
    room = out_keys.shape[0]
    several = room if evals > 0 else 0
    meets = np.empty((depth, evals), np.int64)
    work = np.empty((LANES, max(rows + several, wants)), np.int64)
    held = np.empty((2 + depth, rows + several), np.int64)
    made = np.empty((3, several), np.int64)
    want_ranks = np.empty(wants, np.int64)
    firsts = np.empty(rows + wants, np.int64)
    starts = np.empty(rows + wants + 1, np.int64)
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
            if n + want_offsets[hi] - want_offsets[lo] + row_hi - row_lo > room:
                return key, n
            n = correct_once(
                want, want_diffs, want_offsets[lo], want_offsets[hi], data, times, diffs, row_lo, row_hi,
                eval_times, lo, out, out_times, out_diffs, n,
            )  # fmt: skip
        elif hi > lo:
            want_lo = want_offsets[lo]
            ranks = rank_wanted(want, want_lo, want_offsets[hi], data, row_lo, row_hi, work, want_ranks, firsts)
            suffix_meets(eval_times, lo, hi, meets)
            begin(times, diffs, row_lo, row_hi, meets, work, sums, marks, state)
            count = ZERO
            for t in range(lo, hi):
                advance(times, diffs, row_lo, eval_times, t, meets, t - lo, held, work, sums, marks, state)
                # With what is wanted taken away the tally holds the corrections, negated.
                count_held(held, state[HELD], eval_times, t, sums, marks, ONE)
                for w in range(want_offsets[t], want_offsets[t + 1]):
                    add(sums, marks, want_ranks[w - want_lo], want_diffs, ZERO, w, -ONE)
                start = count
                rank = next_present(sums, marks, ZERO, ranks)
                while rank < ranks:
                    if n + count == room:
                        return key, n
                    made[0, count] = -sums[0, rank]
                    made[1, count] = rank
                    made[2, count] = t
                    count += 1
                    rank = next_present(sums, marks, rank + 1, ranks)
                for w in range(want_offsets[t], want_offsets[t + 1]):
                    add(sums, marks, want_ranks[w - want_lo], want_diffs, ZERO, w, ONE)
                count_held(held, state[HELD], eval_times, t, sums, marks, -ONE)
                if t + 1 < hi:
                    for c in range(start, count):
                        state[HELD] = keep(
                            made[1, c], eval_times, t, made, c, meets, t + 1 - lo, held, state[HELD], sums, marks
                        )
            clear(sums, marks, ranks)
            sort_made(made, count, ranks, firsts, starts, want, data, eval_times, out, out_times, out_diffs, n)
            n += count
        for c in range(before, n):
            out_keys[c] = key
        key += 1
    return key, n


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield accumulate, (NUMBER, NUMBER, NUMBER, NUMBER, COLUMN, TABLE, COLUMN, TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE)
    yield correct, (
        NUMBER, NUMBER, COLUMN, TABLE, COLUMN, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE,
    )  # fmt: skip
