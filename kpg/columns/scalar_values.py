"""Encode one Python value as lane values, and decode it.

    decode_value(type, encode_lanes(type, value, symbols), symbols) == value      up to NaN and -0.0

Nothing is lost: a value that does not fit exactly raises an UnfitValue (a ValueError) or a TypeError with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpg.columns.lane_values import NULL
from kpg.columns.schema import Type
from kpg.columns.symbols import Symbols
from kpg.columns.unfit_values import UnfitValue, show


def encode_value(type_: Type, value: Any, symbols: Symbols) -> int:
    """Return the lane value of one Python value, of a type of one lane; raise UnfitValue or TypeError if unfit."""
    assert type_.lanes == 1, f"{type_} takes several lanes"
    if value is None:
        if not type_.nullable:
            raise UnfitValue(f"null is not {type_}", null_hint(type_))
        return NULL
    definition = type_.definition
    lane_value = definition.encode_value(type_, value, symbols)
    low, high = definition.limits(type_)
    if not low <= lane_value <= high:
        hint = definition.range_hint(type_, lane_value)
        raise UnfitValue(f"{show(value)} is out of the range of {type_}", hint)
    return lane_value


def encode_lanes(type_: Type, value: Any, symbols: Symbols) -> tuple[int, ...]:
    """Return the lane values of one Python value, of a type of one lane or of several."""
    if type_.lanes == 1:
        return (encode_value(type_, value, symbols),)
    if value is None:
        if not type_.nullable:
            raise UnfitValue(f"null is not {type_}", null_hint(type_))
        return (NULL,) * type_.lanes
    return type_.definition.encode_lanes(type_, value, symbols)


def decode_value(type_: Type, lane_values: Sequence[int], symbols: Symbols) -> Any:
    """Return the Python value of lane values, None for null."""
    lane = np.array(lane_values, np.int64)
    return type_.definition.decode_list(type_, lane if type_.lanes == 1 else lane.reshape(-1, 1), symbols)[0]


def null_hint(type_: Type) -> str:
    """Return the hint of the error about a null in a column that is not nullable."""
    return f"Declare the column as {type_.optional()}, or leave such rows out."
