"""Write values as text: PostgreSQL's form of each type.

write_any(type, value)     as casts to text, concat and format do
show_value(value)          as psql shows the value of a result, whose type follows from its class
"""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from typing import Any, Final

import numpy as np

_FIXED_EXPONENTS: Final = {False: 15, True: 6}  # floats from this power of ten on are written with an exponent


def write_boolean(value: bool) -> str:
    """Return true or false."""
    return "true" if value else "false"


def write_number(value: int | Decimal) -> str:
    """Return all digits of a number."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def write_float(single: bool, value: float) -> str:
    """Return the shortest digits that read back as the same float."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    digits = np.format_float_scientific(np.float32(value) if single else np.float64(value), unique=True, trim="-")
    mantissa, _, exponent = digits.partition("e")
    power = int(exponent)
    if not -4 <= power < _FIXED_EXPONENTS[single]:
        return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    return f"{Decimal(digits):f}"


def write_date(value: datetime.date) -> str:
    """Return a date in ISO 8601."""
    return value.isoformat()


def write_time(value: datetime.time) -> str:
    """Return a time of day, with as many digits of the fraction as needed."""
    return _trimmed(value.strftime("%H:%M:%S"), value.microsecond)


def write_timestamp(with_zone: bool, value: datetime.datetime) -> str:
    """Return a moment, with the offset of UTC if it has a zone."""
    shown = _trimmed(value.replace(microsecond=0, tzinfo=None).isoformat(" "), value.microsecond)
    return f"{shown}+00" if with_zone else shown


def _trimmed(shown: str, microsecond: int) -> str:
    return shown + f".{microsecond:06d}".rstrip("0") if microsecond else shown


def write_bytes(value: bytes) -> str:
    """Return bytes in hexadecimal."""
    return "\\x" + value.hex()


def write_any(type_name: str, value: Any) -> str:
    """Return a value of a type as text."""
    match type_name:
        case "boolean":
            return write_boolean(value)
        case "real" | "double precision":
            return write_float(type_name == "real", value)
        case "timestamp without time zone" | "timestamp with time zone":
            return write_timestamp(type_name.endswith("with time zone"), value)
        case "time without time zone":
            return write_time(value)
        case "date":
            return write_date(value)
        case "bytea":
            return write_bytes(value)
        case "smallint" | "integer" | "oid" | "bigint" | "numeric":
            return write_number(value)
    if type_name.endswith("[]"):
        return write_array(type_name[:-2], value)
    return str(value)


_PLAIN: Final = re.compile(r'[^\s",{}\\]+')


def write_array(element_name: str, array: tuple[Any, ...]) -> str:
    """Return an array as its literal."""
    return "{" + ",".join("NULL" if value is None else _quoted(output_of(element_name, value)) for value in array) + "}"


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.upper() != "NULL":
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def show_value(value: Any, null: str = "") -> str:
    """Return a Python value of a result as psql shows it; `null` stands for None."""
    match value:
        case None:
            return null
        case bool():
            return "t" if value else "f"
        case float():
            return write_float(False, value)
        case int() | Decimal():
            return write_number(value)
        case datetime.datetime():
            return write_timestamp(value.tzinfo is not None, value)
        case datetime.time():
            return write_time(value)
        case bytes():
            return write_bytes(value)
        case list() | tuple():
            shown = ("NULL" if element is None else _quoted(show_value(element)) for element in value)
            return "{" + ",".join(shown) + "}"
    return str(value)


def output_of(type_name: str, value: Any) -> str:
    """Return a value as output shows it: as a cast to text does, except that truth is one letter."""
    if type_name == "boolean":
        return "t" if value else "f"
    if type_name.startswith("character("):
        return str(value).ljust(int(type_name[10:-1]))
    return write_any(type_name, value)
