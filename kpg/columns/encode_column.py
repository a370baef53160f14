"""Encode one column of Arrow, NumPy or Python values as its lanes. kpg.columns.decode_column is the inverse.

    decode(type, encode(type, values)) == values        up to NaN and -0.0, which are canonical

Conversions lose nothing. A number that does not fit, a fraction of a microsecond, a date outside the years 1 to 9999 or
a value of another type raises SchemaMismatch, which names the column and the row. Only columns of Python objects run
Python code for each value. "The lane" of a type of several lanes is a block int64[lanes, n], and so is `out`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.lane_values import NULL
from kpg.columns.scalar_values import encode_lanes, encode_value, null_hint
from kpg.columns.schema import INT64, Type
from kpg.columns.symbols import Symbols
from kpg.columns.unfit_values import show
from kpg.columns.updates import Ints
from kpg.errors import SchemaMismatch

SLICE_ROWS = 1 << 15  # rows converted at a time, so that all steps of a conversion find them in the cache
_NoneType = type(None)
_CONVERSION_ERRORS: Final = (pa.ArrowException, OverflowError, SchemaMismatch, ValueError)


# --- from Python values -----------------------------------------------------------------------------------------------


def encode_list(type_: Type, values: Sequence[Any], name: str, symbols: Symbols) -> Ints:
    """Return the lane of a column of Python values; `name` is the column's, for errors."""
    lane = _encode_plain(type_, values, symbols)
    if lane is not None:
        return lane
    lane = empty_lane(type_, len(values))
    for row, value in enumerate(values):
        try:
            lane[..., row] = (
                encode_value(type_, value, symbols) if type_.lanes == 1 else encode_lanes(type_, value, symbols)
            )
        except (ValueError, TypeError) as error:
            refuse(name, row, str(error), getattr(error, "hint", None))
    return lane


def empty_lane(type_: Type, n: int) -> Ints:
    """Return memory for n values of a type: int64[n], or int64[lanes, n] if it has several lanes."""
    return np.empty(n if type_.lanes == 1 else (type_.lanes, n), np.int64)


def _encode_plain(type_: Type, values: Sequence[Any], symbols: Symbols) -> Ints | None:
    """Return the lane of values of exactly the type's usual class, all encoded together; None if they are not."""
    classes = set(map(type, values))
    has_null = _NoneType in classes
    if has_null:
        classes.remove(_NoneType)
    definition = type_.definition
    if classes != {definition.plain_class} or (has_null and not type_.nullable):
        return None
    return definition.encode_plain(type_, values, has_null, symbols)


# --- from Arrow -----------------------------------------------------------------------------------------------------


def encode_arrow(type_: Type, array: Any, name: str, symbols: Symbols, out: Ints, start: int = 0) -> None:
    """Write the lane of an Arrow array or chunked array to `out`; errors count rows from `start`."""
    if isinstance(array, pa.ChunkedArray) or (len(array) > SLICE_ROWS and not type_.is_symbolic):
        offset = 0
        for part in array.chunks if isinstance(array, pa.ChunkedArray) else _slices(array):
            encode_arrow(type_, part, name, symbols, out[..., offset : offset + len(part)], start + offset)
            offset += len(part)
        return
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        array = pc.call_function("run_end_decode", [array])
    definition = type_.definition
    if pa.types.is_dictionary(array.type) and not definition.is_symbolic:
        array = array.dictionary_decode()
    if not _accepts(type_, array.type):
        _refuse_type(type_, name, str(array.type))
    null = pc.is_null(array).to_numpy(zero_copy_only=False) if array.null_count else None
    if null is not None and not type_.nullable:
        refuse(name, start + int(np.argmax(null)), f"null is not {type_}", null_hint(type_))
    if array.null_count == len(array):
        out[:] = NULL
        return
    try:
        lane = definition.encode_arrow(type_, array, symbols)
    except _CONVERSION_ERRORS as error:
        row = _first_unfit_row(type_, array, symbols)
        refuse(name, start + row, f"{_shown(array, row)} is not {type_}: {_reason(error)}", _hint(error))
    _check_limits(type_, lane, null, name, start)
    out[:] = lane
    if null is not None:
        out[..., null] = NULL


def _slices(array: Any) -> Iterator[Any]:
    for start in range(0, len(array), SLICE_ROWS):
        yield array.slice(start, SLICE_ROWS)


def _accepts(type_: Type, source: pa.DataType) -> bool:
    if pa.types.is_null(source):
        return True
    if pa.types.is_dictionary(source):
        source = source.value_type
    return type_.definition.accepts_arrow(source)


def _check_limits(type_: Type, lane: Ints, null: npt.NDArray[np.bool_] | None, name: str, start: int) -> None:
    if type_.lanes > 1:  # the type has checked them
        return
    if type_.is_symbolic:
        _check_dictionary_nulls(type_, lane, null, name, start)
        return
    low, high = type_.limits()
    if low == NULL or (null is None and low <= lane.min() and lane.max() <= high):
        return  # every lane value is a value, or all of these are
    outside = (lane < low) | (lane > high)
    if null is not None:
        outside &= ~null
    if np.count_nonzero(outside):
        row = int(np.argmax(outside))
        lane_value = int(lane[row])
        why = f"{type_.definition.show_lane(type_, lane_value)} is out of the range of {type_}"
        refuse(name, start + row, why, type_.definition.range_hint(type_, lane_value))


def _check_dictionary_nulls(type_: Type, lane: Ints, null: npt.NDArray[np.bool_] | None, name: str, start: int) -> None:
    """Refuse a null among the values of an Arrow dictionary, which the array's own null count leaves out."""
    if type_.nullable:
        return
    missing = lane == NULL
    if null is not None:
        missing &= ~null
    if np.count_nonzero(missing):
        refuse(name, start + int(np.argmax(missing)), f"null is not {type_}", null_hint(type_))


def _first_unfit_row(type_: Type, array: Any, symbols: Symbols) -> int:
    """Return the first row with a value that cannot be encoded, by bisection."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            type_.definition.encode_arrow(type_, array.slice(low, middle - low), symbols)
            low = middle
        except _CONVERSION_ERRORS:
            high = middle
    return low


def _shown(array: Any, row: int) -> str:
    try:
        return show(array[row].as_py())
    except (ValueError, OverflowError):  # text that is not UTF-8, a moment that Python does not know
        return "it"


# --- from NumPy -----------------------------------------------------------------------------------------------------


def encode_numpy(type_: Type, array: npt.NDArray[Any], name: str, symbols: Symbols, out: Ints) -> None:
    """Write the lane of a NumPy array of one dimension to `out`."""
    if array.dtype == np.int64 and type_ == INT64:
        out[:] = array
        return
    if isinstance(array, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(array)
        encode_arrow(type_, pa.array(array.data, mask=mask), name, symbols, out)
        return
    if array.dtype.kind in "OUST":  # of Python objects, or of text and bytes of fixed or any width
        out[:] = encode_list(type_, array.tolist(), name, symbols)
        return
    if array.dtype.kind not in "iufbM":
        _refuse_type(type_, name, f"NumPy's {array.dtype}")
    if array.dtype.kind == "M":
        array = _with_arrow_unit(type_, array)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    try:
        arrow = pa.array(np.ascontiguousarray(native))
    except pa.ArrowException:
        _refuse_type(type_, name, f"NumPy's {array.dtype}")
    encode_arrow(type_, arrow, name, symbols, out)


def _with_arrow_unit(type_: Type, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return dates and timestamps in a unit that Arrow supports."""
    unit = np.datetime_data(array.dtype)
    target = type_.definition.datetime_unit
    if unit == ("D", 1) and target == "s":
        return array.astype("M8[s]")
    coarse = unit[0] in ("Y", "M", "W") and target == "D"
    if unit[1] == 1 and unit[0] in ("D", "s", "ms", "us", "ns"):
        return array
    return array.astype("M8[D]" if coarse else "M8[s]" if unit[0] in ("Y", "M", "W", "D", "h", "m") else "M8[us]")


# --- errors ---------------------------------------------------------------------------------------------------------


def refuse(name: str, row: int, why: str, hint: str | None = None) -> NoReturn:
    """Raise SchemaMismatch for the value of one row of a column."""
    detail = why[0].upper() + why[1:].removesuffix(".") + "."
    raise SchemaMismatch(f"column {name!r} cannot hold the value in row {row}", detail=detail, hint=hint)


def _refuse_type(type_: Type, name: str, given: str) -> NoReturn:
    raise SchemaMismatch(
        f"column {name!r} is {type_}, not {given}",
        hint="Cast the column before inserting it, or declare the relation with its type.",
    )


def _reason(error: Exception) -> str:
    if not isinstance(error, SchemaMismatch):
        return str(error).splitlines()[0]
    return f"{error.what}, {error.detail}" if error.detail else error.what


def _hint(error: Exception) -> str | None:
    return error.hint if isinstance(error, SchemaMismatch) else None
