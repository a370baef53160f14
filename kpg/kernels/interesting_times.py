"""Find the times at which a key's output may change: all that are complete, and the minimal ones that must wait.

For one key let S be its seeds and G the times of S, of its input and of its output. The closure is

    C  =  { s joined with any subset of G  |  s in S }

`find_interesting_times` returns, per key, the times of C that are not beyond `upper`, sorted and distinct, and the
*minimal* times of C that are beyond it (kpg.operators.corrections says why these are enough).

How. The kernel first joins all history with the meet of the seeds. This changes no join and makes most times equal, so
most keys are *plain* (see `emit_plain_keys`) and take one loop. For the other keys it sorts the times and closes them
under join; kpg.kernels.join_closure describes the algorithm and its cost.

The caller provides the buffers. When one is full, the kernel returns the position it has reached, and the caller calls
it again from that position. Twin: kpg.testing.kernel_twins.interesting_times_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.compare_rows import ORDER, ZERO, equal, less_equal, sort_columns, sorts_before
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.join_closure import FULL, SEED, copy_time, emit_by_first_coordinate, emit_chain

NEVER = np.int64((1 << 63) - 1)  # a coordinate after all others: no later round exists
LANES = 3  # lanes of `work`: ORDER, SPARE and SEED


@jit
def append_history(times, lo, hi, floor, seeds, seed_lo, seed_hi, out, n):
    """Append times, joined with the floor, to the first n of `out`.

    Skip the times at or before the floor, those that equal a seed, and repetitions. Return the new n.
    """
    depth = times.shape[0]
    for row in range(lo, hi):
        if less_equal(times, row, floor, ZERO):
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
    """Return whether each of the times lo to hi is at or before the next."""
    for i in range(lo + 1, hi):
        if not less_equal(times, i - 1, times, i):
            return False
    return True


@jit
def sort_generators(times, n, work, out, seeds, lo, hi):
    """Sort n times into out, each once, and mark the seeds (columns lo to hi of seeds, sorted); return their number."""
    depth = times.shape[0]
    for i in range(n):
        work[ORDER, i] = i
    sort_columns(times, ZERO, depth, work, n)
    kept = ZERO
    for i in range(n):
        copy_time(times, work[ORDER, i], out, kept)
        if kept == 0 or not equal(out, kept - 1, out, kept, depth):
            work[SEED, kept] = 1 if lo < hi and equal(seeds, lo, out, kept, depth) else 0
            lo += work[SEED, kept]
            kept += 1
    return kept


@jit
def is_beyond_with_last(upper, times, i, last):
    """Return whether time i, with its last coordinate replaced, is at or after some element of upper."""
    depth = upper.shape[1]
    for k in range(upper.shape[0]):
        after = last >= upper[k, depth - 1]
        for d in range(depth - 1):
            after = after and times[d, i] >= upper[k, d]
        if after:
            return True
    return False


@jit
def emit_plain_keys(
    key, evals, pending, seed_offsets, seed_times, input_offsets, input_times, output_offsets, output_times, upper,
    eval_offsets, eval_times, pending_offsets, pending_times,
):  # fmt: skip
    """Process keys from `key` on while they are plain, as most are; return the first key not done, and both counts.

    A key is plain if it has at most one seed, if no time of its history exceeds the seed in any coordinate but the
    last, and if the rounds after the seed are beyond upper. Its closure is a chain: the seed, then these rounds. Of the
    times beyond upper only the first is pending. The loops over rows call no function, because a call would cost as
    much as the key.
    """
    depth = seed_times.shape[0]
    keys = seed_offsets.shape[0] - 1
    while key < keys and evals < eval_times.shape[1] and pending < pending_times.shape[1]:
        lo = seed_offsets[key]
        seeds = seed_offsets[key + 1] - lo
        if seeds > 1:
            break
        if seeds == 1:
            is_plain = True
            for d in range(depth - 1):
                seed = seed_times[d, lo]
                for row in range(input_offsets[key], input_offsets[key + 1]):
                    is_plain = is_plain and input_times[d, row] <= seed
                for row in range(output_offsets[key], output_offsets[key + 1]):
                    is_plain = is_plain and output_times[d, row] <= seed
            seed = seed_times[depth - 1, lo]
            later = NEVER
            for row in range(input_offsets[key], input_offsets[key + 1]):
                if input_times[depth - 1, row] > seed:
                    later = min(later, input_times[depth - 1, row])
            for row in range(output_offsets[key], output_offsets[key + 1]):
                if output_times[depth - 1, row] > seed:
                    later = min(later, output_times[depth - 1, row])
            is_pending = is_beyond_with_last(upper, seed_times, lo, seed)
            if not is_plain or (
                later != NEVER and not is_pending and not is_beyond_with_last(upper, seed_times, lo, later)
            ):
                break
            for d in range(depth):  # entries that are not counted are overwritten
                eval_times[d, evals] = seed_times[d, lo]
                pending_times[d, pending] = seed_times[d, lo]
            if not is_pending:
                evals += 1
                pending_times[depth - 1, pending] = later
            if is_pending or later != NEVER:
                pending += 1
        key += 1
        eval_offsets[key] = evals
        pending_offsets[key] = pending
    return key, evals, pending


@jit
def find_interesting_times(
    key, evals, pending, seed_offsets, seed_times, input_offsets, input_times, output_offsets, output_times, upper,
    eval_offsets, eval_times, pending_offsets, pending_times,
):  # fmt: skip
    """Fill, for keys from `key` on, the closure's times before upper and the minimal ones beyond it.

    Return the first key that is not done, and the number of times of either kind.
    """
    depth = seed_times.shape[0]
    keys = seed_offsets.shape[0] - 1
    largest = 0
    for k in range(key, keys):
        size = seed_offsets[k + 1] - seed_offsets[k]
        size += input_offsets[k + 1] - input_offsets[k] + output_offsets[k + 1] - output_offsets[k]
        largest = max(largest, size)
    gathered = np.empty((depth, largest + 1), np.int64)
    generators = np.empty((depth, largest + 1), np.int64)
    work = np.empty((LANES, largest + 1), np.int64)
    tails = np.empty((depth - 1, largest + 1), np.int64)
    seeds = np.empty((depth - 1, largest + 1), np.int64)
    floor = np.empty((depth, 1), np.int64)
    tail = np.empty((depth - 1, 1), np.int64)
    while key < keys:
        key, evals, pending = emit_plain_keys(
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
            n = append_history(
                input_times, input_offsets[key], input_offsets[key + 1], floor, seed_times, lo, hi, gathered, ZERO
            )
            n = append_history(
                output_times, output_offsets[key], output_offsets[key + 1], floor, seed_times, lo, hi, gathered, n
            )
            if evals + n + hi - lo > eval_times.shape[1] or pending == pending_times.shape[1]:
                return key, evals, pending
            if n == 0 and is_chain(seed_times, lo, hi):  # no history, so the chain is its own closure
                evals, pending = emit_chain(seed_times, lo, hi, upper, eval_times, evals, pending_times, pending)
            else:
                for i in range(lo, hi):
                    copy_time(seed_times, i, gathered, n)
                    n += 1
                n = sort_generators(gathered, n, work, generators, seed_times, lo, hi)
                if depth == 1:
                    new_evals, new_pending = emit_chain(
                        generators, ZERO, n, upper, eval_times, evals, pending_times, pending
                    )
                else:
                    new_evals, new_pending = emit_by_first_coordinate(
                        generators, n, work, tails, seeds, upper, eval_times, evals, pending_times, pending, tail
                    )
                if new_evals == FULL:
                    return key, evals, pending
                evals = new_evals
                pending = new_pending
        key += 1
        eval_offsets[key] = evals
        pending_offsets[key] = pending
    return key, evals, pending


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield find_interesting_times, (
        NUMBER, NUMBER, NUMBER, COLUMN, TABLE, COLUMN, TABLE, COLUMN, TABLE, TABLE, COLUMN, TABLE, COLUMN, TABLE,
    )  # fmt: skip
