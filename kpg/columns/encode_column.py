"""One column of values to one lane: from Arrow, NumPy or a list of Python values. kpg.columns.decode_column is the way back.

    decode(type, encode(type, values)) == values        up to NaN and -0.0, which are made canonical

Conversions lose nothing: a number that does not fit, a fraction of a microsecond, a date outside the years 1 to 9999 or
a value of another type is refused with the row it is in. Only columns of Python objects are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns import floats
from kpg.columns.scalar_values import encode_value, limits, show
from kpg.columns.schema import NULL, SYMBOLIC, Type, is_bytes, is_text
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints
from kpg.errors import SchemaMismatch

_NoneType = type(None)
_CANNOT: Final = (pa.ArrowException, OverflowError, SchemaMismatch, ValueError)
_PLAIN: Final[dict[str, set[type]]] = {
    "int64": {int},
    "float64": {float},
    "bool": {bool},
    "string": {str},
    "binary": {bytes},
}


# --- from Python values ----


def encode_list(type_: Type, values: Sequence[Any], name: str, symbols: Symbols) -> Ints:
    """The lane of a column of Python values."""
    lane = _encode_plain(type_, values, symbols)
    if lane is not None:
        return lane
    lane = np.empty(len(values), np.int64)
    for row, value in enumerate(values):
        try:
            lane[row] = encode_value(type_, value, symbols)
        except (ValueError, TypeError) as error:
            refuse(type_, name, row, str(error))
    return lane


def _encode_plain(type_: Type, values: Sequence[Any], symbols: Symbols) -> Ints | None:
    """The lane of values of exactly the usual Python type, made without looking at each; None if they are not."""
    found = set(map(type, values))
    has_null = _NoneType in found
    if has_null:
        found.remove(_NoneType)
    if found != _PLAIN.get(type_.kind) or (has_null and not type_.nullable):
        return None
    if type_.kind in SYMBOLIC:
        try:
            return symbols.intern(values)
        except SchemaMismatch:
            return None  # found again, with its row
    present = [0 if value is None else value for value in values] if has_null else values
    if type_.kind == "float64":
        lane = floats.to_lane(np.array(present, np.float64))
    else:
        try:
            lane = np.array(present, np.int64)
        except OverflowError:
            return None
        if type_.nullable and np.count_nonzero(lane == NULL):
            return None
    if has_null:
        lane[[row for row, value in enumerate(values) if value is None]] = NULL
    return lane


# --- from Arrow -----------------------------------------------------------------------------------------------------


def encode_arrow(type_: Type, array: Any, name: str, symbols: Symbols, out: Ints, start: int = 0) -> None:
    """Write the lane of an Arrow array or chunked array to `out`; `start` is the row to count from in errors."""
    if isinstance(array, pa.ChunkedArray):
        done = 0
        for chunk in array.chunks:
            encode_arrow(type_, chunk, name, symbols, out[done : done + len(chunk)], start + done)
            done += len(chunk)
        return
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        array = pc.call_function("run_end_decode", [array])
    if pa.types.is_dictionary(array.type) and type_.kind not in SYMBOLIC:
        array = array.dictionary_decode()
    if not _accepts(type_, array.type):
        _refuse_type(type_, name, str(array.type))
    null = pc.is_null(array).to_numpy(zero_copy_only=False) if array.null_count else None
    if null is not None and not type_.nullable:
        refuse(type_, name, start + int(np.argmax(null)), f"null is not {type_}")
    if array.null_count == len(array):
        out[:] = NULL
        return
    try:
        lane = _ARROW_ENCODERS[type_.kind](type_, array, symbols)
    except _CANNOT as error:
        row = _first_failing(type_, array, symbols)
        refuse(type_, name, start + row, f"{_shown(array, row)} is not {type_}: {_reason(error)}", _hint(error))
    _check_limits(type_, lane, null, name, start)
    out[:] = lane if null is None else np.where(null, NULL, lane)


def _accepts(type_: Type, source: pa.DataType) -> bool:
    kinds = pa.types
    if kinds.is_null(source):
        return True
    if kinds.is_dictionary(source):
        source = source.value_type
    if type_.kind == "int64":
        return kinds.is_integer(source)
    if type_.kind == "float64":
        return kinds.is_floating(source) or kinds.is_integer(source)
    if type_.kind == "decimal":
        return kinds.is_decimal(source) or kinds.is_integer(source)
    test: dict[str, Callable[[pa.DataType], bool]] = {
        "bool": kinds.is_boolean,
        "string": is_text,
        "binary": is_bytes,
        "date": kinds.is_date,
        "timestamp": kinds.is_timestamp,
    }
    return bool(test[type_.kind](source))


def _numbers(array: Any) -> Any:
    """The values of an Arrow array of fixed width as NumPy, 0 where null."""
    if array.null_count:
        array = pc.fill_null(array, 0)
    return array.to_numpy(zero_copy_only=False)


def _int_from_arrow(type_: Type, array: Any, symbols: Symbols) -> Ints:
    return _numbers(array.cast(pa.int64()))  # type: ignore[no-any-return]


def _float_from_arrow(type_: Type, array: Any, symbols: Symbols) -> Ints:
    return floats.to_lane(_numbers(array.cast(pa.float64())))


def _bool_from_arrow(type_: Type, array: Any, symbols: Symbols) -> Ints:
    return _numbers(array.cast(pa.int8())).astype(np.int64)  # type: ignore[no-any-return]


def _date_from_arrow(type_: Type, array: Any, symbols: Symbols) -> Ints:
    return _numbers(array.cast(pa.date32()).cast(pa.int32())).astype(np.int64)  # type: ignore[no-any-return]


def _timestamp_from_arrow(type_: Type, array: Any, symbols: Symbols) -> Ints:
    return _numbers(array.cast(pa.timestamp("us", tz=array.type.tz)).cast(pa.int64()))  # type: ignore[no-any-return]


def _decimal_from_arrow(type_: Type, array: Any, symbols: Symbols) -> Ints:
    digits = pa.decimal128(38, type_.scale)
    exact = pc.fill_null(array.cast(digits), pa.scalar(Decimal(0), digits))
    words = np.frombuffer(exact.buffers()[1], np.int64)[2 * exact.offset : 2 * (exact.offset + len(exact))]
    low, high = words[0::2], words[1::2]
    if (high != low >> np.int64(63)).any():
        raise OverflowError("out of range")
    return low


def _symbols_from_arrow(type_: Type, array: Any, symbols: Symbols) -> Ints:
    return symbols.intern(array)


_ARROW_ENCODERS: Final[dict[str, Callable[[Type, Any, Symbols], Ints]]] = {
    "int64": _int_from_arrow,
    "float64": _float_from_arrow,
    "bool": _bool_from_arrow,
    "string": _symbols_from_arrow,
    "binary": _symbols_from_arrow,
    "date": _date_from_arrow,
    "timestamp": _timestamp_from_arrow,
    "decimal": _decimal_from_arrow,
}


def _check_limits(type_: Type, lane: Ints, null: npt.NDArray[np.bool_] | None, name: str, start: int) -> None:
    low, high = limits(type_)
    if low == NULL and type_.kind not in SYMBOLIC:  # any lane value will do
        return
    wrong = (lane < low) | (lane > high)
    if type_.kind in SYMBOLIC:
        wrong = (lane == NULL) & (not type_.nullable)  # a null among the values of an Arrow dictionary
    if null is not None:
        wrong &= ~null
    if np.count_nonzero(wrong):
        row = int(np.argmax(wrong))
        outside = f"{_raw(type_, int(lane[row]))} is out of the range of {type_}"
        refuse(type_, name, start + row, f"null is not {type_}" if type_.kind in SYMBOLIC else outside)


def _first_failing(type_: Type, array: Any, symbols: Symbols) -> int:
    """The first row whose value cannot be encoded, by halving."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _ARROW_ENCODERS[type_.kind](type_, array.slice(low, middle - low), symbols)
            low = middle
        except _CANNOT:
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
    if array.dtype == np.int64 and type_.kind == "int64" and not type_.nullable:
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
        array = _arrow_unit(type_, array)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    try:
        arrow = pa.array(np.ascontiguousarray(native))
    except pa.ArrowException:
        _refuse_type(type_, name, f"NumPy's {array.dtype}")
    encode_arrow(type_, arrow, name, symbols, out)


def _arrow_unit(type_: Type, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Dates and moments in a unit that Arrow has."""
    unit = np.datetime_data(array.dtype)
    if unit == ("D", 1) and type_.kind == "timestamp":
        return array.astype("M8[s]")
    coarse = unit[0] in ("Y", "M", "W") and type_.kind == "date"
    if unit[1] == 1 and unit[0] in ("D", "s", "ms", "us", "ns"):
        return array
    return array.astype("M8[D]" if coarse else "M8[s]" if unit[0] in ("Y", "M", "W", "D", "h", "m") else "M8[us]")


# --- errors ---------------------------------------------------------------------------------------------------------


def refuse(type_: Type, name: str, row: int, why: str, hint: str | None = None) -> NoReturn:
    """Say which value of which column cannot be taken."""
    if why.startswith("null"):
        hint = f"Declare the column as {type_.optional()}, or leave such rows out."
    if type_.kind == "int64" and type_.nullable and str(NULL) in why:
        hint = "-2**63 stands for null in a nullable column; a column without null can hold it."
    if "surrogate" in why:
        hint = "Decode the bytes with the right encoding, or use a binary column."
    if "after the point" in why or "finer than" in why:
        hint = "Round it first: kpg never drops digits silently."
    detail = why[0].upper() + why[1:].removesuffix(".") + "."
    raise SchemaMismatch(f"column {name!r} cannot hold the value in row {row}", detail=detail, hint=hint)


def _refuse_type(type_: Type, name: str, found: str) -> NoReturn:
    raise SchemaMismatch(
        f"column {name!r} is {type_}, not {found}",
        hint="Cast the column before inserting it, or declare the relation with its type.",
    )


def _raw(type_: Type, lane: int) -> str:
    return str(Decimal(lane).scaleb(-type_.scale)) if type_.kind == "decimal" else str(lane)


def _reason(error: Exception) -> str:
    if not isinstance(error, SchemaMismatch):
        return str(error).splitlines()[0]
    return f"{error.what}, {error.detail}" if error.detail else error.what


def _hint(error: Exception) -> str | None:
    return error.hint if isinstance(error, SchemaMismatch) else None
