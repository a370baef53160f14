"""Arithmetic on int64 lanes that knows where it overflowed.

    function(a, ...) -> (values, failed)      failed is None if no row can have failed

NumPy wraps around silently; whether it did is seen in the signs of the result, never by way of Python ints. Decimals
are the same numbers, scaled. The values of failed rows mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from kpg.columns.bound_nodes import Bools
from kpg.columns.column_types.decimal_type import MAX_DIGITS
from kpg.columns.lane_values import MAX, NULL
from kpg.columns.updates import Ints

Checked: TypeAlias = tuple[Ints, Bools | None]

_SURELY_FITS: Final = 9.2e18  # below 2**63 by more than a float product can be wrong


def add_ints(a: Ints, b: Ints) -> Checked:
    """a + b; overflow where both differ in sign from the sum."""
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0


def add_constant(constant: int, a: Ints) -> Checked:
    """a + constant; only the value nearest to the end of the range is looked at, unless it goes beyond."""
    total = a + constant
    if constant >= 0:
        return total, total < a if len(a) and int(a.max()) > MAX - constant else None
    return total, total > a if len(a) and int(a.min()) < -MAX - 1 - constant else None


def subtract_ints(a: Ints, b: Ints) -> Checked:
    """a - b; overflow where a and b differ in sign and so do a and the difference."""
    difference = a - b
    return difference, ((a ^ b) & (a ^ difference)) < 0


def multiply_ints(a: Ints, b: Ints) -> Checked:
    """a * b; where a float product is too near the end of the range, dividing must give back what was multiplied."""
    product = a * b
    near = np.abs(np.multiply(a, b, dtype=np.float64)) > _SURELY_FITS
    if not np.count_nonzero(near):
        return product, None
    divisor = np.where((b == 0) | (b == -1), 1, b)  # a product with 0 fits; with -1 only that of -2**63 does not
    wrong = (product // divisor != a) & (b != 0) & (b != -1)
    return product, wrong | ((b == -1) & (a == NULL))


def floor_divide_ints(a: Ints, b: Ints) -> Checked:
    """a // b, rounded down; fails for b = 0 and for -2**63 // -1."""
    failed = (b == 0) | ((a == NULL) & (b == -1))
    return a // np.where(failed, 1, b), failed


def modulo_ints(a: Ints, b: Ints) -> Checked:
    """a % b, with the sign of b; fails for b = 0."""
    failed = b == 0
    return a % np.where(failed | (b == -1), 1, b), failed


def negate_ints(a: Ints) -> Checked:
    """-a; fails for -2**63."""
    return -a, a == NULL


def absolute_ints(a: Ints) -> Checked:
    """abs(a); fails for -2**63."""
    return np.abs(a), a == NULL


def limited_to(low: int, high: int, function: Callable[..., Checked], *lanes: Ints) -> Checked:
    """A function of ints whose result must stay in the range of a type."""
    values, failed = function(*lanes)
    outside = (values < low) | (values > high)
    return values, outside if failed is None else failed | outside


def at_common_scale(up_a: int, up_b: int, function: Callable[..., Checked], a: Ints, b: Ints) -> Checked:
    """A function of two decimals brought to one scale: each at most 18 digits before and after."""
    limit = 10**MAX_DIGITS - 1
    wide = (np.abs(a) > limit // up_a) | (np.abs(b) > limit // up_b)
    values, failed = function(a * up_a, b * up_b)
    return values, wide if failed is None else wide | failed
