"""Replaying one key's history through its evaluation times, so that no update is looked at for each of them.

One coordinate is swept, the others are a time's *tail*. Evaluation times are visited tail by tail, those of a tail in
order of the swept coordinate (a linear extension of the partial order). In such a pass an update joins the *tally* when
the sweep reaches its coordinate, if its tail is at or before the pass's; nothing leaves it. After the pass the tally is
taken back. Updates at or before the meet of all times still to come count for ever: they are *settled*, tallied before
a pass and never taken back, so that times along a chain cost no more than one pass.
The first or the last coordinate is swept, whichever leaves fewer tails: one at depth 1, four of 10⁴ epochs × 4 rounds.

    late    int64[depth + 1 + width, room]   updates not settled: time, rank of the value, diff; in order of the sweep
    tally   sums int64[width, ranks]; marks int64[2, …] count the non-zero ranks of each 64 and of each 4,096, so that
            the next non-zero rank is found without looking at all
    work    int64[4, room]                   numbers being sorted, evaluation times in order of visit, ranks of rows
    state   int64[3]                         first late update, first not yet reached, end

Cost: passes × late updates, and the sort of these.
Twins: kpg.testing.kernels_operators.accumulate and .correct are what a replay must equal.
"""

from kpg.kernels.compare_rows import ONE, ORDER, ZERO, at_most, sort_columns
from kpg.kernels.jit import jit

EVAL = 2  # lanes of `work`, after ORDER and SPARE
RANK = 3
LANES = 4
START, REACHED, END = 0, 1, 2  # fields of `state`
FIELDS = 3


@jit
def too_many(evals, rows, few):
    """Whether reading all rows for each evaluation time is more than a few reads, so that a replay is better."""
    return evals > 1 and evals * rows > few


@jit
def sizes(offsets, eval_offsets, key_lo, key_hi):
    """The most rows and the most evaluation times of any key that may have to be replayed."""
    rows = 0
    evals = 0
    for key in range(key_lo, key_hi):
        if eval_offsets[key + 1] - eval_offsets[key] > 1:
            rows = max(rows, offsets[key + 1] - offsets[key])
            evals = max(evals, eval_offsets[key + 1] - eval_offsets[key])
    return rows, evals


@jit
def is_zero(sums, rank):
    """Whether nothing is there of a value."""
    for w in range(sums.shape[0]):
        if sums[w, rank] != 0:
            return False
    return True


@jit
def add(sums, marks, rank, block, first, column, sign):
    """Add sign times the diff at a column of a block, its lanes from `first`, to a rank of the tally."""
    was = is_zero(sums, rank)
    for w in range(sums.shape[0]):
        sums[w, rank] += sign * block[first + w, column]
    step = (1 if was else 0) - (1 if is_zero(sums, rank) else 0)
    marks[0, rank >> 6] += step
    marks[1, rank >> 12] += step


@jit
def next_present(sums, marks, rank, ranks):
    """The first non-zero rank at or after `rank`, or `ranks`."""
    while rank < ranks:
        if marks[1, rank >> 12] == 0:
            rank = ((rank >> 12) + 1) << 12
        elif marks[0, rank >> 6] == 0:
            rank = ((rank >> 6) + 1) << 6
        elif is_zero(sums, rank):
            rank += 1
        else:
            return rank
    return ranks


@jit
def clear(sums, marks, ranks):
    """Make the first ranks of a tally empty."""
    for rank in range(ranks):
        for w in range(sums.shape[0]):
            sums[w, rank] = 0
        marks[0, rank >> 6] = 0
        marks[1, rank >> 12] = 0


@jit
def same_tail(times, i, j, swept):
    """Whether two times differ at most in the swept coordinate."""
    for d in range(times.shape[0]):
        if d != swept and times[d, i] != times[d, j]:
            return False
    return True


@jit
def count_tails(times, work, n, swept):
    """How many passes there are when n times are visited in the order of work[ORDER]."""
    tails = 1
    for i in range(1, n):
        if not same_tail(times, work[ORDER, i - 1], work[ORDER, i], swept):
            tails += 1
    return tails


@jit
def plan(times, lo, hi, meets, work):
    """Choose the coordinate to sweep, the last or the first; set the order of visit and the meets of what is to come.

    Column j of meets is the meet of the times visited from the j-th on.
    """
    n = hi - lo
    last = times.shape[0] - 1
    swept = last  # in this order they come already
    for i in range(n):
        work[ORDER, i] = lo + i
    tails = count_tails(times, work, n, swept)
    if tails * tails > n and last > 0:
        sort_columns(times, ONE, last + 1, work, n)  # stable: those of equal tail stay in order of the first coordinate
        if count_tails(times, work, n, ZERO) < tails:
            swept = ZERO
    for i in range(n):
        work[EVAL, i] = work[ORDER, i] if swept < last else lo + i
    for d in range(last + 1):
        least = times[d, work[EVAL, n - 1]]
        for i in range(n - 1, -1, -1):
            least = min(least, times[d, work[EVAL, i]])
            meets[d, i] = least
    return swept


@jit
def begin(times, diffs, lo, hi, meets, swept, late, work, sums, marks, state):
    """Start on rows lo to hi of one key: tally those that count at all evaluation times, line up the late ones."""
    depth = times.shape[0]
    n = ZERO
    for row in range(lo, hi):
        if at_most(times, row, meets, ZERO):
            add(sums, marks, work[RANK, row - lo], diffs, ZERO, row, ONE)
        else:
            work[ORDER, n] = row
            n += 1
    sort_columns(times, swept, swept + 1, work, n)
    for i in range(n):
        row = work[ORDER, i]
        for d in range(depth):
            late[d, i] = times[d, row]
        late[depth, i] = work[RANK, row - lo]
        for w in range(diffs.shape[0]):
            late[depth + 1 + w, i] = diffs[w, row]
    state[START] = 0
    state[REACHED] = 0
    state[END] = n


@jit
def settle(late, meets, j, swept, sums, marks, state):
    """Before a pass: tally the late updates at or before meet j for good."""
    depth = meets.shape[0]
    end = state[START]
    while end < state[END] and late[swept, end] <= meets[swept, j]:
        end += 1
    start = end
    for i in range(end - 1, state[START] - 1, -1):
        if at_most(late, i, meets, j):
            add(sums, marks, late[depth, i], late, depth + 1, i, ONE)
        else:
            start -= 1
            for lane in range(late.shape[0]):
                late[lane, start] = late[lane, i]
    state[START] = start
    state[REACHED] = start


@jit
def reach(late, times, t, swept, sums, marks, state):
    """Sweep on to time t of a pass."""
    depth = times.shape[0]
    i = state[REACHED]
    while i < state[END] and late[swept, i] <= times[swept, t]:
        if at_most(late, i, times, t):
            add(sums, marks, late[depth, i], late, depth + 1, i, ONE)
        i += 1
    state[REACHED] = i


@jit
def take_back(late, times, t, sums, marks, state):
    """After a pass whose last time was t: take back what it tallied."""
    depth = times.shape[0]
    for i in range(state[START], state[REACHED]):
        if at_most(late, i, times, t):
            add(sums, marks, late[depth, i], late, depth + 1, i, -ONE)


@jit
def line_up(made, lo, hi, times, swept, late, sums, marks, state):
    """After a pass: take back the corrections lo to hi it made (diff, rank, time), and line them up as late."""
    depth = times.shape[0]
    i = state[END] - 1
    at = state[END] + hi - lo - 1
    state[END] = at + 1
    for c in range(hi - 1, lo - 1, -1):
        add(sums, marks, made[1, c], made, ZERO, c, -ONE)
        while i >= state[START] and late[swept, i] > times[swept, made[2, c]]:
            for lane in range(late.shape[0]):
                late[lane, at] = late[lane, i]
            i -= 1
            at -= 1
        for d in range(depth):
            late[d, at] = times[d, made[2, c]]
        late[depth, at] = made[1, c]
        late[depth + 1, at] = made[0, c]
        at -= 1
