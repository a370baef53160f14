"""The primitives of reduce: which times of a key to look at again, and what to correct there.

    interesting_times   from a key's seeds (new and pending times) to the times to evaluate and those that must wait
    evaluate_…          at each of these times t, in order:   f(Σ input at times ≤ t)  −  Σ output at times ≤ t
    sweep_…             the same for a total order, from totals alone, without an output trace

After a call with frontier `upper`, for every time t not beyond it:   Σ output ≤ t  =  f(Σ input ≤ t).

Why the minimal pending times are enough. Input and output at t depend only on which of their times are ≤ t, so the
output can be wrong only at joins of such times. Claim: wherever it is wrong beyond upper, some pending time is ≤ t. A call
evaluates all joins with a seed that are not beyond upper; it leaves wrong only joins that are beyond upper and at or
after a seed, and all of these are in the closure, so at or after one of its minimal times beyond upper. Conversely a
later call joins each pending time with all times of the history then: if p ≤ t and t is a join of such times, it meets
t. Compaction to any frontier that the pending times are beyond leaves these joins as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Ints
from kpg.kernels.evaluate import ALL, COPIES, FIRST, accumulate_rows, accumulate_totals, correct
from kpg.kernels.interesting import interesting
from kpg.kernels.sweep import presence_changes, running, sums_changes

GROUP_ROWS = 1 << 20  # rows accumulated at once before a Python reducer sees them


class History(Protocol):
    """The updates of m sorted keys, per key sorted by value and time, consolidated."""

    @property
    def offsets(self) -> Ints:
        """int64[m + 1]"""

    @property
    def data(self) -> Ints:
        """int64[value lanes, n]"""

    @property
    def times(self) -> Ints:
        """int64[depth, n]"""

    @property
    def diffs(self) -> Ints:
        """int64[width, n]"""


@dataclass(frozen=True, slots=True, eq=False)
class Interesting:
    """Per key the times to evaluate now, and the minimal ones that must wait; sorted, distinct."""

    eval_offsets: Ints
    eval_times: Ints
    pending_offsets: Ints
    pending_times: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Corrections:
    """Updates of an output, sorted by (key_index, data, time), consolidated; all blocks full."""

    key_index: Ints
    data: Ints
    times: Ints
    diffs: Ints

    def __len__(self) -> int:
        return int(self.key_index.shape[0])


def interesting_times(
    seed_offsets: Ints, seed_times: Ints, inputs: History, outputs: History, upper: Frontier
) -> Interesting:
    """Close each key's seeds under join with its seeds, input and output times; split at `upper`."""
    bounds = np.array(upper.elements, np.int64).reshape(len(upper), seed_times.shape[0])
    return Interesting(
        *interesting(seed_offsets, seed_times, inputs.offsets, inputs.times, outputs.offsets, outputs.times, bounds)
    )


def evaluate_presence(at_least: int, times: Interesting, inputs: History, outputs: History) -> Corrections:
    """One row without lanes where a key's accumulated diff is at least so much."""
    totals = _totals(times, inputs)
    want = np.empty((0, totals.shape[1]), np.int64)
    return _correct(times, _one_each(totals), want, (totals[:1] >= at_least).astype(np.int64), outputs)


def evaluate_sums(times: Interesting, inputs: History, outputs: History) -> Corrections:
    """One row whose lanes are the key's accumulated diff, where any of it is not zero."""
    totals = _totals(times, inputs)
    return _correct(times, _one_each(totals), totals, totals.any(axis=0, keepdims=True).astype(np.int64), outputs)


def evaluate_first(limit: int, by_copies: int, times: Interesting, inputs: History, outputs: History) -> Corrections:
    """A key's first `limit` values of positive multiplicity: each once, or as many copies as are among the first."""
    kind = COPIES if by_copies else FIRST
    rows = accumulate_rows(
        kind, limit, 0, times.eval_times.shape[1], times.eval_offsets, times.eval_times,
        inputs.offsets, inputs.data, inputs.times, inputs.diffs,
    )  # fmt: skip
    return _correct(times, *rows, outputs)


Reducer = Callable[[int, Ints, Ints], tuple[Ints, Ints]]


def evaluate_with(function: Reducer, times: Interesting, inputs: History, outputs: History) -> Corrections:
    """What a Python function makes of a key's rows: (key index, values[lanes, g], counts[g]) to (rows[lanes, k], diffs[k]).

    Values are sorted, counts not zero; no call for an empty group. The rows it gives may come in any order.
    """
    key_of = np.repeat(np.arange(times.eval_offsets.shape[0] - 1), np.diff(times.eval_offsets))
    bound = np.cumsum(np.diff(inputs.offsets)[key_of])
    parts: list[tuple[Ints, Ints]] = []
    sizes = np.zeros(key_of.shape[0] + 1, np.int64)
    lo = 0
    while lo < key_of.shape[0]:
        done = int(bound[lo - 1]) if lo else 0
        hi = max(lo + 1, int(np.searchsorted(bound, done + GROUP_ROWS, "right")))
        offsets, values, counts = accumulate_rows(
            ALL, 1 << 62, lo, hi, times.eval_offsets, times.eval_times,
            inputs.offsets, inputs.data, inputs.times, inputs.diffs,
        )  # fmt: skip
        for i in range(lo, hi):
            start, end = int(offsets[i - lo]), int(offsets[i - lo + 1])
            if start < end:
                rows, diffs = function(int(key_of[i]), values[:, start:end], counts[0, start:end])
                parts.append(_sorted_rows(rows, diffs))
                sizes[i + 1] = parts[-1][1].shape[0]
        lo = hi
    lanes = outputs.data.shape[0]
    want = np.concatenate([np.empty((lanes, 0), np.int64), *(rows for rows, _ in parts)], axis=1)
    want_diffs = np.concatenate([np.empty(0, np.int64), *(diffs for _, diffs in parts)]).reshape(1, -1)
    return _correct(times, np.cumsum(sizes), want, want_diffs, outputs)


def sweep_presence(at_least: int, offsets: Ints, times: Ints, diffs: Ints, before: Ints) -> Corrections:
    """Where "the accumulated diff is at least so much" changes, in a total order of times."""
    assert times.shape[0] == 1, "sweeps need a total order of times"
    keys, changed_times, changed = presence_changes(at_least, before, *running(offsets, times, diffs, before))
    return Corrections(keys, np.empty((0, keys.shape[0]), np.int64), changed_times, changed)


def sweep_sums(offsets: Ints, times: Ints, diffs: Ints, before: Ints) -> Corrections:
    """Where the accumulated diff changes, in a total order of times: −old +new."""
    assert times.shape[0] == 1, "sweeps need a total order of times"
    return Corrections(*sums_changes(before, *running(offsets, times, diffs, before)))


def _totals(times: Interesting, inputs: History) -> Ints:
    return accumulate_totals(times.eval_offsets, times.eval_times, inputs.offsets, inputs.times, inputs.diffs)


def _one_each(totals: Ints) -> Ints:
    return np.arange(totals.shape[1] + 1)


def _correct(times: Interesting, want_offsets: Ints, want: Ints, want_diffs: Ints, outputs: History) -> Corrections:
    return Corrections(
        *correct(
            times.eval_offsets, times.eval_times, want_offsets, want, want_diffs,
            outputs.offsets, outputs.data, outputs.times, outputs.diffs,
        )
    )  # fmt: skip


def _sorted_rows(rows: Ints, diffs: Ints) -> tuple[Ints, Ints]:
    """Rows of one evaluation sorted by value, equal ones summed."""
    if rows.shape[1] < 2 or rows.shape[0] == 0:
        return (rows, diffs) if rows.shape[1] < 2 else (rows[:, :1], diffs.sum(keepdims=True))
    order = np.lexsort(rows[::-1])
    rows, diffs = rows[:, order], diffs[order]
    heads = np.flatnonzero(np.concatenate([[True], (rows[:, 1:] != rows[:, :-1]).any(axis=0)]))
    return rows[:, heads], np.add.reduceat(diffs, heads)
