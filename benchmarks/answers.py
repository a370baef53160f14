"""Answers of kpg as NumPy columns, to be compared with what peers say."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from benchmarks.data import Ints
from kpg import Changes
from kpg.columns.updates import spread


def columns(changes: Changes) -> tuple[Ints, Ints]:
    """Rows as int64[columns, n], and the diff of each."""
    updates = changes.updates
    return updates.data, spread(updates.diffs, len(updates))[0]


def counts_after(changes: Iterable[Changes], space: int) -> Ints:
    """What changes of (key, count) come to, for each key below `space`; every key must have one count or none."""
    total, present = np.zeros(space, np.int64), np.zeros(space, np.int64)
    for each in changes:
        (keys, counts), diffs = columns(each)
        np.add.at(total, keys, counts * diffs)
        np.add.at(present, keys, diffs)
    assert ((present == 1) == (total != 0)).all() and (present >= 0).all() and (present <= 1).all()
    return total


def rows_after(changes: Iterable[Changes]) -> Ints:
    """The rows that changes come to, int64[columns, n], sorted; every row must be there once."""
    parts = [columns(each) for each in changes]
    data, diffs = np.concatenate([data for data, _ in parts], axis=1), np.concatenate([diffs for _, diffs in parts])
    rows, where = np.unique(data, axis=1, return_inverse=True)
    times = np.bincount(where.reshape(-1), weights=diffs).astype(np.int64)
    assert ((times == 0) | (times == 1)).all()
    return rows[:, times == 1]


def number_after(changes: Iterable[Changes]) -> int:
    """What changes of a single number come to; 0 if nothing is there."""
    return int(sum((data[0] * diffs).sum() for data, diffs in map(columns, changes)))
