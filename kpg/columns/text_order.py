"""The order of strings and binary values. Their symbol ids are in no order, so this module computes sort keys.

    order_keys(symbols, a, b) = (x, y)   with   x[i] < y[j]  ⇔  value(a[i]) < value(b[j])

If the ranks of the symbol table are up to date or the batch is large, the keys are these ranks. For a small batch, only
its own values are sorted. The key of a null has no meaning. Others may run while many values are sorted.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.pause_points import aside
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints
from kpg.columns.value_order import value_order

_TABLE_TO_BATCH_RATIO = 8  # a batch smaller than an eighth of the symbol table sorts only its own values


def order_keys(symbols: Symbols, *lanes: Ints) -> list[Ints]:
    """Return a number for each id of some lanes; the numbers compare, across lanes, as the values do."""
    if not symbols.ranked and _TABLE_TO_BATCH_RATIO * sum(map(len, lanes)) < len(symbols):
        return _local_keys(symbols, lanes)
    return [symbols.rank_of(lane) for lane in lanes]


def _local_keys(symbols: Symbols, lanes: tuple[Ints, ...]) -> list[Ints]:
    whole = np.concatenate(lanes)
    ids = aside(8 * len(whole), np.unique, whole)  # sorts them
    ids = ids[ids >= 0]
    if not len(ids):
        return list(lanes)
    order = value_order(symbols.values_in_turns(ids))
    ranks = np.empty(len(ids), np.int64)
    ranks[order] = np.arange(len(ids))
    return [aside(4 * len(lane), _ranks_of, ids, ranks, lane) for lane in lanes]


def _ranks_of(ids: Ints, ranks: Ints, lane: Ints) -> Ints:
    """Return the ranks of the ids of a lane; `ids` are sorted."""
    return ranks[np.minimum(np.searchsorted(ids, lane), len(ids) - 1)]
