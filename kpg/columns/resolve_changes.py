"""The meaning of changes to a set or a function of rows: what they add and remove, given the rows that are there.

    resolve_changes(current, rows, diffs, key, order)  =  state after  −  state before,     for the touched keys

A change of +1 makes a row present, and one of -1 absent. Of the rows with equal key one stays. A set is the case in
which all lanes are the key. Cost: a few sorts of the changes and of the current rows; no loop over rows.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.consolidation import consolidate, consolidate_all
from kpg.columns.updates import Ints, Updates, constant
from kpg.columns.upserts import last_row_of_each_key

TIME_ZERO = constant((0,))


def resolve_changes(
    current: Ints, rows: Ints, diffs: Ints, key: list[int], order: tuple[int, ...] | None = None
) -> Updates:
    """Turn a transaction's changes into updates at time 0, given the relation's current rows with their keys.

    Of several changes to one row the last counts. Removals take effect first, and only for rows that are present. Then,
    of the remaining and the inserted rows, the last of each key stays; with an order, the last of those with the
    greatest value. A set is the case in which all lanes are the key. Vectorised: no loop over rows.
    """
    lanes = rows.shape[0]
    all_lanes = list(range(lanes))
    if (diffs > 0).all():
        inserted, removed = rows, rows[:, :0]
    else:
        last = last_row_of_each_key(np.concatenate([rows, diffs.reshape(1, -1)]), all_lanes)
        inserted, removed = last[:lanes, last[lanes] > 0], last[:lanes, last[lanes] < 0]
    left = rows_without(current, removed)
    return difference(last_by_key(np.concatenate([left, inserted], axis=1), key, order), current)


def last_by_key(rows: Ints, key: list[int], order: tuple[int, ...] | None) -> Ints:
    """Return, for each key, the last of the rows with the greatest order, or the last row if there is no order."""
    if len(key) == rows.shape[0]:
        return consolidate(with_diff(rows, 1)).data
    if order is not None:
        rows = np.ascontiguousarray(rows[:, np.lexsort([rows[lane] for lane in reversed(order)])])
    return last_row_of_each_key(rows, key)


def rows_without(rows: Ints, others: Ints) -> Ints:
    """Return the rows that are not among `others`; both are sets."""
    if not rows.shape[1] or not others.shape[1]:
        return rows
    counts = consolidate_all([with_diff(rows, 2), with_diff(others, 1)])
    return np.ascontiguousarray(counts.data[:, np.broadcast_to(counts.diffs[0], len(counts)) == 2])


def difference(after: Ints, before: Ints) -> Updates:
    """Return the updates that turn one set of rows into another."""
    return consolidate_all([with_diff(after, 1), with_diff(before, -1)])


def with_diff(rows: Ints, diff: int) -> Updates:
    """Return rows as updates at time 0, all with one diff."""
    return Updates(np.ascontiguousarray(rows), TIME_ZERO, constant((diff,)))
