"""The times at which a key's output may change, and the first ones that must wait.

For one key let S be its seeds and G the times of S, of its input and of its output. The closure is

    C  =  { s joined with any subset of G  |  s in S }

`interesting` gives, per key, the times of C that are not beyond `upper`, sorted and distinct, and the *minimal* times of C
that are beyond it. The minimal ones are enough (see kpg.operators.replay).

How. All history is first joined with the meet of the seeds, which changes no join and makes most of it equal. Then first
coordinates e are visited in order. The rest of a time, its tail, is in C at e iff it is a join of tails of G seen so far
that includes one at e and one of a seed: again a closure, with one coordinate less. Its seeds are the minimal joins of a
tail at e with a seed's tail. With one coordinate left the closure is all tails at or after the least seed.
Cost: depth 1 and 2 linear in history and output (after sorting the distinct advanced times); deeper, each time of the
closure meets each distinct tail once, per first coordinate.
Twin: kpg.testing.kernels_operators.interesting.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.ordering import at_most, grow, sort_columns


@jit
def beyond(upper, times, i):
    """Whether time i is at or after some element of upper (int64[k, depth])."""
    for k in range(upper.shape[0]):
        after = True
        for d in range(upper.shape[1]):
            if times[d, i] < upper[k, d]:
                after = False
                break
        if after:
            return True
    return False


@jit
def advance_history(times, lo, hi, floor, out, n):
    """Append the times not at or before floor, joined with it, to out; skips runs of equal ones."""
    depth = times.shape[0]
    for row in range(lo, hi):
        new = False
        for d in range(depth):
            if times[d, row] > floor[d, 0]:
                new = True
                break
        if not new:
            continue
        same = n > 0
        for d in range(depth):
            out[d, n] = max(times[d, row], floor[d, 0])
            same = same and out[d, n] == out[d, n - 1]
        if not same:
            n += 1
    return n


@jit
def insert_minimal(kept, n, times, i):
    """Keep an antichain: add column i of times to the first n of kept unless one is at or before it; drop those after."""
    depth = kept.shape[0]
    for k in range(n):
        if at_most(kept, k, times, i):
            return n
    m = 0
    for k in range(n):
        if not at_most(times, i, kept, k):
            for d in range(depth):
                kept[d, m] = kept[d, k]
            m += 1
    for d in range(depth):
        kept[d, m] = times[d, i]
    return m + 1


@jit
def place(sorted_block, n, block, i):
    """Where column i of block belongs among n sorted columns, and whether it is there."""
    lo = 0
    hi = n
    while lo < hi:
        middle = (lo + hi) >> 1
        less = False
        equal = True
        for d in range(block.shape[0]):
            if sorted_block[d, middle] != block[d, i]:
                less = sorted_block[d, middle] < block[d, i]
                equal = False
                break
        if equal:
            return middle, True
        if less:
            lo = middle + 1
        else:
            hi = middle
    return lo, False


@jit
def insert_sorted(sorted_block, n, block, i):
    """Insert column i of block among n sorted distinct columns, unless there; how many there are then."""
    at, there = place(sorted_block, n, block, i)
    if there:
        return n
    for d in range(block.shape[0]):
        for k in range(n, at, -1):
            sorted_block[d, k] = sorted_block[d, k - 1]
        sorted_block[d, at] = block[d, i]
    return n + 1


@jit
def distinct_generators(times, n, order, spare, out, seeds, lo, hi, from_seed):
    """Sort n times into out, each once, marking those that are seeds (columns lo to hi of seeds, sorted)."""
    for i in range(n):
        order[i] = i
    sort_columns(times, order, n, spare)
    kept = 0
    at = lo
    for i in range(n):
        column = order[i]
        same = kept > 0
        for d in range(times.shape[0]):
            out[d, kept] = times[d, column]
            same = same and out[d, kept] == out[d, kept - 1]
        if same:
            continue
        from_seed[kept] = 0
        if at < hi:
            equal = True
            for d in range(times.shape[0]):
                equal = equal and seeds[d, at] == out[d, kept]
            if equal:
                from_seed[kept] = 1
                at += 1
        kept += 1
    return kept


@jit
def close_tails(first, starts, count, tails, n, upper, found, eval_times, evals, pending, waiting):
    """Emit the closure of `count` starting tails under n tails, at one first coordinate; stop at what is beyond upper."""
    depth = eval_times.shape[0]
    time = np.empty((depth, 1), np.int64)
    time[0, 0] = first
    tail = np.empty((depth - 1, 1), np.int64)
    size = 0
    for s in range(count):
        if size == found.shape[1]:
            found = grow(found, size)
        size = insert_sorted(found, size, starts, s)
    i = 0
    while i < size:
        for d in range(depth - 1):
            time[d + 1, 0] = found[d, i]
        if beyond(upper, time, 0):
            if waiting == pending.shape[1]:
                pending = grow(pending, waiting)
            waiting = insert_minimal(pending, waiting, time, 0)
        else:
            if evals == eval_times.shape[1]:
                eval_times = grow(eval_times, evals)
            for d in range(depth):
                eval_times[d, evals] = time[d, 0]
            evals += 1
            for g in range(n):
                if not at_most(tails, g, found, i):
                    for d in range(depth - 1):
                        tail[d, 0] = max(tails[d, g], found[d, i])
                    if size == found.shape[1]:
                        found = grow(found, size)
                    size = insert_sorted(found, size, tail, 0)
        i += 1
    return found, eval_times, evals, pending, waiting


@jit
def emit_chain(times, lo, hi, upper, eval_times, evals, waiting_times):
    """Emit sorted times of a chain; the first beyond upper waits, and all later ones are after it."""
    for i in range(lo, hi):
        if beyond(upper, times, i):
            for d in range(times.shape[0]):
                waiting_times[d, 0] = times[d, i]
            return eval_times, evals, 1
        if evals == eval_times.shape[1]:
            eval_times = grow(eval_times, evals)
        for d in range(times.shape[0]):
            eval_times[d, evals] = times[d, i]
        evals += 1
    return eval_times, evals, 0


@jit
def sweep_firsts(times, from_seed, n, upper, found, eval_times, evals, pending, waiting):
    """Emit the closure of n sorted generators of two or more coordinates, first coordinate by first coordinate."""
    depth = times.shape[0]
    tails = np.empty((depth - 1, n + 1), np.int64)  # sorted distinct tails of all seen
    seeds = np.empty((depth - 1, n + 1), np.int64)  # minimal tails of the seeds seen
    starts = np.empty((depth - 1, 16), np.int64)
    own = times[1:].copy()
    start = np.empty((depth - 1, 1), np.int64)
    tail_count = 0
    seed_count = 0
    lo = 0
    while lo < n:
        hi = lo
        while hi < n and times[0, hi] == times[0, lo]:
            tail_count = insert_sorted(tails, tail_count, own, hi)
            if from_seed[hi] == 1:
                seed_count = insert_minimal(seeds, seed_count, own, hi)
            hi += 1
        count = 0
        for i in range(lo, hi):
            for s in range(seed_count):
                for d in range(depth - 1):
                    start[d, 0] = max(own[d, i], seeds[d, s])
                if count == starts.shape[1]:
                    starts = grow(starts, count)
                count = insert_minimal(starts, count, start, 0)
        if depth > 2:
            found, eval_times, evals, pending, waiting = close_tails(
                times[0, lo], starts, count, tails, tail_count, upper, found, eval_times, evals, pending, waiting
            )
        elif count > 0:
            at, _ = place(tails, tail_count, starts, 0)
            while at < tail_count:
                if evals == eval_times.shape[1]:
                    eval_times = grow(eval_times, evals)
                eval_times[0, evals] = times[0, lo]
                eval_times[1, evals] = tails[0, at]
                if beyond(upper, eval_times, evals):  # so are all later tails, and they are not minimal
                    if waiting == pending.shape[1]:
                        pending = grow(pending, waiting)
                    waiting = insert_minimal(pending, waiting, eval_times, evals)
                    break
                evals += 1
                at += 1
        lo = hi
    return found, eval_times, evals, pending, waiting


@jit
def interesting(seed_offsets, seed_times, input_offsets, input_times, output_offsets, output_times, upper):
    """Per key the closure's times before upper and the minimal ones beyond: (offsets, times) twice."""
    depth = seed_times.shape[0]
    keys = seed_offsets.shape[0] - 1
    eval_offsets = np.zeros(keys + 1, np.int64)
    eval_times = np.empty((depth, seed_times.shape[1] + 16), np.int64)
    evals = 0
    pending_offsets = np.zeros(keys + 1, np.int64)
    pending_times = np.empty((depth, 16), np.int64)
    pendings = 0
    most = 0
    for key in range(keys):
        size = seed_offsets[key + 1] - seed_offsets[key]
        size += input_offsets[key + 1] - input_offsets[key] + output_offsets[key + 1] - output_offsets[key]
        most = max(most, size)
    gathered = np.empty((depth, most + 1), np.int64)
    generators = np.empty((depth, most + 1), np.int64)
    from_seed = np.empty(most + 1, np.int64)
    order = np.empty(most, np.int64)
    spare = np.empty(most, np.int64)
    found = np.empty((max(depth - 1, 1), 16), np.int64)
    waiting_times = np.empty((depth, 16), np.int64)
    floor = np.empty((depth, 1), np.int64)
    for key in range(keys):
        lo = seed_offsets[key]
        hi = seed_offsets[key + 1]
        waiting = 0
        if lo < hi:
            for d in range(depth):
                least = seed_times[d, lo]
                for i in range(lo + 1, hi):
                    least = min(least, seed_times[d, i])
                floor[d, 0] = least
            n = advance_history(input_times, input_offsets[key], input_offsets[key + 1], floor, gathered, 0)
            n = advance_history(output_times, output_offsets[key], output_offsets[key + 1], floor, gathered, n)
            if n == 0 and (depth == 1 or hi - lo == 1):  # a chain, and nothing to join it with
                eval_times, evals, waiting = emit_chain(seed_times, lo, hi, upper, eval_times, evals, waiting_times)
            else:
                for i in range(lo, hi):
                    for d in range(depth):
                        gathered[d, n] = seed_times[d, i]
                    n += 1
                n = distinct_generators(gathered, n, order, spare, generators, seed_times, lo, hi, from_seed)
                if depth == 1:
                    eval_times, evals, waiting = emit_chain(generators, 0, n, upper, eval_times, evals, waiting_times)
                else:
                    found, eval_times, evals, waiting_times, waiting = sweep_firsts(
                        generators, from_seed, n, upper, found, eval_times, evals, waiting_times, waiting
                    )
        eval_offsets[key + 1] = evals
        for i in range(waiting):
            if pendings == pending_times.shape[1]:
                pending_times = grow(pending_times, pendings)
            for d in range(depth):
                pending_times[d, pendings] = waiting_times[d, i]  # sorted: the closure is emitted in order
            pendings += 1
        pending_offsets[key + 1] = pendings
    return eval_offsets, eval_times[:, :evals].copy(), pending_offsets, pending_times[:, :pendings].copy()


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield interesting, (COLUMN, TABLE, COLUMN, TABLE, COLUMN, TABLE, TABLE)
