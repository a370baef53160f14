"""Arithmetic on int64 lanes with overflow detection.

    function(a, ...) -> (values, failed)      failed is None if no row can have failed

NumPy wraps around silently. These functions detect overflow from the signs of operands and result, without Python ints.
Decimals are integers times a power of ten, so the functions serve them too. The values of failed rows have no meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from kpg.columns.bound_nodes import Bools
from kpg.columns.column_types.decimal_type import ONE_LANE_DIGITS
from kpg.columns.lane_values import MAX, NULL
from kpg.columns.updates import Ints

Checked: TypeAlias = tuple[Ints, Bools | None]

_MAX_SAFE_PRODUCT: Final = 9.2e18  # below 2**63 by more than the rounding error of a float product


def add_ints(a: Ints, b: Ints) -> Checked:
    """Return a + b; it overflowed where the signs of both differ from that of the sum."""
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0


def add_constant(constant: int, a: Ints) -> Checked:
    """Return a + constant; rows are checked only if the largest (or smallest) one overflows."""
    total = a + constant
    if constant >= 0:
        return total, total < a if len(a) and int(a.max()) > MAX - constant else None
    return total, total > a if len(a) and int(a.min()) < -MAX - 1 - constant else None


def subtract_ints(a: Ints, b: Ints) -> Checked:
    """Return a - b; it overflowed where the sign of a differs from that of b and of the difference."""
    difference = a - b
    return difference, ((a ^ b) & (a ^ difference)) < 0


def multiply_ints(a: Ints, b: Ints) -> Checked:
    """Return a * b. Where the float product is near the limit, a row fails unless dividing the product by b gives a."""
    product = a * b
    near = np.abs(np.multiply(a, b, dtype=np.float64)) > _MAX_SAFE_PRODUCT
    if not np.count_nonzero(near):
        return product, None
    divisor = np.where((b == 0) | (b == -1), 1, b)  # a product with 0 fits; with -1 only that of -2**63 does not
    wrong = (product // divisor != a) & (b != 0) & (b != -1)
    return product, wrong | ((b == -1) & (a == NULL))


def nonzero_ints(a: Ints) -> Checked:
    """Return a, a divisor; it fails for 0."""
    return a, a == 0


def floor_divide_ints(a: Ints, b: Ints) -> Checked:
    """Return a // b, rounded down; it fails for b = 0 and for -2**63 // -1."""
    failed = (b == 0) | ((a == NULL) & (b == -1))
    return a // np.where(failed, 1, b), failed


def modulo_ints(a: Ints, b: Ints) -> Checked:
    """Return a % b, with the sign of b; it fails for b = 0."""
    failed = b == 0
    return a % np.where(failed | (b == -1), 1, b), failed


def negate_ints(a: Ints) -> Checked:
    """Return -a; it fails for -2**63."""
    return -a, a == NULL


def absolute_ints(a: Ints) -> Checked:
    """Return abs(a); it fails for -2**63."""
    return np.abs(a), a == NULL


def apply_within_limits(low: int, high: int, function: Callable[..., Checked], *lanes: Ints) -> Checked:
    """Apply a function of ints; rows with a result outside of `low` to `high` fail."""
    values, failed = function(*lanes)
    outside = (values < low) | (values > high)
    return values, outside if failed is None else failed | outside


def apply_at_common_scale(up_a: int, up_b: int, function: Callable[..., Checked], a: Ints, b: Ints) -> Checked:
    """Apply a function to two decimals at a common scale; a row fails if a factor then has more than 18 digits."""
    limit = 10**ONE_LANE_DIGITS - 1
    wide = (np.abs(a) > limit // up_a) | (np.abs(b) > limit // up_b)
    values, failed = function(a * up_a, b * up_b)
    return values, wide if failed is None else wide | failed
