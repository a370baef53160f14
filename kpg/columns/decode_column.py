"""A lane back to the column of values that it was encoded from: as Arrow, or as Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpg.columns import floats
from kpg.columns.scalar_values import python_value
from kpg.columns.schema import NULL, SYMBOLIC, Type
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints


def decode_arrow(type_: Type, lane: Ints, symbols: Symbols) -> Any:
    """The values of a lane as an Arrow array (chunked if its text is 2 GiB or more)."""
    if type_.kind in SYMBOLIC:
        return symbols.text(lane, type_.to_arrow())
    null = lane == NULL if type_.nullable else None
    if null is not None and not null.any():
        null = None
    if type_.kind == "float64":
        return pa.array(floats.from_lane(lane), mask=null)
    if type_.kind == "bool":
        return pa.array(lane == 1, mask=null)
    if type_.kind == "date":
        days = lane if null is None else np.where(null, 0, lane)
        return pa.array(days.astype(np.int32), mask=null).cast(pa.date32())
    if type_.kind == "decimal":
        return _decimals(type_, lane, null)
    numbers = pa.array(lane, mask=null)
    return numbers if type_.kind == "int64" else numbers.cast(pa.timestamp("us", tz="UTC"))


def _decimals(type_: Type, lane: Ints, null: npt.NDArray[np.bool_] | None) -> Any:
    words = np.empty((len(lane), 2), np.int64)
    words[:, 0] = lane
    words[:, 1] = lane >> np.int64(63)
    valid = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little").tobytes())
    return pa.Array.from_buffers(type_.to_arrow(), len(lane), [valid, pa.py_buffer(words.tobytes())])


def decode_list(type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
    """The values of a lane as Python values, None for null."""
    if type_.kind in SYMBOLIC:
        return symbols.values(lane)
    if type_.kind == "float64":
        values: list[Any] = floats.from_lane(lane).tolist()
    elif type_.kind == "bool":
        values = (lane == 1).tolist()
    elif type_.kind == "int64":
        values = lane.tolist()
    else:
        return [None if value == NULL else python_value(type_, value) for value in lane.tolist()]
    if type_.nullable:
        for row in np.flatnonzero(lane == NULL).tolist():
            values[row] = None
    return values


def decode_value(type_: Type, value: int, symbols: Symbols) -> Any:
    """The Python value of one lane value."""
    return decode_list(type_, np.array([value], np.int64), symbols)[0]
