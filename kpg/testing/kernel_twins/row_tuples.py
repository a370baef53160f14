"""Conversion between the columns that kernels read and the tuples that twins read.

An update is (data, time, diff), each a tuple of ints. A block of columns, int64[lanes, n], is a list of n tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from kpg.algebra.order import Time
from kpg.columns import updates as columnar
from kpg.columns.updates import Ints, Updates

Row: TypeAlias = tuple[int, ...]
Update: TypeAlias = tuple[Row, Time, Row]


def block(columns: Sequence[Row], lanes: int) -> Ints:
    """Return tuples as columns: int64[lanes, n]."""
    return np.ascontiguousarray(np.array(columns, np.int64).reshape(len(columns), lanes).T)


def columns(array: Ints) -> list[Row]:
    """Return columns as tuples."""
    return [tuple(column) for column in array.T.tolist()]


def updates(rows: Sequence[Update], lanes: int, depth: int, width: int = 1, spread: bool = False) -> Updates:
    """Return tuples as updates; equal times or equal diffs become one column, unless `spread` forbids it."""
    data, times, diffs = [block([row[part] for row in rows], size) for part, size in enumerate((lanes, depth, width))]
    return Updates(data, times, diffs) if spread and rows else Updates(data, _constant(times), _constant(diffs))


def _constant(array: Ints) -> Ints:
    if array.shape[1] == 0:
        return np.ones((array.shape[0], 1), np.int64)
    return array[:, :1].copy() if len(set(columns(array))) == 1 else array


def rows(updates: Updates) -> list[Update]:
    """Return updates as tuples, in the order of the columns."""
    n = len(updates)
    parts = [columns(columnar.spread(part, n)) for part in (updates.data, updates.times, updates.diffs)]
    return list(zip(*parts, strict=True))


def sorted_rows(updates: Updates) -> list[Update]:
    """Return updates as tuples, sorted."""
    return sorted(rows(updates))


def offsets(lists: Iterable[Sequence[object]]) -> Ints:
    """Return where each list begins when the lists follow each other, and where the last ends."""
    return np.cumsum([0] + [len(items) for items in lists], dtype=np.int64)


def plus(a: Row, b: Row) -> Row:
    """Return the sum of two diffs, lane by lane."""
    return tuple(x + y for x, y in zip(a, b, strict=True))
