"""One column of values to one lane, and back: from Arrow, NumPy or a list of Python values.

    decode(type, encode(type, values)) == values        up to NaN and -0.0, which are made canonical

Conversions lose nothing: a number that does not fit, a fraction of a microsecond, a date outside the years 1 to 9999 or
a value of another type is refused with the row it is in. Only columns of Python objects are looked at one by one.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns import floats
from kpg.columns.schema import MAX, NULL, SYMBOLIC, Type, is_bytes, is_text
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints
from kpg.errors import SchemaMismatch

EPOCH_ORDINAL: Final = datetime.date(1970, 1, 1).toordinal()
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
FIRST_DAY: Final = datetime.date.min.toordinal() - EPOCH_ORDINAL
LAST_DAY: Final = datetime.date.max.toordinal() - EPOCH_ORDINAL
DAY_MICROSECONDS: Final = 86_400_000_000
EXACT_FLOAT: Final = 2**53  # integers up to here are floats exactly


def limits(type_: Type) -> tuple[int, int]:
    """The least and greatest lane value of a type, null aside."""
    if type_.kind == "decimal":
        return 1 - 10**type_.precision, 10**type_.precision - 1
    if type_.kind == "date":
        return FIRST_DAY, LAST_DAY
    if type_.kind == "timestamp":
        return FIRST_DAY * DAY_MICROSECONDS, (LAST_DAY + 1) * DAY_MICROSECONDS - 1
    if type_.kind == "bool":
        return 0, 1
    return NULL + type_.nullable, MAX


# --- from Python values ---------------------------------------------------------------------------------------------


def encode_value(type_: Type, value: Any, symbols: Symbols) -> int:
    """The lane value of one Python value; ValueError or TypeError, saying why, if it is not one of the type."""
    if value is None:
        if not type_.nullable:
            raise ValueError(f"null is not a {type_}")
        return NULL
    lane = _ENCODERS[type_.kind](type_, value, symbols)
    low, high = limits(type_)
    if not low <= lane <= high:
        raise ValueError(f"{_show(value)} is out of the range of {type_}")
    return lane


def _encode_int(type_: Type, value: Any, symbols: Symbols) -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise TypeError(_not_a(type_, value))


def _encode_float(type_: Type, value: Any, symbols: Symbols) -> int:
    if isinstance(value, (float, np.floating)):
        return floats.to_lane_one(float(value))
    number = _encode_int(type_, value, symbols)
    if abs(number) > EXACT_FLOAT:
        raise ValueError(f"{number} may not be exact as {type_}")
    return floats.to_lane_one(float(number))


def _encode_bool(type_: Type, value: Any, symbols: Symbols) -> int:
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    raise TypeError(_not_a(type_, value))


def _encode_string(type_: Type, value: Any, symbols: Symbols) -> int:
    if not isinstance(value, str):
        raise TypeError(_not_a(type_, value))
    try:
        return symbols.intern_one(value if type(value) is str else str.__str__(value))
    except SchemaMismatch as error:
        raise ValueError(f"{error.what}: {error.detail}") from None


def _encode_binary(type_: Type, value: Any, symbols: Symbols) -> int:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(_not_a(type_, value))
    return symbols.intern_one(bytes(value))


def _encode_date(type_: Type, value: Any, symbols: Symbols) -> int:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return int(value.toordinal()) - EPOCH_ORDINAL
    if isinstance(value, np.datetime64) and np.datetime_data(value)[0] == "D" and not np.isnat(value):
        days: int = value.astype(np.int64).item()
        return days
    raise TypeError(_not_a(type_, value))


def _encode_timestamp(type_: Type, value: Any, symbols: Symbols) -> int:
    if isinstance(value, np.datetime64) and not np.isnat(value):
        return _exact_microseconds(value)
    if not isinstance(value, datetime.datetime):
        raise TypeError(_not_a(type_, value))
    if getattr(value, "nanosecond", 0):  # pandas
        raise ValueError(f"{value} is finer than a microsecond")
    since = (value if value.tzinfo else value.replace(tzinfo=datetime.UTC)) - EPOCH
    return int(since.days * 86_400 + since.seconds) * 1_000_000 + int(since.microseconds)


def _exact_microseconds(value: np.datetime64) -> int:
    rounded = value.astype("M8[us]")
    if rounded != value:
        raise ValueError(f"{value} is finer than a microsecond, or too far from 1970")
    since: int = rounded.astype(np.int64).item()
    return since


def _encode_decimal(type_: Type, value: Any, symbols: Symbols) -> int:
    if not isinstance(value, Decimal):
        return _encode_int(type_, value, symbols) * 10**type_.scale
    if not value.is_finite():
        raise ValueError(f"{value} is not a number that {type_} can hold")
    sign, digits, exponent = value.as_tuple()
    shift = int(exponent) + type_.scale
    number = int("".join(map(str, digits)))
    if number and shift > 40:  # far out of range; do not build the number
        raise ValueError(f"{value} is out of the range of {type_}")
    whole, rest = (number * 10**shift, 0) if shift >= 0 else divmod(number, 10 ** min(-shift, len(digits) + 1))
    if rest:
        raise ValueError(f"{value} has more than {type_.scale} digits after the point")
    return -whole if sign else whole


_ENCODERS: Final[dict[str, Callable[[Type, Any, Symbols], int]]] = {
    "int64": _encode_int,
    "float64": _encode_float,
    "bool": _encode_bool,
    "string": _encode_string,
    "binary": _encode_binary,
    "date": _encode_date,
    "timestamp": _encode_timestamp,
    "decimal": _encode_decimal,
}


def encode_list(type_: Type, values: Sequence[Any], name: str, symbols: Symbols) -> Ints:
    """The lane of a column of Python values."""
    found = set(map(type, values))
    kind = type_.kind
    try:
        if kind == "int64" and found == {int} and not type_.nullable:
            return np.array(values, np.int64)
        if kind == "float64" and found == {float}:
            return floats.to_lane(np.array(values, np.float64))
        if kind == "string" and (found == {str} or (type_.nullable and found == {str, type(None)})):
            return symbols.intern(values)
    except (OverflowError, SchemaMismatch):
        pass  # found again below, with its row
    lane = np.empty(len(values), np.int64)
    for row, value in enumerate(values):
        try:
            lane[row] = encode_value(type_, value, symbols)
        except (ValueError, TypeError) as error:
            refuse(type_, name, row, str(error))
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
    null_count = array.null_count if not pa.types.is_dictionary(array.type) else pc.is_null(array).true_count
    if null_count and not type_.nullable:
        refuse(type_, name, start + pc.index(pc.is_null(array), True).as_py(), f"null is not a {type_}")
    if null_count == len(array):
        out[:] = NULL
        return
    try:
        lane = _ARROW_ENCODERS[type_.kind](type_, array, symbols)
    except (pa.ArrowInvalid, OverflowError, SchemaMismatch, ValueError) as error:
        row = _first_failing(type_, array, symbols)
        refuse(type_, name, start + row, f"{_show(_scalar(array, row))} is not a {type_}: {_reason(error)}")
    _check_limits(type_, lane, array if null_count else None, name, start)
    if null_count:
        lane = np.where(pc.is_null(array).to_numpy(zero_copy_only=False), NULL, lane)
    out[:] = lane


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
    return _numbers(array.cast(pa.int8()))  # type: ignore[no-any-return]


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


def _check_limits(type_: Type, lane: Ints, nulls: Any, name: str, start: int) -> None:
    if type_.kind in SYMBOLIC or type_.kind == "float64" or type_.kind == "bool" or not len(lane):
        return
    if type_.kind == "int64" and not type_.nullable:
        return
    low, high = limits(type_)
    if lane.min() >= low and lane.max() <= high:
        return
    wrong = (lane < low) | (lane > high)
    if nulls is not None:
        wrong &= ~pc.is_null(nulls).to_numpy(zero_copy_only=False)
    if wrong.any():
        row = int(np.argmax(wrong))
        refuse(type_, name, start + row, f"{_raw(type_, int(lane[row]))} is out of the range of {type_}")


def _first_failing(type_: Type, array: Any, symbols: Symbols) -> int:
    """The first row whose value cannot be encoded, by halving."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _ARROW_ENCODERS[type_.kind](type_, array.slice(low, middle - low), symbols)
            low = middle
        except (pa.ArrowInvalid, OverflowError, SchemaMismatch, ValueError):
            high = middle
    return low


def _scalar(array: Any, row: int) -> Any:
    try:
        return array[row].as_py()
    except (ValueError, OverflowError):
        return str(array[row])


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
    if array.dtype.kind in "OUS" or array.dtype.kind == "T":
        out[:] = encode_list(type_, array.tolist(), name, symbols)
        return
    if array.dtype.kind not in "iufbM":
        _refuse_type(type_, name, f"NumPy's {array.dtype}")
    if array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] not in ("s", "ms", "us", "ns", "D"):
        array = array.astype("M8[s]" if type_.kind == "timestamp" else "M8[D]")
    encode_arrow(type_, pa.array(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))), name, symbols, out)


# --- back -----------------------------------------------------------------------------------------------------------


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
        return [None if value == NULL else _python_value(type_, value) for value in lane.tolist()]
    if type_.nullable:
        for row in np.flatnonzero(lane == NULL).tolist():
            values[row] = None
    return values


def _python_value(type_: Type, value: int) -> Any:
    if type_.kind == "date":
        return datetime.date.fromordinal(value + EPOCH_ORDINAL)
    if type_.kind == "timestamp":
        return EPOCH + datetime.timedelta(microseconds=value)
    return Decimal(value).scaleb(-type_.scale)


def decode_value(type_: Type, value: int, symbols: Symbols) -> Any:
    """The Python value of one lane value."""
    return decode_list(type_, np.array([value], np.int64), symbols)[0]


# --- errors ---------------------------------------------------------------------------------------------------------


def refuse(type_: Type, name: str, row: int, why: str) -> NoReturn:
    """Say which value of which column cannot be taken."""
    hint = f"Declare the column as {type_.optional()}, or leave such rows out." if why.startswith("null") else None
    if type_.kind == "int64" and type_.nullable and str(NULL) in why:
        hint = "-2**63 stands for null in a nullable column; a column without null can hold it."
    if "after the point" in why or "finer than" in why:
        hint = "Round it first: kpg never drops digits silently."
    detail = why[0].upper() + why[1:] + "."
    raise SchemaMismatch(f"column {name!r} cannot hold the value in row {row}", detail=detail, hint=hint)


def _refuse_type(type_: Type, name: str, found: str) -> NoReturn:
    raise SchemaMismatch(
        f"column {name!r} is {type_}, not {found}",
        hint="Cast the column before inserting it, or declare the relation with its type.",
    )


def _not_a(type_: Type, value: Any) -> str:
    return f"{_show(value)} is a {type(value).__name__}, not a {type_}"


def _show(value: Any) -> str:
    text = repr(value[:60]) if isinstance(value, (str, bytes)) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _raw(type_: Type, lane: int) -> str:
    return str(Decimal(lane).scaleb(-type_.scale)) if type_.kind == "decimal" else str(lane)


def _reason(error: Exception) -> str:
    return (error.detail or error.what) if isinstance(error, SchemaMismatch) else str(error).splitlines()[0]
