"""Close sorted times under join, and emit them in order; of the times beyond `upper`, emit only the minimal ones.

    C  =  { s joined with any subset of G  |  s in S }        G sorted and distinct, S the seeds among them

The kernel visits the first coordinates e of G (the *generators*) in order. The other coordinates of a time are its
*tail*. A time with first coordinate e is in C iff its tail is a join of tails that the kernel has visited so far, at
least one of them at e and at least one of a seed. So the tails at e are a closure with one coordinate less; its seeds
are the joins of a tail at e with the tail of a seed. With one coordinate, a closure is all tails at or after the least
seed. Cost: at depth 1 and 2 linear in generators and result. At greater depth, each time of the closure is joined with
each distinct tail once per first coordinate. Only kpg.kernels.interesting_times uses this module; its twin and examples
cover it.
"""

from kpg.kernels.compare_rows import ONE, ZERO, less_equal
from kpg.kernels.jit import jit

FULL = -1  # returned if a buffer of the caller is full
SEED = 2  # a lane of `work`, after ORDER and SPARE: whether a generator is a seed


@jit
def is_beyond(upper, times, i):
    """Return whether time i is at or after some element of upper (int64[k, depth])."""
    for k in range(upper.shape[0]):
        after = True
        for d in range(upper.shape[1]):
            after = after and times[d, i] >= upper[k, d]
        if after:
            return True
    return False


@jit
def copy_time(from_times, i, times, n):
    """Write time i of one block as time n of another."""
    for d in range(times.shape[0]):
        times[d, n] = from_times[d, i]


@jit
def append_minimal(from_times, i, times, lo, n):
    """Append time i to times lo to n, a sorted antichain, unless one of them is at or before it; return the new n."""
    for k in range(lo, n):
        if less_equal(times, k, from_times, i):
            return n
    copy_time(from_times, i, times, n)
    return n + 1


@jit
def insert_minimal_tail(tails, n, tail):
    """Insert a tail into an antichain of n unless one is at or before it; drop those after it; return the new n."""
    kept = ZERO
    for k in range(n):
        if less_equal(tails, k, tail, ZERO):
            return n
    for k in range(n):
        if not less_equal(tail, ZERO, tails, k):
            copy_time(tails, k, tails, kept)
            kept += 1
    copy_time(tail, ZERO, tails, kept)
    return kept + 1


@jit
def insert_tail(tails, first, lo, n, tail):
    """Insert a tail (one column) into the lanes from `first` of sorted distinct columns lo to n; return the new n."""
    lanes = tail.shape[0]
    low = lo
    high = n
    while low < high:
        middle = (low + high) >> 1
        order = 0
        for d in range(lanes):
            if order == 0:
                order = (1 if tails[first + d, middle] > tail[d, 0] else 0) - (
                    1 if tails[first + d, middle] < tail[d, 0] else 0
                )
        if order == 0:
            return n
        if order < 0:
            low = middle + 1
        else:
            high = middle
    for d in range(lanes):
        for k in range(n, low, -1):
            tails[first + d, k] = tails[first + d, k - 1]
        tails[first + d, low] = tail[d, 0]
    return n + 1


@jit
def emit_chain(times, lo, hi, upper, eval_times, evals, pending_times, pending):
    """Emit sorted times of a chain; the first beyond upper is pending, and all later ones are after it."""
    for i in range(lo, hi):
        if is_beyond(upper, times, i):
            copy_time(times, i, pending_times, pending)
            return evals, pending + 1
        copy_time(times, i, eval_times, evals)
        evals += 1
    return evals, pending


@jit
def emit_rounds(first, least, tails, n, upper, eval_times, evals, pending_times, pending_lo, pending):
    """Emit, at depth 2 and for one first coordinate, all rounds from `least` on, up to the first beyond upper."""
    low = 0
    high = n
    while low < high:
        middle = (low + high) >> 1
        if tails[0, middle] < least:
            low = middle + 1
        else:
            high = middle
    for round_ in range(low, n):
        if evals == eval_times.shape[1]:
            return FULL, pending
        eval_times[0, evals] = first
        eval_times[1, evals] = tails[0, round_]
        if is_beyond(upper, eval_times, evals):
            return evals, append_minimal(eval_times, evals, pending_times, pending_lo, pending)
        evals += 1
    return evals, pending


@jit
def emit_closure(n, tails, tail_count, upper, eval_times, evals, pending_times, pending_lo, pending, tail):
    """At greater depth, for one first coordinate: close the times evals to n under join with the tails.

    Times beyond upper are dropped. Times are visited in order, while joins, which sort after, are inserted behind.
    """
    depth = eval_times.shape[0]
    i = evals
    while i < n:
        if pending == pending_times.shape[1]:
            return FULL, pending
        if is_beyond(upper, eval_times, i):
            pending = append_minimal(eval_times, i, pending_times, pending_lo, pending)
        else:
            copy_time(eval_times, i, eval_times, evals)
            evals += 1
            for g in range(tail_count):
                after = True
                for d in range(depth - 1):
                    tail[d, 0] = max(tails[d, g], eval_times[d + 1, i])
                    after = after and tail[d, 0] == eval_times[d + 1, i]
                if not after:
                    if n == eval_times.shape[1]:
                        return FULL, pending
                    eval_times[0, n] = eval_times[0, i]
                    n = insert_tail(eval_times, ONE, i + 1, n, tail)
        i += 1
    return evals, pending


@jit
def emit_by_first_coordinate(times, n, work, tails, seeds, upper, eval_times, evals, pending_times, pending, tail):
    """Emit the closure of n sorted generators of two or more coordinates, by first coordinate."""
    tail_lanes = times.shape[0] - 1
    tail_count = ZERO
    seed_count = ZERO
    pending_lo = pending
    lo = 0
    while lo < n:
        hi = lo
        least = times[1, lo]
        while hi < n and times[0, hi] == times[0, lo]:
            for d in range(tail_lanes):
                tail[d, 0] = times[d + 1, hi]
            tail_count = insert_tail(tails, ZERO, ZERO, tail_count, tail)
            if work[SEED, hi] == 1:
                seed_count = insert_minimal_tail(seeds, seed_count, tail)
            hi += 1
        if pending == pending_times.shape[1]:
            return FULL, pending
        if tail_lanes == 1 and seed_count > 0:
            evals, pending = emit_rounds(
                times[0, lo], max(least, seeds[0, 0]), tails, tail_count, upper,
                eval_times, evals, pending_times, pending_lo, pending,
            )  # fmt: skip
        elif tail_lanes > 1:
            count = evals
            for i in range(lo, hi):
                for s in range(seed_count):
                    if count == eval_times.shape[1]:
                        return FULL, pending
                    for d in range(tail_lanes):
                        tail[d, 0] = max(times[d + 1, i], seeds[d, s])
                    eval_times[0, count] = times[0, lo]
                    count = insert_tail(eval_times, ONE, evals, count, tail)
            evals, pending = emit_closure(
                count, tails, tail_count, upper, eval_times, evals, pending_times, pending_lo, pending, tail
            )
        if evals == FULL:
            return FULL, pending
        lo = hi
    return evals, pending
