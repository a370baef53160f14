"""First rows of groups in the order of text. Symbols are replaced by numbers in this order for the evaluation only.

The ranks of symbols change when new symbols are added, their ids do not. So traces hold ids; the histories of the keys
of a task are converted, sorted, evaluated and converted back. Texts are compared only where they decide: among rows of
a group that agree in all lanes before the first text. The ids of these texts are permuted; others stay as they are.
Cost: a sort of the histories, and of the texts that decide.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kpg.columns.lane_values import NULL
from kpg.columns.pause_points import aside
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.text_order import order_keys
from kpg.columns.updates import Ints
from kpg.operators.correction_columns import Corrections, InterestingTimes
from kpg.operators.corrections import evaluate_first
from kpg.trace.key_history import KeyHistory

SORTING: Final = 8  # times the work of reading a number, to sort it


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
    decided = ranked.index(True)  # lanes before the first text
    numbers = SORTING * (inputs.data.size + outputs.data.size)
    tied = aside(numbers, _tied_symbols, (inputs, outputs), ranked, decided)
    ids, places = _by_value(symbols, np.empty(0, np.int64) if tied is None else tied)
    lanes = decided if tied is None else len(ranked)  # without ties, the lanes after them do not matter
    sorted_runs = [aside(numbers, _resort, run, (ids, places), ranked, descending, lanes) for run in (inputs, outputs)]
    corrections = aside(numbers, evaluate_first, limit, copies, times, *sorted_runs)
    return aside(
        SORTING * corrections.data.size + len(ids), _with_symbols, corrections, (ids, places), ranked, descending
    )


def _with_symbols(
    corrections: Corrections, order: tuple[Ints, Ints], ranked: tuple[bool, ...], descending: tuple[bool, ...]
) -> Corrections:
    """Return corrections with symbols in place of what took their place, in the order of their lanes."""
    ids, places = order
    data = corrections.data.copy()
    back = np.argsort(places)
    for lane, (is_symbol, down) in enumerate(zip(ranked, descending, strict=True)):
        if down:
            np.invert(data[lane], out=data[lane])
        if is_symbol:
            data[lane] = _replace(places[back], ids[back], data[lane])
    sorted_ = np.lexsort((*corrections.times[::-1], *data[::-1], corrections.key_index))
    return Corrections(
        corrections.key_index[sorted_],
        np.ascontiguousarray(data[:, sorted_]),
        np.ascontiguousarray(corrections.times[:, sorted_]),
        np.ascontiguousarray(corrections.diffs[:, sorted_]),
    )


def _tied_symbols(runs: tuple[KeyHistory, ...], ranked: tuple[bool, ...], decided: int) -> Ints | None:
    """Return the ids in rows that agree with a different row of their group in the first `decided` value lanes.

    The result is None if there are no such rows, and empty if all their texts are null.
    """
    runs = tuple(run for run in runs if run.data.shape[1])
    if not runs:
        return None
    data = np.concatenate([run.data for run in runs], axis=1)
    key_of = np.concatenate([_keys_of(run) for run in runs])
    order = np.lexsort((*data[:decided][::-1], key_of))
    data, key_of = data[:, order], key_of[order]
    same = (key_of[1:] == key_of[:-1]) & (data[:decided, 1:] == data[:decided, :-1]).all(axis=0)
    tied = same & (data[decided:, 1:] != data[decided:, :-1]).any(axis=0)
    if not tied.any():
        return None
    number = np.concatenate([np.zeros(1, np.int64), np.cumsum(~same)])  # of the rows that agree
    in_tie = np.isin(number, number[1:][tied])
    ids = np.unique(data[:, in_tie][list(ranked)])
    return ids[ids >= 0]


def _by_value(symbols: Symbols, ids: Ints) -> tuple[Ints, Ints]:
    """Return sorted ids, and for each the one that takes its place, so that these are ordered as the values are."""
    if not len(ids):
        return ids, ids
    (keys,) = order_keys(symbols, ids)
    places = np.empty_like(ids)
    places[aside(SORTING * len(keys), np.argsort, keys)] = ids
    return ids, places


def _replace(ids: Ints, others: Ints, lane: Ints) -> Ints:
    """Return a lane with other ids in place of some, which are sorted."""
    if not len(ids):
        return lane
    at = np.minimum(np.searchsorted(ids, lane), len(ids) - 1)
    return np.where(ids[at] == lane, others[at], lane)


def _keys_of(run: KeyHistory) -> Ints:
    return np.repeat(np.arange(len(run.offsets) - 1), np.diff(run.offsets))


def order_by_value(schema: Schema, data: Ints, symbols: Symbols, descending: tuple[bool, ...] = ()) -> Ints:
    """Return the order of rows by value, where symbols count by their texts. Lanes alone would order them by id."""
    lanes = [
        np.where(lane == NULL, NULL, order_keys(symbols, lane)[0]) if type_.is_symbolic else lane
        for lane, type_ in zip(data, schema.lane_types(), strict=True)
    ]
    for lane, down in enumerate(descending):
        if down:
            lanes[lane] = ~lanes[lane]
    order: Ints = aside(SORTING * data.size, np.lexsort, lanes[::-1])
    return order


def _resort(
    run: KeyHistory, places: tuple[Ints, Ints], ranked: tuple[bool, ...], descending: tuple[bool, ...], lanes: int
) -> KeyHistory:
    """Return the history with replaced symbols and complemented lanes, in the order of its first lanes."""
    data = run.data.copy()
    for lane, (is_symbol, down) in enumerate(zip(ranked, descending, strict=True)):
        if is_symbol:
            data[lane] = _replace(*places, data[lane])
        if down:
            np.invert(data[lane], out=data[lane])
    order = np.lexsort((*run.times[::-1], *data[:lanes][::-1], _keys_of(run)))
    return KeyHistory(
        run.offsets,
        np.ascontiguousarray(data[:, order]),
        np.ascontiguousarray(run.times[:, order]),
        np.ascontiguousarray(run.diffs[:, order]),
    )
