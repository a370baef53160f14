"""Arithmetic of smallint, integer and bigint on lanes: exact, or the row fails.

`type_name` is the type of the result, whose range is checked. Division and remainder round towards zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from kpg.columns.lane_values import NULL
from kpg.columns.overflow import absolute_ints, add_ints, multiply_ints, negate_ints, subtract_ints
from kpg.columns.row_functions import (
    QUOTIENT_FUNCTION,
    REMAINDER_FUNCTION,
    ROW_FUNCTIONS,
    RowFunction,
    row_function,
    within,
)
from kpg.columns.updates import Ints
from kpg.sql.sql_types import INTEGER_LIMITS

Bools: TypeAlias = npt.NDArray[np.bool_]
Failures: TypeAlias = tuple[tuple[Bools, str], ...]
Computed: TypeAlias = tuple[Any, Failures]

DIVISION_BY_ZERO: Final = "division by zero"
_CHECKED: Final[dict[str, Callable[..., Any]]] = {
    "+": add_ints,
    "-": subtract_ints,
    "*": multiply_ints,
    "neg": negate_ints,
    "abs": absolute_ints,
}
_PLAIN: Final[dict[str, Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply, "neg": np.negative, "abs": np.abs}
_BITS: Final[dict[str, Any]] = {"&": np.bitwise_and, "|": np.bitwise_or, "#": np.bitwise_xor, "~": np.invert}
_WIDTHS: Final = {"smallint": 16, "integer": 32, "oid": 32, "bigint": 64}


def in_range(type_name: str, lane: Ints) -> Computed:
    """Return numbers as a type; those out of its range fail."""
    if type_name == "bigint":
        return lane, ()
    low, high = INTEGER_LIMITS[type_name]
    return lane, (((lane < low) | (lane > high), f"{type_name} out of range"),)


def integer_operation(op: str, type_name: str, *operands: Ints) -> Computed:
    """Return the result of + - *, a sign or a magnitude."""
    if type_name != "bigint":  # 64 bits hold every result
        with np.errstate(over="ignore"):
            return in_range(type_name, _PLAIN[op](*operands))
    values, failed = _CHECKED[op](*operands)
    return values, () if failed is None else ((failed, "bigint out of range"),)


def divide_integers(type_name: str, a: Ints, b: Ints) -> Computed:
    """Return a / b, rounded towards zero."""
    zero = b == 0
    overflow = (a == NULL) & (b == -1)
    divisor = np.where(zero | overflow, 1, b)
    quotient = a // divisor
    quotient += (quotient < 0) & (quotient * divisor != a)
    _, failures = in_range(type_name, quotient)
    return quotient, ((zero, DIVISION_BY_ZERO), (overflow, f"{type_name} out of range"), *failures)


def remainder_integers(a: Ints, b: Ints) -> Computed:
    """Return the remainder of a / b, with the sign of a."""
    zero = b == 0
    return np.fmod(a, np.where(zero | (b == -1), 1, b)), ((zero, DIVISION_BY_ZERO),)


def bit_operation(op: str, *operands: Ints) -> Ints:
    """Return the result of an operation on bits."""
    return np.asarray(_BITS[op](*operands))


def shift_bits(op: str, type_name: str, a: Ints, b: Ints) -> Ints:
    """Return a shifted by b bits; the processor takes the count modulo 32 or 64, and so does PostgreSQL."""
    width = _WIDTHS[type_name]
    count = b & (31 if width < 64 else 63)
    shifted = np.left_shift(a, count) if op == "<<" else np.right_shift(a, count)
    if width == 64:
        return np.asarray(shifted)
    spare = np.int64(64 - width)
    return np.asarray(np.right_shift(np.left_shift(shifted, spare), spare))


def greatest_divisor(type_name: str, a: Ints, b: Ints) -> Computed:
    """Return the greatest common divisor."""
    with np.errstate(over="ignore"):
        return _within(type_name, np.gcd(a, b))


def least_multiple(type_name: str, a: Ints, b: Ints) -> Computed:
    """Return the least common multiple, 0 if one of the numbers is 0."""
    divisor = np.gcd(a, b)
    product, failed = multiply_ints(np.abs(a) // np.where(divisor == 0, 1, divisor), np.abs(b))
    _, failures = _within(type_name, product)
    reason = f"{type_name} out of range"
    lowest = (product == NULL, reason)
    return product, (lowest, *failures) if failed is None else ((failed, reason), lowest, *failures)


def _within(type_name: str, lane: Ints) -> Computed:
    values, failures = in_range(type_name, lane)
    return values, (*failures, (values < 0, f"{type_name} out of range"))


# The same for one row


def _within_type(function: RowFunction, type_name: str) -> RowFunction:
    return function if type_name == "bigint" else within(function, *INTEGER_LIMITS[type_name])


def _row_operation(op: str, type_name: str) -> RowFunction | None:
    function = row_function(_CHECKED[op])
    return None if function is None else _within_type(function, type_name)


def _row_quotient(type_name: str) -> RowFunction:
    return _within_type(QUOTIENT_FUNCTION, type_name)


def _row_remainder() -> RowFunction:
    return REMAINDER_FUNCTION


def _row_in_range(type_name: str) -> RowFunction:
    return _within_type(RowFunction(()), type_name)


ROW_FUNCTIONS.update(
    {
        integer_operation: _row_operation,
        divide_integers: _row_quotient,
        remainder_integers: _row_remainder,
        in_range: _row_in_range,
    }
)
