"""Decode a lane to a column of values: as Arrow, Python values or NumPy.

decode_list(type, encode_list(type, values, ...), symbols) == values        up to NaN and -0.0, which are canonical
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kpg.columns.schema import Type
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints


def decode_arrow(type_: Type, lane: Ints, symbols: Symbols) -> Any:
    """Return the values of a lane as an Arrow array, chunked if its text takes 2 GiB or more."""
    return type_.definition.decode_arrow(type_, lane, symbols)


def decode_arrow_array(type_: Type, lane: Ints, symbols: Symbols) -> Any:
    """Return the values of a lane as one Arrow array."""
    array = decode_arrow(type_, lane, symbols)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def decode_list(type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
    """Return the values of a lane as Python values, None for null."""
    return type_.definition.decode_list(type_, lane, symbols)


def decode_numpy(type_: Type, lane: Ints, symbols: Symbols) -> Any:
    """Return a lane without nulls as a read-only NumPy array; of objects for strings, binary values and decimals."""
    array = type_.definition.decode_numpy(type_, lane, symbols)
    array.flags.writeable = False
    return array
