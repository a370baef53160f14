"""Corrections of groups whose sums may leave 64 bits: the meaning of the compiled kernels, with Python ints.

    target_exactly    ==  kpg.kernels.evaluate_output
    correct_exactly   ==  kpg.kernels.correct_output
    sweep_exactly     ==  kpg.kernels.sweep_totals and kpg.kernels.single_time

Totals become lanes by `fit_totals`, so a total that does not fit is one row with NULL in its first lane: see
kpg.operators.unfit_totals. Cost: a few microseconds for each row and evaluation time of a group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from kpg.algebra.order import Time, less_equal
from kpg.columns.exact_diffs import MAX_MASS, narrow, shrink_exact
from kpg.columns.exact_sums import LaneKinds, fit_totals
from kpg.columns.updates import Ints, Updates, spread
from kpg.kernels.evaluate_output import ALL, FIRST, PRESENCE, SUMS
from kpg.operators.correction_columns import Corrections, InterestingTimes, TargetOutput
from kpg.operators.payload import Batches
from kpg.trace.key_history import KeyHistory, accumulate, distinct_keys

Lanes: TypeAlias = tuple[int, ...]
HistoryRow: TypeAlias = tuple[Lanes, Time, Lanes]  # value, time, diff


def target_exactly(
    kind: int, limit: int, kinds: LaneKinds, times: InterestingTimes, inputs: KeyHistory
) -> TargetOutput:
    """Return the rows that the output of each key should have at each of its evaluation times."""
    rows: list[tuple[Lanes, int]] = []
    ends = [0]
    for evaluated, history in zip(_eval_times(times), _histories(inputs), strict=True):
        for time in evaluated:
            rows += _target(kind, limit, kinds, _collection(history, time))
            ends.append(len(rows))
    lanes = 0 if kind == PRESENCE else inputs.diffs.shape[0] if kind == SUMS else inputs.data.shape[0]
    diffs = np.array([diff for _, diff in rows], object).reshape(1, len(rows))
    fits = all(abs(diff) <= MAX_MASS for _, diff in rows)
    spans = np.array([ends[:-1], ends[1:]], np.int64)
    return TargetOutput(spans, _block([value for value, _ in rows], lanes), narrow(diffs) if fits else diffs)


def _target(kind: int, limit: int, kinds: LaneKinds, values: dict[Lanes, Lanes]) -> Iterator[tuple[Lanes, int]]:
    """Yield the rows of a function of a group, which maps each value to its diff."""
    if kind in (PRESENCE, SUMS):
        total = tuple(map(sum, zip(*values.values(), strict=True))) if values else (0,)
        if kind == PRESENCE:
            yield from [((), 1)] if total[0] >= limit else []
        elif any(lanes := fit_totals(total, kinds)):
            yield lanes, 1
        return
    if kind == ALL:
        yield from ((value, count) for value, (count,) in values.items())
        return
    for value, (count,) in values.items():
        if count > 0 and limit > 0:
            taken = 1 if kind == FIRST else min(count, limit)
            limit -= taken
            yield value, taken


def correct_exactly(times: InterestingTimes, target: TargetOutput, outputs: KeyHistory) -> Corrections:
    """Return the corrections that make the output of each key its target at each of its evaluation times."""
    rows: list[tuple[int, Lanes, Time, int]] = []
    spans = target.spans.T.tolist() or [(row, row + 1) for row in range(target.diffs.shape[1])]
    number = 0
    for key, (evaluated, history) in enumerate(zip(_eval_times(times), _histories(outputs), strict=True)):
        corrections: list[tuple[int, Lanes, Time, int]] = []
        for time in evaluated:
            difference: defaultdict[Lanes, int] = defaultdict(int)
            for row in range(*spans[number]):
                difference[tuple(target.data[:, row].tolist())] += int(target.diffs[0, row])
            for value, (diff,) in _collection(history, time).items():
                difference[value] -= diff
            for _, value, at, diff in corrections:
                if less_equal(at, time):
                    difference[value] -= diff
            corrections += [(key, value, time, diff) for value, diff in difference.items() if diff]
            number += 1
        rows += sorted(corrections)
    depth = times.eval_times.shape[0]
    return Corrections(
        np.array([row[0] for row in rows], np.int64),
        _block([row[1] for row in rows], target.data.shape[0]),
        _block([row[2] for row in rows], depth),
        narrow(np.array([row[3] for row in rows], object).reshape(1, len(rows))),
    )


def sweep_exactly(
    kind: int, at_least: int, kinds: LaneKinds, updates: Updates, key_lanes: int, before: Batches
) -> Updates:
    """Return the changes of presence or sums when sorted updates follow some batches, for totally ordered times."""
    keys, offsets = distinct_keys(updates, key_lanes)
    old = accumulate(before, keys, updates.width)
    n = len(updates)
    times, diffs = spread(updates.times, n)[0].tolist(), spread(updates.diffs, n).T.tolist()
    changes: defaultdict[tuple[Lanes, int], int] = defaultdict(int)
    for number, (first, last) in enumerate(pairwise(offsets.tolist())):
        key, total = tuple(keys[:, number].tolist()), tuple(old[:, number].tolist())
        for time in sorted(set(times[first:last])):
            rows = [diffs[row] for row in range(first, last) if times[row] == time]
            new = tuple(map(sum, zip(total, *rows, strict=True)))
            for lanes in _swept(kind, at_least, kinds, total):
                changes[key + lanes, time] -= 1
            for lanes in _swept(kind, at_least, kinds, new):
                changes[key + lanes, time] += 1
            total = new
    kept = sorted(change for change in changes.items() if change[1])
    return Updates(
        _block([row for (row, _), _ in kept], key_lanes + (updates.width if kind == SUMS else 0)),
        shrink_exact(_block([(time,) for (_, time), _ in kept], 1)),
        shrink_exact(np.array([diff for _, diff in kept], object).reshape(1, len(kept))),
    )


def _swept(kind: int, at_least: int, kinds: LaneKinds, total: Lanes) -> list[Lanes]:
    """Return the rows, without the key, that a total stands for: one or none."""
    if kind == PRESENCE:
        return [()] if total[0] >= at_least else []
    lanes = fit_totals(total, kinds)
    return [lanes] if any(lanes) else []


def _eval_times(times: InterestingTimes) -> Iterator[list[Time]]:
    """Yield the evaluation times of each key."""
    all_times = [tuple(time) for time in times.eval_times.T.tolist()]
    for first, last in pairwise(times.eval_offsets.tolist()):
        yield all_times[first:last]


def _histories(run: KeyHistory) -> Iterator[list[HistoryRow]]:
    """Yield the history of each key."""
    for first, last in pairwise(run.offsets.tolist()):
        blocks = (run.data, run.times, run.diffs)
        columns = [_columns(block[:, first:last]) for block in blocks]
        yield list(zip(*columns, strict=True))


def _columns(block: Ints) -> list[Lanes]:
    return [tuple(column) for column in block.T.tolist()]


def _collection(history: Iterable[HistoryRow], at: Time) -> dict[Lanes, Lanes]:
    """Return the values at a time with their summed diffs, in order of the history, without those that sum to zero."""
    total: dict[Lanes, Lanes] = {}
    for value, time, diff in history:
        if less_equal(time, at):
            total[value] = tuple(map(sum, zip(total[value], diff, strict=True))) if value in total else diff
    return {value: diff for value, diff in total.items() if any(diff)}


def _block(columns: Sequence[Lanes], lanes: int) -> Ints:
    """Return columns as an int64 block."""
    return np.ascontiguousarray(np.array(columns, np.int64).reshape(len(columns), lanes).T)
