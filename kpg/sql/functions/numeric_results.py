"""The digits of numeric results: exact for + - * and sums, at least 16 after the point for quotients.

    +, -       scale max(a, b)          /, avg, variance    scale max(a, b, 16)
    *          scale a + b              sum                 scale a, all 38 digits
    %          scale max(a, b)          sqrt, ln, power     scale max(a, b, 16)

A value that needs more than 38 digits fails its row (22003).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kpg.sql.functions.cast_rules import numeric_of
from kpg.sql.sql_types import MAX_NUMERIC_DIGITS, SqlType, numeric

QUOTIENT_SCALE: Final = 16  # the least number of digits after the point of a quotient


def _digits(types: Sequence[SqlType]) -> tuple[list[int], list[int]]:
    """Return the digits before the point of each type, and those after it."""
    exact = [numeric_of(type_) for type_ in types if type_.is_number or type_.name == "unknown"]
    return [(t.precision or 0) - (t.scale or 0) for t in exact], [t.scale or 0 for t in exact]


def _limited(whole: int, scale: int) -> SqlType:
    scale = min(scale, MAX_NUMERIC_DIGITS)
    return numeric(max(1, min(whole + scale, MAX_NUMERIC_DIGITS)), scale)


def sum_digits(types: Sequence[SqlType]) -> SqlType:
    """Return the type of a + b and a - b."""
    wholes, scales = _digits(types)
    return _limited(max(wholes) + 1, max(scales))


def product_digits(types: Sequence[SqlType]) -> SqlType:
    """Return the type of a * b."""
    wholes, scales = _digits(types)
    return _limited(sum(wholes), sum(scales))


def quotient_digits(types: Sequence[SqlType]) -> SqlType:
    """Return the type of a / b."""
    _, scales = _digits(types)
    return numeric(MAX_NUMERIC_DIGITS, min(max(*scales, QUOTIENT_SCALE), MAX_NUMERIC_DIGITS))


def remainder_digits(types: Sequence[SqlType]) -> SqlType:
    """Return the type of a % b: no remainder exceeds either."""
    wholes, scales = _digits(types)
    return _limited(max(wholes), max(scales))


def same_digits(types: Sequence[SqlType]) -> SqlType:
    """Return the type of the first argument, as -a and abs(a) have it."""
    return numeric_of(types[0])


def total_digits(types: Sequence[SqlType]) -> SqlType:
    """Return the type of sum(a)."""
    return numeric(MAX_NUMERIC_DIGITS, numeric_of(types[0]).scale or 0)


def mean_digits(types: Sequence[SqlType]) -> SqlType:
    """Return the type of avg(a) and of functions whose results have any number of digits."""
    _, scales = _digits(types)
    return numeric(MAX_NUMERIC_DIGITS, max(*scales, QUOTIENT_SCALE))


def whole_digits(types: Sequence[SqlType]) -> SqlType:
    """Return the type of round(a), ceil(a) and floor(a): one digit more may be needed, none after the point."""
    wholes, _ = _digits(types[:1])
    return _limited(wholes[0] + 1, 0)


def rounded_digits(types: Sequence[SqlType], constants: Sequence[Any] = (None, None)) -> SqlType:
    """Return the type of round(a, digits): `digits` after the point if it is constant, else as many as a has."""
    wholes, scales = _digits(types[:1])
    digits = constants[1] if len(constants) > 1 else None
    scale = scales[0] if digits is None else max(0, min(int(digits), MAX_NUMERIC_DIGITS - 1))
    return _limited(wholes[0] + 1, scale)
