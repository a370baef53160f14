"""One Python value to one lane value, and back.

    python_value(type, encode_value(type, value)) == value        up to NaN and -0.0, which are made canonical

Nothing is lost: what does not fit exactly is refused with a ValueError or TypeError that says why.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Final

import numpy as np

from kpg.columns import floats
from kpg.columns.schema import MAX, MAX_DIGITS, NULL, Type
from kpg.columns.symbols import Symbols
from kpg.errors import SchemaMismatch

EPOCH_ORDINAL: Final = datetime.date(1970, 1, 1).toordinal()
EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
FIRST_DAY: Final = datetime.date.min.toordinal() - EPOCH_ORDINAL
LAST_DAY: Final = datetime.date.max.toordinal() - EPOCH_ORDINAL
DAY_MICROSECONDS: Final = 86_400_000_000
EXACT_FLOAT: Final = 2**53  # integers up to here are floats exactly

_EXACT: Final = Context(prec=MAX_DIGITS + 2)  # the user's context may round


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


def encode_value(type_: Type, value: Any, symbols: Symbols) -> int:
    """The lane value of one Python value; ValueError or TypeError, saying why, if it is not one of the type."""
    if value is None:
        if not type_.nullable:
            raise ValueError(f"null is not {type_}")
        return NULL
    lane = _ENCODERS[type_.kind](type_, value, symbols)
    low, high = limits(type_)
    if not low <= lane <= high:
        raise ValueError(f"{show(value)} is out of the range of {type_}")
    return lane


def _encode_int(type_: Type, value: Any, symbols: Symbols) -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise TypeError(_not_a(type_, value))


def _encode_float(type_: Type, value: Any, symbols: Symbols) -> int:
    if isinstance(value, (float, np.floating)):
        nearest = float(value)
        if nearest != value and value == value:  # NumPy's long double
            raise ValueError(f"{value} is not exact as {type_}")
        return floats.to_lane_one(nearest)
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
        value = _numpy_moment(value)
    if not isinstance(value, datetime.datetime):
        raise TypeError(_not_a(type_, value))
    if getattr(value, "nanosecond", 0):  # pandas
        raise ValueError(f"{value} is finer than a microsecond")
    since = (value if value.tzinfo else value.replace(tzinfo=datetime.UTC)) - EPOCH
    return int(since.days * 86_400 + since.seconds) * 1_000_000 + int(since.microseconds)


def _numpy_moment(value: np.datetime64) -> datetime.datetime:
    if np.datetime_data(value)[0] == "ns":
        if value.astype(np.int64) % 1000:
            raise ValueError(f"{value} is finer than a microsecond")
        value = value.astype("M8[us]")
    moment = value.item()
    if isinstance(moment, datetime.datetime):
        return moment
    if isinstance(moment, datetime.date):
        return datetime.datetime(moment.year, moment.month, moment.day)
    raise ValueError(f"{value} is not in the years 1 to 9999, or finer than a microsecond")


def _encode_decimal(type_: Type, value: Any, symbols: Symbols) -> int:
    if not isinstance(value, Decimal):
        return _encode_int(type_, value, symbols) * int(10**type_.scale)
    if not value.is_finite():
        raise ValueError(f"{value} is not a number that {type_} can hold")
    sign, digits, exponent = value.as_tuple()
    shift = int(exponent) + type_.scale
    if not value:
        return 0
    if len(digits) + shift > MAX_DIGITS:  # do not build a number that may be huge
        raise ValueError(f"{show(value)} is out of the range of {type_}")
    number = int("".join(map(str, digits)))
    whole, rest = divmod(number * int(10 ** max(shift, 0)), int(10 ** min(max(-shift, 0), len(digits))))
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


def python_value(type_: Type, value: int) -> Any:
    """The date, datetime or Decimal of a lane value."""
    if type_.kind == "date":
        return datetime.date.fromordinal(value + EPOCH_ORDINAL)
    if type_.kind == "timestamp":
        return EPOCH + datetime.timedelta(microseconds=value)
    return _EXACT.scaleb(Decimal(value), -type_.scale)


def _not_a(type_: Type, value: Any) -> str:
    return f"{show(value)} is of type {type(value).__name__}, not {type_}"


def show(value: Any) -> str:
    """A value for a message, cut short."""
    text = repr(value[:60]) if isinstance(value, (str, bytes)) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
