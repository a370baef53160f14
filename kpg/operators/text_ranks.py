"""First rows by the order of text: symbols are ordered by rank while a group is looked at, and never stored so.

Ranks change when new symbols come, ids do not; so traces hold ids, and only the histories of the keys at hand are
turned into ranks, sorted, evaluated and turned back.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints
from kpg.operators.corrections import Corrections, InterestingTimes, evaluate_first
from kpg.trace.key_history import KeyHistory


def first_by_rank(
    symbols: Symbols,
    ranked: tuple[bool, ...],
    descending: tuple[bool, ...],
    limit: int,
    copies: int,
    keys: Ints,
    times: InterestingTimes,
    inputs: KeyHistory,
    outputs: KeyHistory,
) -> Corrections:
    """The first rows of each group, where some of the leading value lanes are symbols."""
    ranks = symbols.ranks()
    ids = np.empty_like(ranks)
    ids[ranks] = np.arange(len(ranks))
    turned = [_resort(run, ranks, ranked, descending) for run in (inputs, outputs)]
    made = evaluate_first(limit, copies, times, *turned)
    data = made.data.copy()
    for lane, (is_symbol, down) in enumerate(zip(ranked, descending, strict=True)):
        if down:
            np.invert(data[lane], out=data[lane])
        if is_symbol:
            data[lane] = _look_up(ids, data[lane])
    order = np.lexsort((*made.times[::-1], *data[::-1], made.key_index))
    return Corrections(
        made.key_index[order],
        np.ascontiguousarray(data[:, order]),
        np.ascontiguousarray(made.times[:, order]),
        np.ascontiguousarray(made.diffs[:, order]),
    )


def by_value(schema: Schema, data: Ints, symbols: Symbols) -> Ints:
    """The order of rows by their values, where lanes alone would put text in the order it came in."""
    lanes = [
        _look_up(symbols.ranks(), lane) if type_.is_symbolic else lane
        for lane, type_ in zip(data, schema.types, strict=True)
    ]
    return np.lexsort(lanes[::-1])


def _look_up(table: Ints, lane: Ints) -> Ints:
    """The table at each value, null staying null."""
    null = lane == NULL
    return np.where(null, NULL, table[np.where(null, 0, lane)]) if len(table) else lane


def _resort(run: KeyHistory, ranks: Ints, ranked: tuple[bool, ...], descending: tuple[bool, ...]) -> KeyHistory:
    data = run.data.copy()
    for lane, (is_symbol, down) in enumerate(zip(ranked, descending, strict=True)):
        if is_symbol:
            data[lane] = _look_up(ranks, data[lane])
        if down:
            np.invert(data[lane], out=data[lane])
    key_of = np.repeat(np.arange(len(run.offsets) - 1), np.diff(run.offsets))
    order = np.lexsort((*run.times[::-1], *data[::-1], key_of))
    return KeyHistory(
        run.offsets,
        np.ascontiguousarray(data[:, order]),
        np.ascontiguousarray(run.times[:, order]),
        np.ascontiguousarray(run.diffs[:, order]),
    )
