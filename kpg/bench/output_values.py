"""The final value of an output, from the changes that it gave: NumPy columns to compare with an expected answer.

    value = Σ diff over all changes of a row; an output of a set has each row once or not at all

Raises `WrongAnswer` if the changes cannot be those of such an output.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kpg.api.changes import Changes
from kpg.bench.data.graphs import Ints
from kpg.columns.updates import spread
from kpg.errors import WrongAnswer


def columns(changes: Changes) -> tuple[Ints, Ints]:
    """Return the changed rows as int64[columns, n], and the diff of each."""
    updates = changes.updates
    return updates.data, spread(updates.diffs, len(updates))[0]


def counts_after(changes: Iterable[Changes], space: int, names: Ints | None = None) -> Ints:
    """Return the count of each dense key below `space`, from changes of (key, count).

    With `names`, the changes have 62-bit keys (`key_streams.wide`).
    """
    from kpg.bench.data.key_streams import DenseKeys

    dense = None if names is None else DenseKeys(names)
    total, present = np.zeros(space, np.int64), np.zeros(space, np.int64)
    for step in changes:
        (keys, counts), diffs = columns(step)
        keys = keys if dense is None else dense.of(keys)
        np.add.at(total, keys, counts * diffs)
        np.add.at(present, keys, diffs)
    if not (((present == 1) == (total != 0)).all() and (present >= 0).all() and (present <= 1).all()):
        raise WrongAnswer("a key has more than one count")
    return total


def rows_after(changes: Iterable[Changes]) -> Ints:
    """Return the final rows, int64[columns, n], sorted."""
    parts = [columns(step) for step in changes]
    data, diffs = np.concatenate([data for data, _ in parts], axis=1), np.concatenate([diffs for _, diffs in parts])
    rows, position = np.unique(data, axis=1, return_inverse=True)
    times = np.bincount(position.reshape(-1), weights=diffs).astype(np.int64)
    if not ((times == 0) | (times == 1)).all():
        raise WrongAnswer("an output has a row more than once, or less than none of it")
    return rows[:, times == 1]


def number_after(changes: Iterable[Changes]) -> int:
    """Return the final value of an output of one number; 0 if it has no row."""
    return int(sum((data[0] * diffs).sum() for data, diffs in map(columns, changes)))
