"""The times at which a key's output may change, and the first ones that must wait.

For one key let S be its seeds and G the times of S, of its input and of its output. The closure is

    C  =  { s joined with any subset of G  |  s in S }

`interesting` gives, per key, the times of C that are not beyond `upper`, sorted and distinct, and the *minimal* times
of C that are beyond it (kpg.operators.corrections says why these are enough).

How. All history is first joined with the meet of the seeds, which changes no join and makes most of it equal; most keys
are then plain, and done in one loop. The others' times are sorted and closed (kpg.kernels.join_closure says how, and what it
costs beside the sorting).

Results go into buffers of the caller; when one is full, the kernel says how far it got, and is called again from there.
Twin: kpg.testing.kernels_operators.interesting.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.compare_rows import ORDER, ZERO, at_most, equal, sort_columns, sorts_before
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.join_closure import FULL, SEED, emit_chain, put, sweep_firsts

NEVER = np.int64((1 << 63) - 1)
LANES = 3  # of `work`: ORDER, SPARE and SEED


@jit
def gather_history(times, lo, hi, floor, seeds, seed_lo, seed_hi, out, n):
    """Append the times not at or before floor, joined with it, to the n of out, unless a seed's or the one before."""
    depth = times.shape[0]
    for row in range(lo, hi):
        if at_most(times, row, floor, ZERO):
            continue
        for d in range(depth):
            out[d, n] = max(times[d, row], floor[d, 0])
        if n > 0 and equal(out, n - 1, out, n, depth):
            continue
        low = seed_lo
        high = seed_hi
        while low < high:
            middle = (low + high) >> 1
            if sorts_before(seeds, middle, out, n, ZERO, depth):
                low = middle + 1
            else:
                high = middle
        if low == seed_hi or not equal(seeds, low, out, n, depth):
            n += 1
    return n


@jit
def is_chain(times, lo, hi):
    """Whether each of the times lo to hi is at or before the next."""
    for i in range(lo + 1, hi):
        if not at_most(times, i - 1, times, i):
            return False
    return True


@jit
def sort_generators(times, n, work, out, seeds, lo, hi):
    """Sort n times into out, each once, and mark those that are seeds (columns lo to hi of seeds, sorted); how many."""
    depth = times.shape[0]
    for i in range(n):
        work[ORDER, i] = i
    sort_columns(times, ZERO, depth, work, n)
    kept = ZERO
    for i in range(n):
        put(times, work[ORDER, i], out, kept)
        if kept == 0 or not equal(out, kept - 1, out, kept, depth):
            work[SEED, kept] = 1 if lo < hi and equal(seeds, lo, out, kept, depth) else 0
            lo += work[SEED, kept]
            kept += 1
    return kept


@jit
def beyond_at(upper, times, i, last):
    """Whether time i, its last coordinate replaced, is at or after some element of upper."""
    depth = upper.shape[1]
    for k in range(upper.shape[0]):
        after = last >= upper[k, depth - 1]
        for d in range(depth - 1):
            after = after and times[d, i] >= upper[k, d]
        if after:
            return True
    return False


@jit
def plain_keys(key, evals, pending, seed_offsets, seed_times, input_offsets, input_times, output_offsets, output_times,
               upper, eval_offsets, eval_times, pending_offsets, pending_times):  # fmt: skip
    """Do keys from `key` on while they are plain, as most are; returns the first not done and the counts.

    Plain: one seed, and history that is after it, if at all, in the last coordinate only, and then beyond upper. The
    closure is the seed and these later rounds, a chain, and the first of them waits.
    A loop without calls, since a call would cost as much as the key.
    """
    depth = seed_times.shape[0]
    keys = seed_offsets.shape[0] - 1
    while key < keys and evals < eval_times.shape[1] and pending < pending_times.shape[1]:
        lo = seed_offsets[key]
        seeds = seed_offsets[key + 1] - lo
        if seeds > 1:
            break
        if seeds == 1:
            plain = True
            for d in range(depth - 1):
                seed = seed_times[d, lo]
                for row in range(input_offsets[key], input_offsets[key + 1]):
                    plain = plain and input_times[d, row] <= seed
                for row in range(output_offsets[key], output_offsets[key + 1]):
                    plain = plain and output_times[d, row] <= seed
            seed = seed_times[depth - 1, lo]
            later = NEVER
            for row in range(input_offsets[key], input_offsets[key + 1]):
                if input_times[depth - 1, row] > seed:
                    later = min(later, input_times[depth - 1, row])
            for row in range(output_offsets[key], output_offsets[key + 1]):
                if output_times[depth - 1, row] > seed:
                    later = min(later, output_times[depth - 1, row])
            waits = beyond_at(upper, seed_times, lo, seed)
            if not plain or (later != NEVER and not waits and not beyond_at(upper, seed_times, lo, later)):
                break
            for d in range(depth):  # what is not counted will be written over
                eval_times[d, evals] = seed_times[d, lo]
                pending_times[d, pending] = seed_times[d, lo]
            if not waits:
                evals += 1
                pending_times[depth - 1, pending] = later
            if waits or later != NEVER:
                pending += 1
        key += 1
        eval_offsets[key] = evals
        pending_offsets[key] = pending
    return key, evals, pending


@jit
def interesting(key, evals, pending, seed_offsets, seed_times, input_offsets, input_times, output_offsets, output_times,
                upper, eval_offsets, eval_times, pending_offsets, pending_times):  # fmt: skip
    """Fill, for keys from `key` on, the closure's times before upper and the minimal ones beyond it.

    Returns the first key not done, and how many times of either kind there are.
    """
    depth = seed_times.shape[0]
    keys = seed_offsets.shape[0] - 1
    most = 0
    for k in range(key, keys):
        size = seed_offsets[k + 1] - seed_offsets[k]
        size += input_offsets[k + 1] - input_offsets[k] + output_offsets[k + 1] - output_offsets[k]
        most = max(most, size)
    gathered = np.empty((depth, most + 1), np.int64)
    generators = np.empty((depth, most + 1), np.int64)
    work = np.empty((LANES, most + 1), np.int64)
    tails = np.empty((depth - 1, most + 1), np.int64)
    seeds = np.empty((depth - 1, most + 1), np.int64)
    floor = np.empty((depth, 1), np.int64)
    tail = np.empty((depth - 1, 1), np.int64)
    while key < keys:
        key, evals, pending = plain_keys(
            key, evals, pending, seed_offsets, seed_times, input_offsets, input_times, output_offsets, output_times,
            upper, eval_offsets, eval_times, pending_offsets, pending_times,
        )  # fmt: skip
        if key == keys:
            break
        lo = seed_offsets[key]
        hi = seed_offsets[key + 1]
        if lo < hi:
            for d in range(depth):
                least = seed_times[d, lo]
                for i in range(lo + 1, hi):
                    least = min(least, seed_times[d, i])
                floor[d, 0] = least
            n = gather_history(
                input_times, input_offsets[key], input_offsets[key + 1], floor, seed_times, lo, hi, gathered, ZERO
            )
            n = gather_history(
                output_times, output_offsets[key], output_offsets[key + 1], floor, seed_times, lo, hi, gathered, n
            )
            if evals + n + hi - lo > eval_times.shape[1] or pending == pending_times.shape[1]:
                return key, evals, pending
            if n == 0 and is_chain(seed_times, lo, hi):  # and nothing to join it with
                evals, pending = emit_chain(seed_times, lo, hi, upper, eval_times, evals, pending_times, pending)
            else:
                for i in range(lo, hi):
                    put(seed_times, i, gathered, n)
                    n += 1
                n = sort_generators(gathered, n, work, generators, seed_times, lo, hi)
                if depth == 1:
                    made, waits = emit_chain(generators, ZERO, n, upper, eval_times, evals, pending_times, pending)
                else:
                    made, waits = sweep_firsts(
                        generators, n, work, tails, seeds, upper, eval_times, evals, pending_times, pending, tail
                    )
                if made == FULL:
                    return key, evals, pending
                evals = made
                pending = waits
        key += 1
        eval_offsets[key] = evals
        pending_offsets[key] = pending
    return key, evals, pending


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield interesting, (
        NUMBER, NUMBER, NUMBER, COLUMN, TABLE, COLUMN, TABLE, COLUMN, TABLE, TABLE, COLUMN, TABLE, COLUMN, TABLE,
    )  # fmt: skip
