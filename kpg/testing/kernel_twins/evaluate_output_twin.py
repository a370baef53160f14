"""Twins of kpg.kernels.evaluate_output and kpg.kernels.correct_output, also where these use kpg.kernels.replay_history.

`presence`, `sums`, `first` and `copies` mirror the kinds PRESENCE, SUMS, FIRST and COPIES of the kernel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from kpg.algebra.order import Time, less_equal
from kpg.testing.kernel_twins.consolidate_rows_twin import consolidate
from kpg.testing.kernel_twins.row_tuples import Row, Update, block, offsets, plus
from kpg.trace.key_history import KeyHistory

Correction: TypeAlias = tuple[int, Row, Time, int]
Target: TypeAlias = dict[Row, int]


def key_history(histories: Sequence[Iterable[Update]], lanes: int, depth: int, width: int = 1) -> KeyHistory:
    """Return the histories of some keys in columns, sorted and consolidated."""
    consolidated = [consolidate(history) for history in histories]
    flat = [update for history in consolidated for update in history]
    return KeyHistory(
        offsets(consolidated),
        block([data for data, _, _ in flat], lanes),
        block([time for _, time, _ in flat], depth),
        block([diff for _, _, diff in flat], width),
    )


def collection(history: Iterable[Update], at: Time) -> dict[Row, Row]:
    """Return the values present at a time, with their accumulated diffs."""
    total: dict[Row, Row] = {}
    for data, time, diff in history:
        if less_equal(time, at):
            total[data] = plus(total[data], diff) if data in total else diff
    return {data: diff for data, diff in sorted(total.items()) if any(diff)}


def presence(at_least: int) -> Callable[[dict[Row, Row]], Target]:
    """Return a reducer: one row without lanes if the diffs of all values sum to `at_least` or more."""
    return lambda values: {(): 1} if sum(diff[0] for diff in values.values()) >= at_least else {}


def sums(values: dict[Row, Row]) -> Target:
    """Return one row of the summed diffs, unless all are zero."""
    total = tuple(map(sum, zip(*values.values(), strict=True)))
    return {total: 1} if any(total) else {}


def first(limit: int) -> Callable[[dict[Row, Row]], Target]:
    """Return a reducer: the first `limit` values of positive multiplicity, each once."""
    return lambda values: dict.fromkeys(sorted(v for v, (count,) in values.items() if count > 0)[:limit], 1)


def copies(limit: int) -> Callable[[dict[Row, Row]], Target]:
    """Return a reducer: the first `limit` copies of values of positive multiplicity."""

    def first_copies(values: dict[Row, Row]) -> Target:
        kept = [value for value, (count,) in sorted(values.items()) for _ in range(count)][:limit]
        return {value: kept.count(value) for value in kept}

    return first_copies


def evaluate_output(
    evaluate: Callable[[dict[Row, Row]], Target], times: Iterable[Time], history: Iterable[Update]
) -> list[Target]:
    """Return the target rows at each of a key's evaluation times."""
    history = list(history)
    return [evaluate(collection(history, time)) for time in times]


def correct_output(times: Sequence[Time], target: Sequence[Target], history: Iterable[Update]) -> list[Update]:
    """Return the corrections that make a key's output the target at each time; earlier ones count as output."""
    output, all_corrections = list(history), []
    for time, want in zip(times, target, strict=True):
        difference: defaultdict[Row, int] = defaultdict(int, want)
        for value, (diff,) in collection(output, time).items():
            difference[value] -= diff
        corrections = [(value, time, (diff,)) for value, diff in difference.items() if diff]
        output += corrections
        all_corrections += corrections
    return sorted(all_corrections)
