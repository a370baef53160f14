"""Plain-Python twins of the kernels behind traces: same names, obvious bodies, no cleverness.

An update is (data, time, diff), each a tuple of ints; a block of columns is a list of tuples. `updates` and `rows` go
between these and the columns that kernels see. Several kernels do one thing in different ways; they have one twin,
named for the thing: `consolidate`, `gather`, `read`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from kpg.algebra import frontier as algebra
from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, join, less_equal
from kpg.columns import updates as columnar
from kpg.columns.updates import Ints, Updates

Row: TypeAlias = tuple[int, ...]
Update: TypeAlias = tuple[Row, Time, Row]


def block(columns: Sequence[Row], lanes: int) -> Ints:
    """Tuples as columns: int64[lanes, n]."""
    return np.ascontiguousarray(np.array(columns, np.int64).reshape(len(columns), lanes).T)


def columns(array: Ints) -> list[Row]:
    """Columns as tuples."""
    return [tuple(column) for column in array.T.tolist()]


def updates(rows: Sequence[Update], lanes: int, depth: int, width: int = 1, spread: bool = False) -> Updates:
    """Updates in columns, constant where all are alike unless asked to `spread`."""
    data, times, diffs = [block([row[part] for row in rows], size) for part, size in enumerate((lanes, depth, width))]
    return Updates(data, times, diffs) if spread and rows else Updates(data, _constant(times), _constant(diffs))


def _constant(array: Ints) -> Ints:
    if array.shape[1] == 0:
        return np.ones((array.shape[0], 1), np.int64)
    return array[:, :1].copy() if len(set(columns(array))) == 1 else array


def rows(updates: Updates) -> list[Update]:
    """Updates as tuples, in the order of the columns."""
    n = len(updates)
    parts = [columns(columnar.spread(part, n)) for part in (updates.data, updates.times, updates.diffs)]
    return list(zip(*parts, strict=True))


# kpg.kernels.sort_rows


def bounds(columns: Sequence[Row]) -> list[tuple[int, int]]:
    """The least and the greatest value of each lane."""
    return [(min(lane), max(lane)) for lane in zip(*columns, strict=True)]


def pack(columns: Sequence[Row], fields: Sequence[tuple[int, int, int, int]]) -> list[int]:
    """The word of each column; fields are (low, drop, mask, shift) of each lane."""
    return [
        sum(
            (((value - low) >> drop) & mask) << shift
            for value, (low, drop, mask, shift) in zip(row, fields, strict=True)
        )
        for row in columns
    ]


def crowd(words: Sequence[int], longest: int) -> int:
    """How many words occur more than `longest` times, each occurrence counted."""
    return sum(1 for word in words if words.count(word) > longest)


def rank(words: Sequence[int]) -> list[int]:
    """How many different words are less than each."""
    distinct = sorted(set(words))
    return [distinct.index(word) for word in words]


# kpg.kernels.consolidate_rows


def consolidate(rows: Iterable[Update]) -> list[Update]:
    """Each (data, time) once, in order, with the sum of its diffs unless that is zero."""
    total: dict[tuple[Row, Time], Row] = {}
    for data, time, diff in rows:
        before = total.get((data, time))
        total[data, time] = diff if before is None else tuple(a + b for a, b in zip(before, diff, strict=True))
    return [(data, time, diff) for (data, time), diff in sorted(total.items()) if any(diff)]


# kpg.kernels.advance_times


def advance(times: Sequence[Time], frontier: Frontier) -> list[Time]:
    """The representative of each time; without a frontier, the time itself."""
    return [algebra.representative(frontier, time) if frontier else time for time in times]


def split(times: Sequence[Time], frontier: Frontier) -> tuple[list[int], list[int]]:
    """The positions of the times not beyond the frontier, and of those beyond."""
    early = [i for i, time in enumerate(times) if not frontier.beyond(time)]
    return early, [i for i, time in enumerate(times) if frontier.beyond(time)]


def minimal(times: Sequence[Time]) -> set[Time]:
    """The times with none other before them."""
    return {time for time in times if not any(other != time and less_equal(other, time) for other in times)}


# kpg.kernels.merge_runs


def merge(a: Sequence[Update], b: Sequence[Update], frontier: Frontier) -> list[Update]:
    """Both, times moved to their representatives, consolidated."""
    both = [*a, *b]
    times = advance([time for _, time, _ in both], frontier)
    return consolidate((data, time, diff) for (data, _, diff), time in zip(both, times, strict=True))


# kpg.kernels.gather_rows


def gather(
    batches: Sequence[Sequence[Update]], keys: Sequence[Row], floor: Time | None, depth: int
) -> list[list[Update]]:
    """For each key its values, times and diffs over all batches; times of `depth` coordinates joined with the floor."""
    histories = []
    for key in keys:
        found = []
        for data, time, diff in (row for batch in batches for row in batch):
            if data[: len(key)] == key:
                long = time + (0,) * (depth - len(time))
                found.append((data[len(key) :], join(long, floor) if floor is not None else long, diff))
        histories.append(consolidate(found))
    return histories


def total(batches: Sequence[Sequence[Update]], keys: Sequence[Row], width: int) -> list[Row]:
    """For each key the sum of its diffs."""
    return [
        tuple(
            sum(diff[lane] for batch in batches for data, _, diff in batch if data[: len(key)] == key)
            for lane in range(width)
        )
        for key in keys
    ]


def boundaries(data: Sequence[Row], key_lanes: int) -> list[tuple[Row, int]]:
    """Each key with where it begins."""
    keys = [row[:key_lanes] for row in data]
    return [(key, i) for i, key in enumerate(keys) if i == 0 or keys[i - 1] != key]


def read(batches: Sequence[Sequence[Update]], at: Time, keys: Sequence[Row] | None) -> list[tuple[Row, Row]]:
    """The rows present as of a time, with their multiplicity: of some keys, or of all."""
    chosen = [
        (data, (), diff)
        for batch in batches
        for data, time, diff in batch
        if less_equal(time, at) and (keys is None or data[: len(keys[0]) if keys else 0] in keys)
    ]
    return [(data, diff) for data, _, diff in consolidate(chosen)]
