"""The primitives of reduce: the times at which to evaluate a key, and the corrections of its output there.

    interesting_times   from a key's seeds (new and pending times) to the times to evaluate and those that stay pending
    evaluate_…          at each of these times t, in order:   f(Σ input at times ≤ t)  −  Σ output at times ≤ t
    sweep_…             the same for a total order, from totals only, without an output trace

Histories whose sums may leave 64 bits hold Python ints, and kpg.operators.exact_corrections evaluates them.

After a call with frontier `upper`, for every time t not beyond it:   Σ output ≤ t  =  f(Σ input ≤ t).

Why the minimal pending times are enough. Input and output at t depend only on which of their times are ≤ t, so the
output can be wrong only at joins of such times. Claim: if it is wrong at t beyond upper, some pending time is ≤ t. A
call evaluates all joins with a seed that are not beyond upper. Only joins beyond upper and at or after a seed stay
wrong. All of these are in the closure, so each is at or after one of its minimal times beyond upper. Conversely, a
later call joins each pending time with all times of the history then: if p ≤ t and t is a join of such times, it
evaluates t. Compaction to any frontier that the pending times are beyond does not change these joins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.exact_diffs import is_exact
from kpg.columns.exact_sums import COUNT_ONLY, LaneKinds
from kpg.columns.pause_points import aside, pause
from kpg.columns.updates import Ints, trim
from kpg.kernels.correct_output import correct_output
from kpg.kernels.evaluate_output import ALL, COPIES, FIRST, PRESENCE, SUMS, evaluate_output
from kpg.kernels.interesting_times import find_interesting_times
from kpg.kernels.sweep_totals import presence_changes, running_totals, sums_changes
from kpg.operators.correction_columns import Corrections, InterestingTimes, TargetOutput
from kpg.operators.exact_corrections import correct_exactly, target_exactly
from kpg.trace.key_history import KeyHistory

MAX_TARGET_ROWS = 1 << 22  # rows of target output computed in one call: bounds the memory
MAX_DIRECT_READS = 200  # rows read for all evaluation times of a key; if it takes more, replaying the history is faster

Reducer: TypeAlias = Callable[[int, Ints, Ints], tuple[Ints, Ints]]


def interesting_times(
    seed_offsets: Ints, seed_times: Ints, inputs: KeyHistory, outputs: KeyHistory, upper: Frontier
) -> InterestingTimes:
    """Close each key's seeds under join with its seeds, input and output times, and split the result at `upper`."""
    depth, seeds = seed_times.shape
    keys = seed_offsets.shape[0] - 1
    bounds = np.array(upper.elements, np.int64).reshape(len(upper), depth)
    eval_offsets, pending_offsets = np.zeros(keys + 1, np.int64), np.zeros(keys + 1, np.int64)
    eval_times = np.empty((depth, seeds + seeds // 4 + 16), np.int64)
    pending_times = np.empty((depth, seeds + 16), np.int64)
    key = evals = pending = 0
    while True:
        key, evals, pending = find_interesting_times(
            key, evals, pending, seed_offsets, seed_times, inputs.offsets, inputs.times, outputs.offsets, outputs.times,
            bounds, eval_offsets, eval_times, pending_offsets, pending_times,
        )  # fmt: skip
        if key == keys:
            break
        eval_times, pending_times = _grow(eval_times, evals), _grow(pending_times, pending)
    return InterestingTimes(eval_offsets, trim(eval_times, evals), pending_offsets, trim(pending_times, pending))


def evaluate_presence(at_least: int, times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
    """Evaluate presence: one row without lanes if the key's accumulated diff is at least `at_least`."""
    return _correct(times, _accumulate(PRESENCE, at_least, 0, times, inputs), outputs)


def evaluate_sums(
    times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory, kinds: LaneKinds = COUNT_ONLY
) -> Corrections:
    """Evaluate sums: one row with the key's accumulated diff as its lanes, if any of them is not zero."""
    return _correct(times, _accumulate(SUMS, 0, inputs.diffs.shape[0], times, inputs, kinds), outputs)


def evaluate_first(
    limit: int, by_copies: int, times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory
) -> Corrections:
    """Evaluate the first `limit` values with positive multiplicity. Copies of a value count once, or each of them."""
    kind = COPIES if by_copies else FIRST
    return _correct(times, _accumulate(kind, limit, inputs.data.shape[0], times, inputs), outputs)


def evaluate_with(function: Reducer, times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
    """Evaluate a Python function of a key's rows.

    function(key index, values[lanes, g], counts[g]) returns (rows[output lanes, k], diffs[k]). Values are sorted and
    counts are not zero. It is not called for an empty group. Its rows may be in any order and repeat.
    """
    evals = times.eval_times.shape[1]
    key_of = np.repeat(np.arange(times.eval_offsets.shape[0] - 1), np.diff(times.eval_offsets)).tolist()
    rows: list[Ints] = [np.empty((outputs.data.shape[0], 0), np.int64)]
    diffs: list[Ints] = [np.empty(0, np.int64)]
    sizes = np.zeros(evals, np.int64)
    done = 0
    while done < evals:
        part = aside(inputs.data.size, _accumulate_part, ALL, 1 << 62, inputs.data.shape[0], done, times, inputs)
        for i, (lo, hi) in enumerate(part.spans.T.tolist(), done):
            if lo < hi:
                output, output_diffs = function(key_of[i], part.data[:, lo:hi], part.diffs[0, lo:hi])
                rows.append(output)
                diffs.append(output_diffs)
                sizes[i] = output.shape[1]
                pause()
        done += part.spans.shape[1]
    return _correct(times, _sort_output(sizes, np.concatenate(rows, axis=1), np.concatenate(diffs)), outputs)


def sweep_presence(at_least: int, offsets: Ints, times: Ints, diffs: Ints, before: Ints) -> Corrections:
    """Return the changes of "the accumulated diff is at least `at_least`", for totally ordered times."""
    assert times.shape[0] == 1, "sweeps need a total order of times"
    keys, changed_times, changed = presence_changes(at_least, before, *running_totals(offsets, times, diffs, before))
    return Corrections(keys, np.empty((0, keys.shape[0]), np.int64), changed_times, changed)


def sweep_sums(offsets: Ints, times: Ints, diffs: Ints, before: Ints) -> Corrections:
    """Return the changes of the accumulated diff (−old, +new), for totally ordered times."""
    assert times.shape[0] == 1, "sweeps need a total order of times"
    return Corrections(*sums_changes(before, *running_totals(offsets, times, diffs, before)))


def _accumulate(
    kind: int, limit: int, lanes: int, times: InterestingTimes, inputs: KeyHistory, kinds: LaneKinds = COUNT_ONLY
) -> TargetOutput:
    """Return the target output of all evaluation times."""
    if is_exact(inputs.diffs):
        return target_exactly(kind, limit, kinds, times, inputs)
    first = _accumulate_part(kind, limit, lanes, 0, times, inputs)
    evals = times.eval_times.shape[1]
    done = first.spans.shape[1]
    if done == evals or kind == PRESENCE or kind == SUMS:
        return first
    parts = [first]
    while done < evals:
        parts.append(_accumulate_part(kind, limit, lanes, done, times, inputs))
        done += parts[-1].spans.shape[1]
    starts = np.cumsum([0] + [part.diffs.shape[1] for part in parts])
    return TargetOutput(
        np.concatenate([part.spans + start for part, start in zip(parts, starts, strict=False)], axis=1),
        np.concatenate([part.data for part in parts], axis=1),
        np.concatenate([part.diffs for part in parts], axis=1),
    )


def _accumulate_part(
    kind: int, limit: int, lanes: int, done: int, times: InterestingTimes, inputs: KeyHistory
) -> TargetOutput:
    """Return the target output of as many evaluation times as fit, beginning with time number `done`."""
    if is_exact(inputs.diffs):
        return target_exactly(kind, limit, COUNT_ONLY, times, inputs)
    evals = times.eval_times.shape[1]
    room = evals - done
    one_each = kind == PRESENCE or kind == SUMS
    if not one_each:  # at least enough for one time
        room = max(min(room * min(limit, MAX_TARGET_ROWS), MAX_TARGET_ROWS), min(limit, inputs.data.shape[1]))
    spans = np.empty((2, 0 if one_each else evals - done), np.int64)
    data, diffs = np.empty((lanes, room), np.int64), np.empty((1, room), np.int64)
    end, rows = evaluate_output(
        kind, limit, MAX_DIRECT_READS, done, times.eval_offsets, times.eval_times,
        inputs.offsets, inputs.data, inputs.times, inputs.diffs, spans, data, diffs,
    )  # fmt: skip
    return TargetOutput(trim(spans, 0 if one_each else end - done), trim(data, rows), trim(diffs, rows))


def _correct(times: InterestingTimes, target: TargetOutput, outputs: KeyHistory) -> Corrections:
    if is_exact(target.diffs) or is_exact(outputs.diffs):
        return correct_exactly(times, target, outputs)
    depth, evals = times.eval_times.shape
    keys = times.eval_offsets.shape[0] - 1
    room = evals + target.diffs.shape[1] + 16
    index = np.empty((1, room), np.int64)
    data = np.empty((target.data.shape[0], room), np.int64)
    corrected = np.empty((depth, room), np.int64)
    diffs = np.empty((1, room), np.int64)
    key = n = 0
    while True:
        key, n = correct_output(
            MAX_DIRECT_READS, key, n, times.eval_offsets, times.eval_times, target.spans, target.data, target.diffs,
            outputs.offsets, outputs.data, outputs.times, outputs.diffs, index[0], data, corrected, diffs,
        )  # fmt: skip
        if key == keys:
            return Corrections(_cut(index, n)[0], _cut(data, n), _cut(corrected, n), _cut(diffs, n))
        index, data, corrected, diffs = (_grow(block, n) for block in (index, data, corrected, diffs))


def _grow(block: Ints, n: int) -> Ints:
    """Return a block with twice the columns and the same first n."""
    grown = np.empty((block.shape[0], 2 * block.shape[1]), np.int64)
    grown[:, :n] = block[:, :n]
    return grown


def _cut(block: Ints, n: int) -> Ints:
    """Return the first n columns, contiguous. A single lane that is mostly used is not copied."""
    return block[:, :n] if block.shape[0] <= 1 and 2 * n >= block.shape[1] else trim(block, n)


def _sort_output(sizes: Ints, rows: Ints, diffs: Ints) -> TargetOutput:
    """Sort the rows of each evaluation time by value and sum equal rows. `sizes` are the row counts of the times."""
    if sizes.max(initial=0) > 1:
        at = np.repeat(np.arange(sizes.shape[0]), sizes)
        order = np.lexsort((*rows[::-1], at))
        at, rows, diffs = at[order], rows.take(order, axis=1), diffs[order]
        new = (at[1:] != at[:-1]) | (rows[:, 1:] != rows[:, :-1]).any(axis=0)
        heads = np.flatnonzero(np.concatenate([[True], new]))
        rows, diffs = rows.take(heads, axis=1), np.add.reduceat(diffs, heads)
        sizes = np.bincount(at[heads], minlength=sizes.shape[0])
    ends = np.cumsum(sizes)
    return TargetOutput(np.stack([ends - sizes, ends]), rows, diffs.reshape(1, -1))
