"""Accumulate a key's input at each of its evaluation times, and correct its output there.

    accumulate_totals   Σ diffs of all updates at or before t, one column per evaluation time
    accumulate_rows     the values with their accumulated multiplicity, sorted: the first few, or all that are not zero
    correct             the updates that make the output at each t what is wanted there; those made at earlier
                        times of the same call count as output

Inputs are runs: per key (offsets) sorted by value, then time. Evaluation times are per key sorted and distinct. Wanted rows
are per evaluation time sorted by value, values distinct; a diff of zero stands for no row. A key with one evaluation
time, the usual one, is a single pass; with several it is replayed (kpg.kernels.history).
Twins: kpg.testing.kernels_operators.
"""

import numpy as np

from kpg.kernels.history import (
    add,
    clear,
    count_held,
    due,
    equal_columns,
    hold,
    next_present,
    settle,
    suffix_meets,
    tidy,
)
from kpg.kernels.jit import jit
from kpg.kernels.ordering import at_most, grow, sort_columns, sorts_before

FIRST = 0  # the first values of positive multiplicity, each once
COPIES = 1  # the first copies: multiplicities count towards the limit
ALL = 2  # every value of non-zero multiplicity


@jit
def largest(offsets, eval_offsets, lo, hi):
    """The most rows and the most evaluation times of any key of [lo, hi) with several evaluation times."""
    rows = 0
    evals = 0
    for key in range(lo, hi):
        if eval_offsets[key + 1] - eval_offsets[key] > 1:
            rows = max(rows, offsets[key + 1] - offsets[key])
            evals = max(evals, eval_offsets[key + 1] - eval_offsets[key])
    return rows, evals


@jit
def late_rows(times, lo, hi, eval_times, last, meets, order, spare):
    """The rows not at or before every evaluation time, in order of time: how many; `order` names them."""
    n = 0
    for row in range(lo, hi):
        if not at_most(times, row, meets, 0):
            order[n] = row
            n += 1
    sort_columns(times, order, n, spare)
    return n


@jit
def accumulate_totals(eval_offsets, eval_times, offsets, times, diffs):
    """int64[width, evaluation times]: the accumulated diff at each."""
    depth = times.shape[0]
    width = diffs.shape[0]
    keys = offsets.shape[0] - 1
    totals = np.zeros((width, eval_times.shape[1]), np.int64)
    rows, evals = largest(offsets, eval_offsets, 0, keys)
    meets = np.empty((depth, evals), np.int64)
    late = np.empty(rows, np.int64)
    order = np.empty(rows, np.int64)
    spare = np.empty(rows, np.int64)
    held = np.empty((1 + depth, rows), np.int64)
    held_diffs = np.empty((width, rows), np.int64)
    sums = np.zeros((width, 1), np.int64)
    marks = np.zeros((2, 1), np.int64)
    for key in range(keys):
        lo = eval_offsets[key]
        hi = eval_offsets[key + 1]
        if hi - lo == 1:
            for row in range(offsets[key], offsets[key + 1]):
                if at_most(times, row, eval_times, lo):
                    for w in range(width):
                        totals[w, lo] += diffs[w, row]
        elif hi > lo:
            suffix_meets(eval_times, lo, hi, meets)
            for row in range(offsets[key], offsets[key + 1]):
                if at_most(times, row, meets, 0):
                    add(sums, marks, 0, diffs, row, 1)
            rest = late_rows(times, offsets[key], offsets[key + 1], eval_times, hi - 1, meets, late, spare)
            taken = 0
            n = 0
            after = 0
            reads = 0
            for i in range(lo, hi):
                while taken < rest and not sorts_before(eval_times, i, times, late[taken]):
                    if at_most(times, late[taken], meets, i - lo):
                        add(sums, marks, 0, diffs, late[taken], 1)
                    else:
                        hold(held, held_diffs, n, 0, times, late[taken], diffs, late[taken], meets, i - lo)
                        n += 1
                    taken += 1
                if due(n, after, reads):
                    n = tidy(held, held_diffs, n, meets, i - lo, order, spare)
                    n = settle(held, held_diffs, n, meets, i - lo, sums, marks)
                    after = n
                    reads = 0
                reads += 1
                count_held(held, held_diffs, n, eval_times, i, sums, marks, 1)
                for w in range(width):
                    totals[w, i] = sums[w, 0]
                count_held(held, held_diffs, n, eval_times, i, sums, marks, -1)
            clear(sums, marks, 1)
    return totals


@jit
def rank_rows(data, lo, hi, ranks, firsts):
    """Number the distinct values of sorted rows: ranks of rows, first row of each rank; how many."""
    n = 0
    for row in range(lo, hi):
        if row == lo or not equal_columns(data, row - 1, row):
            firsts[n] = row
            n += 1
        ranks[row - lo] = n - 1
    return n


@jit
def take(kind, room, count):
    """What diff a value of this multiplicity has when `room` more are wanted, and how much of the room it uses."""
    if kind == ALL:
        return count, 1
    if count <= 0:
        return 0, 0
    if kind == FIRST:
        return 1, 1
    return min(count, room), min(count, room)


@jit
def rows_once(kind, limit, data, times, diffs, lo, hi, eval_times, i, out, out_diffs, n):
    """The rows wanted at a key's only evaluation time."""
    row = lo
    while row < hi and limit > 0:
        first = row
        count = 0
        while row < hi and equal_columns(data, first, row):
            if at_most(times, row, eval_times, i):
                count += diffs[0, row]
            row += 1
        diff, used = take(kind, limit, count)
        if diff != 0:
            if n == out.shape[1]:
                out = grow(out, n)
                out_diffs = grow(out_diffs, n)
            for lane in range(data.shape[0]):
                out[lane, n] = data[lane, first]
            out_diffs[0, n] = diff
            n += 1
            limit -= used
    return out, out_diffs, n


@jit
def read_rows(kind, limit, data, firsts, ranks, sums, marks, out, out_diffs, n):
    """The rows wanted of a tally."""
    rank = next_present(sums, marks, 0, ranks)
    while rank < ranks and limit > 0:
        diff, used = take(kind, limit, sums[0, rank])
        if diff != 0:
            if n == out.shape[1]:
                out = grow(out, n)
                out_diffs = grow(out_diffs, n)
            for lane in range(data.shape[0]):
                out[lane, n] = data[lane, firsts[rank]]
            out_diffs[0, n] = diff
            n += 1
            limit -= used
        rank = next_present(sums, marks, rank + 1, ranks)
    return out, out_diffs, n


@jit
def accumulate_rows(kind, limit, eval_lo, eval_hi, eval_offsets, eval_times, offsets, data, times, diffs):
    """For evaluation times [eval_lo, eval_hi): (offsets, values, diffs) of the accumulated rows that `kind` asks for."""
    depth = times.shape[0]
    key_lo = np.searchsorted(eval_offsets, eval_lo, "right") - 1
    key_hi = np.searchsorted(eval_offsets, eval_hi, "left")
    rows, evals = largest(offsets, eval_offsets, key_lo, key_hi)
    meets = np.empty((depth, evals), np.int64)
    ranks = np.empty(rows, np.int64)
    firsts = np.empty(rows, np.int64)
    late = np.empty(rows, np.int64)
    order = np.empty(rows, np.int64)
    spare = np.empty(rows, np.int64)
    held = np.empty((1 + depth, rows), np.int64)
    held_diffs = np.empty((1, rows), np.int64)
    sums = np.zeros((1, rows + 1), np.int64)
    marks = np.zeros((2, (rows >> 6) + 1), np.int64)
    out_offsets = np.zeros(eval_hi - eval_lo + 1, np.int64)
    out = np.empty((data.shape[0], eval_hi - eval_lo + 16), np.int64)
    out_diffs = np.empty((1, eval_hi - eval_lo + 16), np.int64)
    total = 0
    for key in range(key_lo, key_hi):
        lo = max(eval_offsets[key], eval_lo)
        hi = min(eval_offsets[key + 1], eval_hi)
        row_lo = offsets[key]
        row_hi = offsets[key + 1]
        if hi - lo == 1:
            out, out_diffs, total = rows_once(
                kind, limit, data, times, diffs, row_lo, row_hi, eval_times, lo, out, out_diffs, total
            )
            out_offsets[lo - eval_lo + 1] = total
        elif hi > lo:
            suffix_meets(eval_times, lo, hi, meets)
            distinct = rank_rows(data, row_lo, row_hi, ranks, firsts)
            for row in range(row_lo, row_hi):
                if at_most(times, row, meets, 0):
                    add(sums, marks, ranks[row - row_lo], diffs, row, 1)
            rest = late_rows(times, row_lo, row_hi, eval_times, hi - 1, meets, late, spare)
            taken = 0
            n = 0
            after = 0
            reads = 0
            for i in range(lo, hi):
                while taken < rest and not sorts_before(eval_times, i, times, late[taken]):
                    row = late[taken]
                    if at_most(times, row, meets, i - lo):
                        add(sums, marks, ranks[row - row_lo], diffs, row, 1)
                    else:
                        hold(held, held_diffs, n, ranks[row - row_lo], times, row, diffs, row, meets, i - lo)
                        n += 1
                    taken += 1
                if due(n, after, reads):
                    n = tidy(held, held_diffs, n, meets, i - lo, order, spare)
                    n = settle(held, held_diffs, n, meets, i - lo, sums, marks)
                    after = n
                    reads = 0
                reads += 1
                count_held(held, held_diffs, n, eval_times, i, sums, marks, 1)
                out, out_diffs, total = read_rows(
                    kind, limit, data, firsts, distinct, sums, marks, out, out_diffs, total
                )
                count_held(held, held_diffs, n, eval_times, i, sums, marks, -1)
                out_offsets[i - eval_lo + 1] = total
            clear(sums, marks, distinct)
    return out_offsets, out[:, :total].copy(), out_diffs[:, :total].copy()


@jit
def correct_once(want, want_diffs, w, w_hi, data, times, diffs, row, hi, eval_times, i, key, out_keys, out, out_times,
                 out_diffs, n):  # fmt: skip
    """The corrections at a key's only evaluation time: wanted rows minus output, merged by value."""
    while w < w_hi or row < hi:
        from_want = row == hi or (w < w_hi and sorts_before(want, w, data, row))
        at = row
        correction = 0
        if not from_want:
            while row < hi and equal_columns(data, at, row):
                if at_most(times, row, eval_times, i):
                    correction -= diffs[0, row]
                row += 1
        if from_want or (w < w_hi and not sorts_before(data, at, want, w)):
            correction += want_diffs[0, w]
            w += 1
        if correction != 0:
            if n == out_keys.shape[1]:
                out_keys = grow(out_keys, n)
                out = grow(out, n)
                out_times = grow(out_times, n)
                out_diffs = grow(out_diffs, n)
            out_keys[0, n] = key
            for lane in range(out.shape[0]):
                out[lane, n] = want[lane, w - 1] if from_want else data[lane, at]
            for d in range(out_times.shape[0]):
                out_times[d, n] = eval_times[d, i]
            out_diffs[0, n] = correction
            n += 1
    return out_keys, out, out_times, out_diffs, n


@jit
def rank_wanted(want, w_lo, w_hi, data, lo, hi, order, spare, want_ranks, row_ranks, firsts):
    """Number the distinct values of wanted and output rows together; firsts: a row, or ~(wanted row); how many."""
    for w in range(w_lo, w_hi):
        order[w - w_lo] = w
    sort_columns(want, order, w_hi - w_lo, spare)
    n = 0
    w = 0
    row = lo
    while w < w_hi - w_lo or row < hi:
        if row == hi or (w < w_hi - w_lo and sorts_before(want, order[w], data, row)):
            first = order[w]
            firsts[n] = ~first
            while w < w_hi - w_lo and equal_columns(want, first, order[w]):
                want_ranks[order[w] - w_lo] = n
                w += 1
        else:
            first = row
            firsts[n] = first
            while row < hi and equal_columns(data, first, row):
                row_ranks[row - lo] = n
                row += 1
            while w < w_hi - w_lo and not sorts_before(data, first, want, order[w]):
                want_ranks[order[w] - w_lo] = n
                w += 1
        n += 1
    return n


@jit
def correct(eval_offsets, eval_times, want_offsets, want, want_diffs, offsets, data, times, diffs):
    """The corrections at all evaluation times, sorted by key, value, time: (keys[1, n], values, times, diffs)."""
    depth = times.shape[0]
    lanes = want.shape[0]
    keys = offsets.shape[0] - 1
    rows, evals = largest(offsets, eval_offsets, 0, keys)
    wants = 0
    for key in range(keys):
        if eval_offsets[key + 1] - eval_offsets[key] > 1:
            wants = max(wants, want_offsets[eval_offsets[key + 1]] - want_offsets[eval_offsets[key]])
    most = max(rows, wants)
    meets = np.empty((depth, evals), np.int64)
    want_ranks = np.empty(wants, np.int64)
    row_ranks = np.empty(rows, np.int64)
    firsts = np.empty(rows + wants, np.int64)
    late = np.empty(most, np.int64)
    order = np.empty(most, np.int64)
    spare = np.empty(most, np.int64)
    held = np.empty((1 + depth, rows + 16), np.int64)
    held_diffs = np.empty((1, rows + 16), np.int64)
    made = np.empty((2, 16), np.int64)  # rank and evaluation time of the corrections of one key, in order of time
    made_diffs = np.empty((1, 16), np.int64)
    starts = np.zeros(rows + wants + 1, np.int64)
    sums = np.zeros((1, rows + wants + 1), np.int64)
    marks = np.zeros((2, ((rows + wants) >> 6) + 1), np.int64)
    room = eval_times.shape[1] + 16
    out_keys = np.empty((1, room), np.int64)
    out = np.empty((lanes, room), np.int64)
    out_times = np.empty((depth, room), np.int64)
    out_diffs = np.empty((1, room), np.int64)
    total = 0
    for key in range(keys):
        lo = eval_offsets[key]
        hi = eval_offsets[key + 1]
        row_lo = offsets[key]
        row_hi = offsets[key + 1]
        if hi - lo == 1:
            out_keys, out, out_times, out_diffs, total = correct_once(
                want, want_diffs, want_offsets[lo], want_offsets[hi], data, times, diffs, row_lo, row_hi, eval_times, lo,
                key, out_keys, out, out_times, out_diffs, total,
            )  # fmt: skip
        elif hi > lo:
            suffix_meets(eval_times, lo, hi, meets)
            want_lo = want_offsets[lo]
            ranks = rank_wanted(
                want, want_lo, want_offsets[hi], data, row_lo, row_hi, order, spare, want_ranks, row_ranks, firsts
            )
            for row in range(row_lo, row_hi):
                if at_most(times, row, meets, 0):
                    add(sums, marks, row_ranks[row - row_lo], diffs, row, 1)
            rest = late_rows(times, row_lo, row_hi, eval_times, hi - 1, meets, late, spare)
            taken = 0
            n = 0
            after = 0
            reads = 0
            corrections = 0
            for i in range(lo, hi):
                while taken < rest and not sorts_before(eval_times, i, times, late[taken]):
                    row = late[taken]
                    if at_most(times, row, meets, i - lo):
                        add(sums, marks, row_ranks[row - row_lo], diffs, row, 1)
                    else:
                        if n == held.shape[1]:
                            held = grow(held, n)
                            held_diffs = grow(held_diffs, n)
                        hold(held, held_diffs, n, row_ranks[row - row_lo], times, row, diffs, row, meets, i - lo)
                        n += 1
                    taken += 1
                if due(n, after, reads):
                    if n > order.shape[0]:
                        order = np.empty(2 * n, np.int64)
                        spare = np.empty(2 * n, np.int64)
                    n = tidy(held, held_diffs, n, meets, i - lo, order, spare)
                    n = settle(held, held_diffs, n, meets, i - lo, sums, marks)
                    after = n
                    reads = 0
                reads += 1
                # What the tally holds then is output minus wanted: the corrections, negated.
                count_held(held, held_diffs, n, eval_times, i, sums, marks, 1)
                for w in range(want_offsets[i], want_offsets[i + 1]):
                    add(sums, marks, want_ranks[w - want_lo], want_diffs, w, -1)
                before = corrections
                rank = next_present(sums, marks, 0, ranks)
                while rank < ranks:
                    if corrections == made.shape[1]:
                        made = grow(made, corrections)
                        made_diffs = grow(made_diffs, corrections)
                    made[0, corrections] = rank
                    made[1, corrections] = i
                    made_diffs[0, corrections] = -sums[0, rank]
                    corrections += 1
                    rank = next_present(sums, marks, rank + 1, ranks)
                for w in range(want_offsets[i], want_offsets[i + 1]):
                    add(sums, marks, want_ranks[w - want_lo], want_diffs, w, 1)
                count_held(held, held_diffs, n, eval_times, i, sums, marks, -1)
                if i + 1 < hi:
                    for c in range(before, corrections):
                        if at_most(eval_times, i, meets, i + 1 - lo):
                            add(sums, marks, made[0, c], made_diffs, c, 1)
                        else:
                            if n == held.shape[1]:
                                held = grow(held, n)
                                held_diffs = grow(held_diffs, n)
                            hold(held, held_diffs, n, made[0, c], eval_times, i, made_diffs, c, meets, i + 1 - lo)
                            n += 1
            clear(sums, marks, ranks)
            # Made in order of time: a counting sort by rank leaves them sorted by value, then time.
            for rank in range(ranks + 1):
                starts[rank] = 0
            for c in range(corrections):
                starts[made[0, c] + 1] += 1
            for rank in range(ranks):
                starts[rank + 1] += starts[rank]
            while total + corrections > out_keys.shape[1]:
                out_keys = grow(out_keys, out_keys.shape[1])
                out = grow(out, out.shape[1])
                out_times = grow(out_times, out_times.shape[1])
                out_diffs = grow(out_diffs, out_diffs.shape[1])
            for c in range(corrections):
                rank = made[0, c]
                at = total + starts[rank]
                starts[rank] += 1
                out_keys[0, at] = key
                first = firsts[rank]
                for lane in range(lanes):
                    out[lane, at] = data[lane, first] if first >= 0 else want[lane, ~first]
                for d in range(depth):
                    out_times[d, at] = eval_times[d, made[1, c]]
                out_diffs[0, at] = made_diffs[0, c]
            total += corrections
    return (
        out_keys[0, :total].copy(),
        out[:, :total].copy(),
        out_times[:, :total].copy(),
        out_diffs[:, :total].copy(),
    )
