"""Read values from text, as casts from text and typed constants do. Text that a type does not have raises ValueError.

The messages are PostgreSQL's: kpg.sql.functions.row_failures gives the SQLSTATE of each.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final
from uuid import UUID

import numpy as np

from kpg.sql.sql_types import INTEGER_LIMITS, MAX_NUMERIC_DIGITS

_SPACE: Final = " \t\n\r\f\v"
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_UUID: Final = re.compile(r"(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}", re.ASCII | re.IGNORECASE)
_WORDS: Final = {
    **{word[:length]: True for word in ("true", "yes") for length in range(1, len(word) + 1)},
    **{word[:length]: False for word in ("false", "no") for length in range(1, len(word) + 1)},
    "on": True, "of": False, "off": False, "1": True, "0": False,
}  # fmt: skip
_MAX_EXPONENT: Final = 1000  # exponents beyond it are out of range of every type
EXACT: Final = Context(prec=2000, Emax=999_999, Emin=-999_999)


def invalid(type_name: str, text: str) -> ValueError:
    """Return the error for text that is no value of a type."""
    return ValueError(f'invalid input syntax for type {type_name}: "{text}"')


def read_integer(type_name: str, text: str) -> int:
    """Return an integer of a type."""
    digits = text.strip(_SPACE)
    if not _INTEGER.fullmatch(digits):
        raise invalid(type_name, text)
    low, high = INTEGER_LIMITS[type_name]
    value = int(digits) if len(digits) < 100 else high + 1
    if not low <= value <= high:
        raise ValueError(f'value "{text}" is out of range for type {type_name}')
    return value


def read_number(text: str) -> Decimal:
    """Return an exact number with all its digits."""
    digits = text.strip(_SPACE)
    if not _NUMBER.fullmatch(digits):
        raise invalid("numeric", text)
    try:
        value = Decimal(digits)
    except InvalidOperation:
        raise ValueError("value overflows numeric format") from None
    if value and abs(value.adjusted()) > _MAX_EXPONENT:
        raise ValueError("value overflows numeric format")
    return value


def rounded_number(value: Decimal, precision: int, scale: int) -> Decimal:
    """Return a number with a scale, rounded half away from zero; raise if it has too many digits."""
    rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
    if rounded and rounded.adjusted() >= precision - scale:
        raise ValueError("numeric field overflow")
    return rounded + 0 if rounded == 0 else rounded


def read_numeric(precision: int, scale: int, text: str) -> Decimal:
    """Return a numeric with the digits of its type."""
    return rounded_number(read_number(text), precision, scale)


def natural_digits(value: Decimal) -> tuple[int, int]:
    """Return the precision and scale that a constant has as it is written."""
    _, digits, exponent = value.as_tuple()
    scale = min(max(0, -int(exponent)), MAX_NUMERIC_DIGITS)
    return min(max(len(digits) + max(0, int(exponent)), scale, 1), MAX_NUMERIC_DIGITS), scale


def read_float(single: bool, text: str) -> float:
    """Return a float, rounded to 32 bits if it is `single`."""
    type_name = "real" if single else "double precision"
    word = text.strip(_SPACE)
    special = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}.get(word.lower().lstrip("+-"))
    if special is not None and word[1:2] not in ("+", "-"):
        return -special if word[0] == "-" else special
    if not _NUMBER.fullmatch(word):
        raise invalid(type_name, text)
    value = float(word)
    with np.errstate(all="ignore"):
        value = float(np.float32(value)) if single else value
    if math.isinf(value) or (value == 0 and any(digit in "123456789" for digit in re.split("[eE]", word)[0])):
        raise ValueError(f'"{word}" is out of range for type {type_name}')
    return value


def read_boolean(text: str) -> bool:
    """Return a truth value: true, yes, on, 1 and their opposites, and prefixes of them."""
    truth = _WORDS.get(text.strip(_SPACE).lower())
    if truth is None:
        raise invalid("boolean", text)
    return truth


def read_uuid(text: str) -> UUID:
    """Return an identifier: 32 hexadecimal digits, with hyphens between groups of four, or in braces."""
    digits = text[1:-1] if text[:1] == "{" and text[-1:] == "}" else text
    if not _UUID.fullmatch(digits):
        raise invalid("uuid", text)
    return UUID(digits.replace("-", ""))


def read_bytes(text: str) -> bytes:
    """Return bytes, written in hexadecimal after \\x, or as characters with octal escapes."""
    if text.startswith("\\x"):
        digits = "".join(text[2:].split())
        odd = next((digit for digit in digits if digit not in "0123456789abcdefABCDEF"), None)
        if odd is not None:
            raise ValueError(f'invalid hexadecimal digit: "{odd}"')
        if len(digits) % 2:
            raise ValueError("invalid hexadecimal data: odd number of digits")
        return bytes.fromhex(digits)
    if not re.fullmatch(r"(?:[^\\]|\\\\|\\[0-3][0-7]{2})*", text, re.DOTALL):
        raise invalid("bytea", text)
    escape = re.compile(rb"\\(\\|[0-3][0-7]{2})")
    return escape.sub(lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 8)]), text.encode())


def padded_bytes(length: int, text: str) -> bytes:
    """Return the bytes of text of type character, with its blanks."""
    return read_bytes(text.ljust(length))


def limited_text(type_name: str, length: int, explicit: bool, text: str) -> str:
    """Return text of at most `length` characters; blanks beyond it are cut, and other characters if `explicit`.

    Text of type character has no trailing blanks in a column.
    """
    if len(text) > length:
        if not explicit and text[length:].strip(" "):
            raise ValueError(f"value too long for type {type_name}({length})")
        text = text[:length]
    return text.rstrip(" ") if type_name == "character" else text


def without_blanks(text: str) -> str:
    """Return text of type character as a column has it."""
    return text.rstrip(" ")
