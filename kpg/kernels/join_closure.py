"""The closure of sorted times under join: emitted in order, those beyond `upper` left out but for the minimal ones.

    C  =  { s joined with any subset of G  |  s in S }        G sorted and distinct, S the seeds among them

First coordinates e are visited in order. The rest of a time, its tail, is in C at e iff it is a join of tails of G seen
so far that includes one at e and one of a seed: again a closure, with a coordinate less. Its seeds are the joins of a
tail at e with a seed's tail. With one coordinate left, a closure is all tails at or after the least seed.
Cost: depth 1 and 2 linear in generators and result; deeper, each time of the closure meets each distinct tail once, per
first coordinate. Only for kpg.kernels.interesting_times, whose twin and examples cover it.
"""

from kpg.kernels.compare_rows import ONE, ZERO, at_most
from kpg.kernels.jit import jit

FULL = -1  # a buffer of the caller has no room
SEED = 2  # a lane of `work`, after ORDER and SPARE: whether a generator is a seed


@jit
def beyond(upper, times, i):
    """Whether time i is at or after some element of upper (int64[k, depth])."""
    for k in range(upper.shape[0]):
        after = True
        for d in range(upper.shape[1]):
            after = after and times[d, i] >= upper[k, d]
        if after:
            return True
    return False


@jit
def put(from_times, i, times, n):
    """Write time i of one block as time n of another."""
    for d in range(times.shape[0]):
        times[d, n] = from_times[d, i]


@jit
def put_minimal(from_times, i, times, lo, n):
    """Append time i to times lo to n, an antichain in order, unless one of them is at or before it; the new n."""
    for k in range(lo, n):
        if at_most(times, k, from_times, i):
            return n
    put(from_times, i, times, n)
    return n + 1


@jit
def put_minimal_tail(tails, n, tail):
    """Keep an antichain: add a tail unless one of the n is at or before it, drop those after it; the new n."""
    kept = ZERO
    for k in range(n):
        if at_most(tails, k, tail, ZERO):
            return n
    for k in range(n):
        if not at_most(tail, ZERO, tails, k):
            put(tails, k, tails, kept)
            kept += 1
    put(tail, ZERO, tails, kept)
    return kept + 1


@jit
def insert_tail(tails, first, lo, n, tail):
    """Insert a tail (a column of its own) into the lanes from `first` of sorted distinct columns lo to n; the new n."""
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
    """Emit sorted times of a chain; the first beyond upper waits, and all later ones are after it."""
    for i in range(lo, hi):
        if beyond(upper, times, i):
            put(times, i, pending_times, pending)
            return evals, pending + 1
        put(times, i, eval_times, evals)
        evals += 1
    return evals, pending


@jit
def emit_rounds(first, least, tails, n, upper, eval_times, evals, pending_times, pending_lo, pending):
    """Depth 2, one first coordinate: emit all rounds from `least` on, up to the first beyond upper."""
    low = 0
    high = n
    while low < high:
        middle = (low + high) >> 1
        if tails[0, middle] < least:
            low = middle + 1
        else:
            high = middle
    for at in range(low, n):
        if evals == eval_times.shape[1]:
            return FULL, pending
        eval_times[0, evals] = first
        eval_times[1, evals] = tails[0, at]
        if beyond(upper, eval_times, evals):
            return evals, put_minimal(eval_times, evals, pending_times, pending_lo, pending)
        evals += 1
    return evals, pending


@jit
def emit_closure(n, tails, tail_count, upper, eval_times, evals, pending_times, pending_lo, pending, tail):
    """Deeper, one first coordinate: close the times evals to n under join with the tails, dropping those beyond upper.

    Times are visited in order while joins, which sort after, are inserted behind.
    """
    depth = eval_times.shape[0]
    i = evals
    while i < n:
        if pending == pending_times.shape[1]:
            return FULL, pending
        if beyond(upper, eval_times, i):
            pending = put_minimal(eval_times, i, pending_times, pending_lo, pending)
        else:
            put(eval_times, i, eval_times, evals)
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
def sweep_firsts(times, n, work, tails, seeds, upper, eval_times, evals, pending_times, pending, tail):
    """Emit the closure of n sorted generators of two or more coordinates, first coordinate by first coordinate."""
    rest = times.shape[0] - 1
    tail_count = ZERO
    seed_count = ZERO
    pending_lo = pending
    lo = 0
    while lo < n:
        hi = lo
        least = times[1, lo]
        while hi < n and times[0, hi] == times[0, lo]:
            for d in range(rest):
                tail[d, 0] = times[d + 1, hi]
            tail_count = insert_tail(tails, ZERO, ZERO, tail_count, tail)
            if work[SEED, hi] == 1:
                seed_count = put_minimal_tail(seeds, seed_count, tail)
            hi += 1
        if pending == pending_times.shape[1]:
            return FULL, pending
        if rest == 1 and seed_count > 0:
            evals, pending = emit_rounds(
                times[0, lo], max(least, seeds[0, 0]), tails, tail_count, upper,
                eval_times, evals, pending_times, pending_lo, pending,
            )  # fmt: skip
        elif rest > 1:
            count = evals
            for i in range(lo, hi):
                for s in range(seed_count):
                    if count == eval_times.shape[1]:
                        return FULL, pending
                    for d in range(rest):
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
