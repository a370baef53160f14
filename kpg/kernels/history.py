"""Replaying one key's history through sorted times, consolidating as it goes.

Evaluation times t_1 < t_2 < … are visited in lexicographic order. With m_i the meet of t_i and all after it, an update
at time u counts at some t ≥ m_i iff u joined with m_i does: so updates are kept joined with m_i, equal ones summed, and
those at or before m_i, which count from now on for ever, leave the list for a *tally*. What must be looked at for each
t_i is only the rest, the *held* updates: none at depth 1, about one per tail of a time at depth 2.

    held    int64[1 + depth, room]    rank of the value, then the time;   held_diffs  int64[width, room]
    tally   sums int64[width, ranks]; marks int64[2, …] count the non-zero ranks of each 64 and of each 4,096, so that the
            next non-zero rank is found without looking at all

`tidy` is due when held doubled, or was read so often that sorting it costs no more.
Twin: kpg.testing.kernels_operators (accumulate_totals, accumulate_rows, correct: what the replay must equal).
"""

from kpg.kernels.jit import jit
from kpg.kernels.ordering import sort_columns


@jit
def suffix_meets(times, lo, hi, meets):
    """meets[:, i] becomes the meet of times lo + i up to hi."""
    for d in range(times.shape[0]):
        least = times[d, hi - 1]
        for i in range(hi - 1, lo - 1, -1):
            least = min(least, times[d, i])
            meets[d, i - lo] = least


@jit
def settled(held, h, meets, i):
    """Whether held update h is at or before meet i."""
    for d in range(meets.shape[0]):
        if held[1 + d, h] > meets[d, i]:
            return False
    return True


@jit
def hold(held, held_diffs, n, rank, times, row, diffs, at, meets, i):
    """Append an update (time `row` of times joined with meet i, diff `at` of diffs) to the n held ones."""
    held[0, n] = rank
    for d in range(times.shape[0]):
        held[1 + d, n] = max(times[d, row], meets[d, i])
    for w in range(diffs.shape[0]):
        held_diffs[w, n] = diffs[w, at]


@jit
def tidy(held, held_diffs, n, meets, i, order, spare):
    """Join the n held updates with meet i, sort, sum equal ones, drop zeros; how many remain."""
    depth = meets.shape[0]
    width = held_diffs.shape[0]
    for h in range(n):
        order[h] = h
        for d in range(depth):
            held[1 + d, h] = max(held[1 + d, h], meets[d, i])
    sort_columns(held, order, n, spare)
    kept = 0
    permute(held, order, n, spare)
    permute(held_diffs, order, n, spare)
    h = 0
    while h < n:
        end = h + 1
        while end < n and equal_columns(held, h, end):
            for w in range(width):
                held_diffs[w, h] += held_diffs[w, end]
            end += 1
        zero = True
        for w in range(width):
            zero = zero and held_diffs[w, h] == 0
        if not zero:
            for lane in range(1 + depth):
                held[lane, kept] = held[lane, h]
            for w in range(width):
                held_diffs[w, kept] = held_diffs[w, h]
            kept += 1
        h = end
    return kept


@jit
def equal_columns(block, i, j):
    """Whether two columns are equal."""
    for lane in range(block.shape[0]):
        if block[lane, i] != block[lane, j]:
            return False
    return True


@jit
def permute(block, order, n, spare):
    """Put the first n columns of a block in the given order."""
    for lane in range(block.shape[0]):
        for i in range(n):
            spare[i] = block[lane, order[i]]
        for i in range(n):
            block[lane, i] = spare[i]


@jit
def due(n, after, reads):
    """Whether n held updates, `after` of them tidy and read `reads` times since, should be tidied."""
    return n > 2 * after + 16 or (n > 4 and reads > 16)


@jit
def is_zero(sums, rank):
    """Whether nothing is there of a value."""
    for w in range(sums.shape[0]):
        if sums[w, rank] != 0:
            return False
    return True


@jit
def add(sums, marks, rank, diffs, at, sign):
    """Add diff `at` times sign to a rank of the tally."""
    was = is_zero(sums, rank)
    for w in range(sums.shape[0]):
        sums[w, rank] += sign * diffs[w, at]
    now = is_zero(sums, rank)
    if was != now:
        step = 1 if was else -1
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
        else:
            end = min(ranks, ((rank >> 6) + 1) << 6)
            while rank < end:
                if not is_zero(sums, rank):
                    return rank
                rank += 1
    return ranks


@jit
def clear(sums, marks, ranks):
    """Make the first ranks of a tally empty."""
    for rank in range(ranks):
        for w in range(sums.shape[0]):
            sums[w, rank] = 0
    for block in range((ranks >> 6) + 1):
        marks[0, block] = 0
        marks[1, block >> 6] = 0


@jit
def settle(held, held_diffs, n, meets, i, sums, marks):
    """Move held updates at or before meet i into the tally; how many remain."""
    kept = 0
    for h in range(n):
        if settled(held, h, meets, i):
            add(sums, marks, held[0, h], held_diffs, h, 1)
        else:
            for lane in range(held.shape[0]):
                held[lane, kept] = held[lane, h]
            for w in range(held_diffs.shape[0]):
                held_diffs[w, kept] = held_diffs[w, h]
            kept += 1
    return kept


@jit
def count_held(held, held_diffs, n, times, i, sums, marks, sign):
    """Add (or take back) the held updates at or before time i to the tally."""
    depth = times.shape[0]
    for h in range(n):
        counts = True
        for d in range(depth):
            if held[1 + d, h] > times[d, i]:
                counts = False
                break
        if counts:
            add(sums, marks, held[0, h], held_diffs, h, sign)
