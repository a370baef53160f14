"""First rows of groups in the order of text. Symbols are replaced by their ranks during the evaluation only.

The ranks of symbols change when new symbols are added, their ids do not. So traces hold ids; the histories of the keys
of a task are converted to ranks, sorted, evaluated and converted back.
Cost: a sort of these histories.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints
from kpg.operators.correction_columns import Corrections, InterestingTimes
from kpg.operators.corrections import evaluate_first
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
    """Evaluate the first rows of each group, where some of the leading value lanes are symbols."""
    ranks = symbols.ranks()
    ids = np.empty_like(ranks)
    ids[ranks] = np.arange(len(ranks))
    ranked_runs = [_resort(run, ranks, ranked, descending) for run in (inputs, outputs)]
    corrections = evaluate_first(limit, copies, times, *ranked_runs)
    data = corrections.data.copy()
    for lane, (is_symbol, down) in enumerate(zip(ranked, descending, strict=True)):
        if down:
            np.invert(data[lane], out=data[lane])
        if is_symbol:
            data[lane] = _map_symbols(ids, data[lane])
    order = np.lexsort((*corrections.times[::-1], *data[::-1], corrections.key_index))
    return Corrections(
        corrections.key_index[order],
        np.ascontiguousarray(data[:, order]),
        np.ascontiguousarray(corrections.times[:, order]),
        np.ascontiguousarray(corrections.diffs[:, order]),
    )


def order_by_value(schema: Schema, data: Ints, symbols: Symbols, descending: tuple[bool, ...] = ()) -> Ints:
    """Return the order of rows by value, where symbols count by their texts. Lanes alone would order them by id."""
    lanes = [
        _map_symbols(symbols.ranks(), lane) if type_.is_symbolic else lane
        for lane, type_ in zip(data, schema.lane_types(), strict=True)
    ]
    for lane, down in enumerate(descending):
        if down:
            lanes[lane] = ~lanes[lane]
    return np.lexsort(lanes[::-1])


def _map_symbols(table: Ints, lane: Ints) -> Ints:
    """Return the table's entry for each value; null stays null."""
    null = lane == NULL
    return np.where(null, NULL, table[np.where(null, 0, lane)]) if len(table) else lane


def _resort(run: KeyHistory, ranks: Ints, ranked: tuple[bool, ...], descending: tuple[bool, ...]) -> KeyHistory:
    data = run.data.copy()
    for lane, (is_symbol, down) in enumerate(zip(ranked, descending, strict=True)):
        if is_symbol:
            data[lane] = _map_symbols(ranks, data[lane])
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
