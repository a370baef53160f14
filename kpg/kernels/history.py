"""Replaying one key's history through sorted times, consolidating as it goes.

Evaluation times t_1, t_2, … are visited in lexicographic order. With m_i the meet of t_i and all after it, an update
at time u counts at a time t ≥ m_i iff u joined with m_i does. So updates are kept joined with m_i, equal ones summed,
and those at or before m_i, which count from now on for ever, leave the list for a *tally*. To be looked at for each t_i
are only the rest, the *held* updates: none at depth 1, about one per value and round at depth 2.

    held    int64[1 + depth + width, room]   the rank of the value among the key's values, the time, the diff
    tally   sums int64[width, ranks]; marks int64[2, …] count the non-zero ranks of each 64 and of each 4,096, so that
            the next non-zero rank is found without looking at all
    work    int64[4, room]                   column numbers being sorted, late rows in order of time, ranks of rows
    state   int64[5]                         how far the replay is

Held updates are tidied when they doubled, or were read so often that sorting them costs no more.
Twins: kpg.testing.kernels_operators.accumulate and .correct are what a replay must equal.
"""

from kpg.kernels.jit import jit
from kpg.kernels.ordering import ONE, ORDER, SPARE, ZERO, at_most, equal, sort_columns, sorts_before

LATE = 2  # lanes of `work`, after ORDER and SPARE
RANK = 3
LANES = 4
LATES, TAKEN, HELD, TIDY, READS = 0, 1, 2, 3, 4  # fields of `state`; TIDY: how many were held after tidying last
FIELDS = 5


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
def suffix_meets(times, lo, hi, meets):
    """Column i of meets becomes the meet of times lo + i up to hi."""
    for d in range(times.shape[0]):
        least = times[d, hi - 1]
        for i in range(hi - 1, lo - 1, -1):
            least = min(least, times[d, i])
            meets[d, i - lo] = least


@jit
def keep(rank, times, row, block, column, meets, i, held, n, sums, marks):
    """Tally an update if it counts from meet i on, else hold it as one more than n; how many are held then."""
    if at_most(times, row, meets, i):
        add(sums, marks, rank, block, ZERO, column, ONE)
        return n
    depth = meets.shape[0]
    held[0, n] = rank
    for d in range(depth):
        held[1 + d, n] = max(times[d, row], meets[d, i])
    for w in range(sums.shape[0]):
        held[1 + depth + w, n] = block[w, column]
    return n + 1


@jit
def begin(times, diffs, lo, hi, meets, work, sums, marks, state):
    """Start on rows lo to hi of one key: tally those that count at all evaluation times, sort the late ones."""
    late = ZERO
    for row in range(lo, hi):
        if at_most(times, row, meets, ZERO):
            add(sums, marks, work[RANK, row - lo], diffs, ZERO, row, ONE)
        else:
            work[ORDER, late] = row
            late += 1
    sort_columns(times, times.shape[0], work, late)
    for i in range(late):
        work[LATE, i] = work[ORDER, i]
    state[:] = 0
    state[LATES] = late


@jit
def advance(times, diffs, lo, eval_times, t, meets, i, held, work, sums, marks, state):
    """Go on to evaluation time t, whose meet with those after it is number i."""
    n = state[HELD]
    taken = state[TAKEN]
    while taken < state[LATES] and not sorts_before(eval_times, t, times, work[LATE, taken], times.shape[0]):
        row = work[LATE, taken]
        n = keep(work[RANK, row - lo], times, row, diffs, row, meets, i, held, n, sums, marks)
        taken += 1
    if n > 2 * state[TIDY] + 16 or (n > 4 and state[READS] > 16):
        n = tidy(held, n, meets, i, work, sums, marks)
        state[TIDY] = n
        state[READS] = 0
    state[READS] += 1
    state[HELD] = n
    state[TAKEN] = taken


@jit
def tidy(held, n, meets, i, work, sums, marks):
    """Join the n held updates with meet i, sum equal ones, tally those that count from now on; how many remain."""
    depth = meets.shape[0]
    lanes = held.shape[0]
    for h in range(n):
        work[ORDER, h] = h
        for d in range(depth):
            held[1 + d, h] = max(held[1 + d, h], meets[d, i])
    sort_columns(held, 1 + depth, work, n)
    for lane in range(lanes):
        for h in range(n):
            work[SPARE, h] = held[lane, work[ORDER, h]]
        for h in range(n):
            held[lane, h] = work[SPARE, h]
    kept = ZERO
    h = ZERO
    while h < n:
        zero = True
        end = h + 1
        while end < n and equal(held, h, held, end, 1 + depth):
            end += 1
        for lane in range(1 + depth):
            held[lane, kept] = held[lane, h]
        for lane in range(1 + depth, lanes):
            total = held[lane, h]
            for k in range(h + 1, end):
                total += held[lane, k]
            held[lane, kept] = total
            zero = zero and total == 0
        waits = False
        for d in range(depth):
            waits = waits or held[1 + d, kept] > meets[d, i]
        if waits and not zero:
            kept += 1
        elif not zero:
            add(sums, marks, held[0, kept], held, 1 + depth, kept, ONE)
        h = end
    return kept


@jit
def count_held(held, n, times, t, sums, marks, sign):
    """Add (or take back) the held updates at or before time t to the tally."""
    depth = times.shape[0]
    for h in range(n):
        counts = True
        for d in range(depth):
            counts = counts and held[1 + d, h] <= times[d, t]
        if counts:
            add(sums, marks, held[0, h], held, 1 + depth, h, sign)
