"""Plain-Python twins of the kernels behind join and reduce: same names, obvious bodies, no cleverness.

Rows are tuples: an update is (data, time, diff) with data and diff tuples of ints; a history is a list of updates per
key. `run` and `rows` go between these and the columns that kernels see.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from kpg.algebra.frontier import Frontier, minimal
from kpg.algebra.order import Time, join, less_equal
from kpg.columns.updates import Ints, Updates
from kpg.trace.key_history import KeyHistory

Row: TypeAlias = tuple[int, ...]
Update: TypeAlias = tuple[Row, Time, Row]
Correction: TypeAlias = tuple[int, Row, Time, int]
Wanted: TypeAlias = dict[Row, int]


def block(columns: Sequence[Row], lanes: int) -> Ints:
    """Tuples as columns: int64[lanes, n]."""
    return np.ascontiguousarray(np.array(columns, np.int64).reshape(len(columns), lanes).T)


def columns(array: Ints) -> list[Row]:
    """Columns as tuples."""
    return [tuple(int(x) for x in column) for column in array.T]


def offsets(lists: Iterable[Sequence[object]]) -> Ints:
    """Where each of some lists begins when they follow each other, and where the last ends."""
    return np.cumsum([0] + [len(items) for items in lists], dtype=np.int64)


def run(histories: Sequence[Iterable[Update]], lanes: int, depth: int, width: int = 1) -> KeyHistory:
    """The histories of some keys as a run: sorted, consolidated."""
    kept = [consolidate(history) for history in histories]
    flat = [update for history in kept for update in history]
    return KeyHistory(
        offsets(kept),
        block([data for data, _, _ in flat], lanes),
        block([time for _, time, _ in flat], depth),
        block([diff for _, _, diff in flat], width),
    )


def rows(updates: Updates) -> list[Update]:
    """Updates as tuples, sorted; constants spread."""
    n = len(updates)
    times, diffs = columns(updates.times), columns(updates.diffs)
    return sorted(
        (data, times[i if len(times) == n else 0], diffs[i if len(diffs) == n else 0])
        for i, data in enumerate(columns(updates.data))
    )


def plus(a: Row, b: Row) -> Row:
    """Diffs added lane by lane."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def consolidate(updates: Iterable[Update]) -> list[Update]:
    """Each (data, time) once with the sum of its diffs, sorted, none zero."""
    total: dict[tuple[Row, Time], Row] = {}
    for data, time, diff in updates:
        total[data, time] = plus(total[data, time], diff) if (data, time) in total else diff
    return sorted((data, time, diff) for (data, time), diff in total.items() if any(diff))


def sort_columns(block: Ints, first: int, end: int, numbers: Sequence[int]) -> list[int]:
    """Column numbers sorted by some lanes of the columns they name; equal ones keep their order."""
    return sorted(numbers, key=lambda i: tuple(block[first:end, i]))


def match(
    left: Iterable[Update], right: Iterable[Update], key_lanes: int, projection: Sequence[tuple[int, int]], depth: int
) -> list[Update]:
    """All pairs of equal key: projected data, joined times, multiplied diffs."""

    def extend(time: Time) -> Time:
        return time + (0,) * (depth - len(time))

    return sorted(
        (
            tuple((a, b)[side][lane] for side, lane in projection),
            join(extend(s), extend(t)),
            tuple(x * y for x in p for y in q),
        )
        for a, s, p in left
        for b, t, q in right
        if a[:key_lanes] == b[:key_lanes]
    )


def closure(seeds: Iterable[Time], others: Iterable[Time]) -> set[Time]:
    """The least set with the seeds that is closed under join with seeds and others."""
    seeds = set(seeds)
    closed = set(seeds)
    for time in seeds | set(others):
        closed |= {join(time, other) for other in closed}
    return closed


def interesting(seeds: Iterable[Time], others: Iterable[Time], upper: Frontier) -> tuple[list[Time], list[Time]]:
    """The closure's times that are not beyond upper, and the minimal ones that are."""
    closed = closure(seeds, others)
    return sorted(t for t in closed if not upper.beyond(t)), list(minimal(t for t in closed if upper.beyond(t)))


def collection(history: Iterable[Update], at: Time) -> dict[Row, Row]:
    """The values that are there at a time, with their accumulated diff."""
    total: dict[Row, Row] = {}
    for data, time, diff in history:
        if less_equal(time, at):
            total[data] = plus(total[data], diff) if data in total else diff
    return {data: diff for data, diff in sorted(total.items()) if any(diff)}


def presence(at_least: int) -> Callable[[dict[Row, Row]], Wanted]:
    """A row without lanes when the diffs of all values sum to so much."""
    return lambda values: {(): 1} if sum(diff[0] for diff in values.values()) >= at_least else {}


def sums(values: dict[Row, Row]) -> Wanted:
    """A row of the summed diffs, unless all are zero."""
    total = tuple(map(sum, zip(*values.values(), strict=True)))
    return {total: 1} if any(total) else {}


def first(limit: int) -> Callable[[dict[Row, Row]], Wanted]:
    """The first values of positive multiplicity, each once."""
    return lambda values: dict.fromkeys(sorted(v for v, (count,) in values.items() if count > 0)[:limit], 1)


def copies(limit: int) -> Callable[[dict[Row, Row]], Wanted]:
    """The first copies of values of positive multiplicity."""

    def take(values: dict[Row, Row]) -> Wanted:
        kept = [value for value, (count,) in sorted(values.items()) for _ in range(count)][:limit]
        return {value: kept.count(value) for value in kept}

    return take


def accumulate(
    evaluate: Callable[[dict[Row, Row]], Wanted], times: Iterable[Time], history: Iterable[Update]
) -> list[Wanted]:
    """What is wanted at each of a key's evaluation times."""
    history = list(history)
    return [evaluate(collection(history, time)) for time in times]


def correct(times: Sequence[Time], wanted: Sequence[Wanted], history: Iterable[Update]) -> list[Update]:
    """What makes a key's output as wanted at each time, in order; corrections made count as output."""
    output, made = list(history), []
    for time, want in zip(times, wanted, strict=True):
        difference: defaultdict[Row, int] = defaultdict(int, want)
        for value, (diff,) in collection(output, time).items():
            difference[value] -= diff
        corrections = [(value, time, (diff,)) for value, diff in difference.items() if diff]
        output += corrections
        made += corrections
    return sorted(made)


def running(updates: Iterable[tuple[Time, Row]], before: Row) -> list[tuple[Time, Row]]:
    """A key's totals after each of its new times."""
    updates, totals = sorted(updates), []
    for at in sorted({time for time, _ in updates}):
        total = before
        for time, diff in updates:
            total = plus(total, diff) if time <= at else total
        totals.append((at, total))
    return totals


def presence_changes(at_least: int, before: Row, totals: Iterable[tuple[Time, Row]]) -> list[Update]:
    """Where presence changes."""
    made: list[Update] = []
    present = before[0] >= at_least
    for time, total in totals:
        now = total[0] >= at_least
        if now != present:
            made.append(((), time, (now - present,)))
        present = now
    return made


def sums_changes(before: Row, totals: Iterable[tuple[Time, Row]]) -> list[Update]:
    """Where the totals change: the old row retracted, the new one inserted, rows of zeros being no rows."""
    made: list[Update] = []
    for time, total in totals:
        if total != before:
            made += [(row, time, (diff,)) for row, diff in ((before, -1), (total, 1)) if any(row)]
        before = total
    return sorted(made)
