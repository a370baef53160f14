"""What changes to a relation come to, given what is there: one function for all semantics, without a loop over rows.

    settle(there, rows, diffs, key, order)  =  the state after  −  the state before        of the rows it touches

Of several changes to one row the last counts. Rows that go take away what is there, and nothing else. Then, of what is
left and the rows that come, the last of each key stays; with an order, the last of those with the greatest. A set is
the case in which all lanes are the key. Cost: a few sorts of the changes and of the rows there that have their keys.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.consolidation import consolidate, consolidate_all
from kpg.columns.updates import Ints, Updates, constant
from kpg.columns.upserts import last_of_each

NOW = constant((0,))


def settle(there: Ints, rows: Ints, diffs: Ints, key: list[int], order: int | None = None) -> Updates:
    """The updates, at time 0, that bring the rows `there` to what the changes say."""
    lanes = rows.shape[0]
    everything = list(range(lanes))
    if (diffs > 0).all():
        coming, going = rows, rows[:, :0]
    else:
        told = last_of_each(np.concatenate([rows, diffs.reshape(1, -1)]), everything)
        coming, going = told[:lanes, told[lanes] > 0], told[:lanes, told[lanes] < 0]
    left = without(there, going)
    return difference(remaining(np.concatenate([left, coming], axis=1), key, order), there)


def remaining(rows: Ints, key: list[int], order: int | None) -> Ints:
    """Of the rows with equal key, the last of those with the greatest order, or simply the last."""
    if len(key) == rows.shape[0]:
        return consolidate(counted(rows, 1)).data
    if order is not None:
        rows = np.ascontiguousarray(rows[:, np.argsort(rows[order], kind="stable")])
    return last_of_each(rows, key)


def without(rows: Ints, others: Ints) -> Ints:
    """The rows that are not among others; both are sets."""
    if not rows.shape[1] or not others.shape[1]:
        return rows
    found = consolidate_all([counted(rows, 2), counted(others, 1)])
    return np.ascontiguousarray(found.data[:, np.broadcast_to(found.diffs[0], len(found)) == 2])


def difference(after: Ints, before: Ints) -> Updates:
    """What makes one set of rows another."""
    return consolidate_all([counted(after, 1), counted(before, -1)])


def counted(rows: Ints, times: int) -> Updates:
    """Rows, each so often."""
    return Updates(np.ascontiguousarray(rows), NOW, constant((times,)))
