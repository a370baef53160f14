"""Twins of kpg.kernels.sweep_totals and kpg.kernels.single_time.

`sums_changes_of_batch` and `single_time_changes` must also equal `sums_changes` or `presence_changes` of
`running_totals`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpg.algebra.order import Time
from kpg.testing.kernel_twins.row_tuples import Row, Update, plus


def running_totals(updates: Iterable[tuple[Time, Row]], before: Row) -> list[tuple[Time, Row]]:
    """Return a key's totals after each of its new times."""
    updates, totals = sorted(updates), []
    for at in sorted({time for time, _ in updates}):
        total = before
        for time, diff in updates:
            total = plus(total, diff) if time <= at else total
        totals.append((at, total))
    return totals


def presence_changes(at_least: int, before: Row, totals: Iterable[tuple[Time, Row]]) -> list[Update]:
    """Return the changes of presence: a row without lanes, diff ±1."""
    changes: list[Update] = []
    present = before[0] >= at_least
    for time, total in totals:
        now = total[0] >= at_least
        if now != present:
            changes.append(((), time, (now - present,)))
        present = now
    return changes


def sums_changes(before: Row, totals: Iterable[tuple[Time, Row]]) -> list[Update]:
    """Return the changes of the totals: the old row retracted, the new one inserted; a row of zeros is no row."""
    changes: list[Update] = []
    for time, total in totals:
        if total != before:
            changes += [(row, time, (diff,)) for row, diff in ((before, -1), (total, 1)) if any(row)]
        before = total
    return sorted(changes)
