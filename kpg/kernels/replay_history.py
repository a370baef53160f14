"""Replay one key's history through its evaluation times, so that an update is not read once per evaluation time.

The kernel sweeps one coordinate of the times; the other coordinates of a time are its *tail*. It makes one pass for
each tail. In a pass it visits the evaluation times with that tail, in order of the swept coordinate. The order of all
visits is a linear extension of the partial order. In a pass, an update enters the *tally* when the sweep reaches its
coordinate, if its tail is at or before that of the pass. No update leaves the tally during the pass; after it, the
kernel removes them. Updates at or before the meet of all remaining times are *settled*: they enter the tally before a
pass and stay, so that times along a chain cost no more than one pass. The kernel sweeps the first or the last
coordinate, choosing the one with fewer tails: one tail at depth 1, four for 10⁴ epochs × 4 rounds.

    unsettled   int64[depth + 1 + width, n]   updates not settled: time, rank of the value, diff; in order of the sweep
    tally       sums int64[width, ranks]; nonzero_counts int64[2, …] counts the nonzero ranks of each 64 and each 4,096,
                so that finding the next nonzero rank skips the others
    work        int64[4, n]                   numbers being sorted, evaluation times in order of visit, ranks of rows
    state       int64[3]                      first unsettled update, first not yet reached, end

Cost: passes × unsettled updates, and their sort.
Twins: kpg.testing.kernel_twins.evaluate_output_twin; a replay must equal `evaluate_output` and `correct_output`.
"""

from kpg.kernels.compare_rows import ONE, ORDER, ZERO, less_equal, sort_columns
from kpg.kernels.jit import jit

EVAL = 2  # a lane of `work`, after ORDER and SPARE: the evaluation times in order of visit
RANK = 3  # a lane of `work`: the ranks of rows
LANES = 4  # lanes of `work`
START, REACHED, END = 0, 1, 2  # fields of `state`
FIELDS = 3  # fields of `state`


@jit
def replay_is_cheaper(evals, rows, max_reads):
    """Return whether reading all rows for each evaluation time takes more than `max_reads` reads."""
    return evals > 1 and evals * rows > max_reads


@jit
def largest_sizes(offsets, eval_offsets, key_lo, key_hi):
    """Return the maximum number of rows, and of evaluation times, of a key that may have to be replayed."""
    rows = 0
    evals = 0
    for key in range(key_lo, key_hi):
        if eval_offsets[key + 1] - eval_offsets[key] > 1:
            rows = max(rows, offsets[key + 1] - offsets[key])
            evals = max(evals, eval_offsets[key + 1] - eval_offsets[key])
    return rows, evals


@jit
def is_zero(sums, rank):
    """Return whether the tally of a rank is zero."""
    for w in range(sums.shape[0]):
        if sums[w, rank] != 0:
            return False
    return True


@jit
def add_diff(sums, nonzero_counts, rank, block, first, column, sign):
    """Add sign times the diff at a column of a block, its lanes from `first`, to a rank of the tally."""
    was = is_zero(sums, rank)
    for w in range(sums.shape[0]):
        sums[w, rank] += sign * block[first + w, column]
    step = (1 if was else 0) - (1 if is_zero(sums, rank) else 0)
    nonzero_counts[0, rank >> 6] += step
    nonzero_counts[1, rank >> 12] += step


@jit
def next_nonzero(sums, nonzero_counts, rank, ranks):
    """Return the first nonzero rank at or after `rank`, or `ranks`."""
    while rank < ranks:
        if nonzero_counts[1, rank >> 12] == 0:
            rank = ((rank >> 12) + 1) << 12
        elif nonzero_counts[0, rank >> 6] == 0:
            rank = ((rank >> 6) + 1) << 6
        elif is_zero(sums, rank):
            rank += 1
        else:
            return rank
    return ranks


@jit
def clear_tally(sums, nonzero_counts, ranks):
    """Set the first ranks of a tally to zero."""
    for rank in range(ranks):
        for w in range(sums.shape[0]):
            sums[w, rank] = 0
        nonzero_counts[0, rank >> 6] = 0
        nonzero_counts[1, rank >> 12] = 0


@jit
def same_tail(times, i, j, swept):
    """Return whether two times differ at most in the swept coordinate."""
    for d in range(times.shape[0]):
        if d != swept and times[d, i] != times[d, j]:
            return False
    return True


@jit
def count_tails(times, work, n, swept):
    """Return the number of passes that visiting n times in the order of work[ORDER] takes."""
    tails = 1
    for i in range(1, n):
        if not same_tail(times, work[ORDER, i - 1], work[ORDER, i], swept):
            tails += 1
    return tails


@jit
def plan_passes(times, lo, hi, meets, work):
    """Choose the coordinate to sweep, the last or the first; write the order of visit and the meets of remaining times.

    Column j of meets is the meet of the times visited from the j-th on. Return the swept coordinate.
    """
    n = hi - lo
    last = times.shape[0] - 1
    swept = last  # the times are sorted in this order already
    for i in range(n):
        work[ORDER, i] = lo + i
    tails = count_tails(times, work, n, swept)
    if tails * tails > n and last > 0:
        sort_columns(times, ONE, last + 1, work, n)  # stable: times of equal tail stay in order
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
def begin_replay(times, diffs, lo, hi, meets, swept, unsettled, work, sums, nonzero_counts, state):
    """Begin with rows lo to hi of one key: tally those at or before all evaluation times, and queue the others."""
    depth = times.shape[0]
    n = ZERO
    for row in range(lo, hi):
        if less_equal(times, row, meets, ZERO):
            add_diff(sums, nonzero_counts, work[RANK, row - lo], diffs, ZERO, row, ONE)
        else:
            work[ORDER, n] = row
            n += 1
    sort_columns(times, swept, swept + 1, work, n)
    for i in range(n):
        row = work[ORDER, i]
        for d in range(depth):
            unsettled[d, i] = times[d, row]
        unsettled[depth, i] = work[RANK, row - lo]
        for w in range(diffs.shape[0]):
            unsettled[depth + 1 + w, i] = diffs[w, row]
    state[START] = 0
    state[REACHED] = 0
    state[END] = n


@jit
def settle_updates(unsettled, meets, j, swept, sums, nonzero_counts, state):
    """Settle, before a pass, the updates at or before meet j: add them to the tally, where they stay."""
    depth = meets.shape[0]
    end = state[START]
    while end < state[END] and unsettled[swept, end] <= meets[swept, j]:
        end += 1
    start = end
    for i in range(end - 1, state[START] - 1, -1):
        if less_equal(unsettled, i, meets, j):
            add_diff(sums, nonzero_counts, unsettled[depth, i], unsettled, depth + 1, i, ONE)
        else:
            start -= 1
            for lane in range(unsettled.shape[0]):
                unsettled[lane, start] = unsettled[lane, i]
    state[START] = start
    state[REACHED] = start


@jit
def sweep_to(unsettled, times, t, swept, sums, nonzero_counts, state):
    """Advance the sweep of a pass to time t."""
    depth = times.shape[0]
    i = state[REACHED]
    while i < state[END] and unsettled[swept, i] <= times[swept, t]:
        if less_equal(unsettled, i, times, t):
            add_diff(sums, nonzero_counts, unsettled[depth, i], unsettled, depth + 1, i, ONE)
        i += 1
    state[REACHED] = i


@jit
def undo_pass(unsettled, times, t, sums, nonzero_counts, state):
    """Remove the updates of a pass, which ended with time t, from the tally."""
    depth = times.shape[0]
    for i in range(state[START], state[REACHED]):
        if less_equal(unsettled, i, times, t):
            add_diff(sums, nonzero_counts, unsettled[depth, i], unsettled, depth + 1, i, -ONE)


@jit
def queue_corrections(corrections, lo, hi, times, swept, unsettled, sums, nonzero_counts, state):
    """Remove the corrections lo to hi (diff, rank, time) of a pass from the tally, and queue them as unsettled."""
    depth = times.shape[0]
    i = state[END] - 1
    position = state[END] + hi - lo - 1
    state[END] = position + 1
    for c in range(hi - 1, lo - 1, -1):
        add_diff(sums, nonzero_counts, corrections[1, c], corrections, ZERO, c, -ONE)
        while i >= state[START] and unsettled[swept, i] > times[swept, corrections[2, c]]:
            for lane in range(unsettled.shape[0]):
                unsettled[lane, position] = unsettled[lane, i]
            i -= 1
            position -= 1
        for d in range(depth):
            unsettled[d, position] = times[d, corrections[2, c]]
        unsettled[depth, position] = corrections[1, c]
        unsettled[depth + 1, position] = corrections[0, c]
        position -= 1
