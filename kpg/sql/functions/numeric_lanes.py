"""Arithmetic of numeric on lanes: one lane up to 18 digits, two lanes of 128 bits up to 38 digits.

`precision` is that of the result. A precision below 38 has room for every result (kpg.sql.functions.numeric_results),
so only results at the limit of 38 digits can fail. Operands of one lane whose result has one lane are computed with
64-bit integers. Rounding is half away from zero.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kpg.columns import floats
from kpg.columns.decimals import float_to_decimal
from kpg.columns.overflow import add_ints, multiply_ints, subtract_ints
from kpg.columns.row_functions import ROW_FUNCTIONS, RowFunction, row_function, scale, scaled, within
from kpg.columns.schema import decimal
from kpg.columns.updates import Ints
from kpg.columns.wide_integers import (
    absolute_wide,
    add_wide,
    divide_wide,
    less,
    multiply_wide,
    narrow_wide,
    negate_wide,
    rescale_wide,
    subtract_wide,
    to_floats,
    truncate_wide,
    wide_constant,
    widen,
)
from kpg.sql.functions.integer_lanes import DIVISION_BY_ZERO, Bools, Computed
from kpg.sql.sql_types import INTEGER_LIMITS

ONE_LANE_DIGITS: Final = 18
TOO_LARGE: Final = "value overflows numeric format"
FIELD_OVERFLOW: Final = "numeric field overflow"
ANY_WIDE: Final = 2**127 - 1
_WIDE: Final = {"+": add_wide, "-": subtract_wide, "*": multiply_wide}
_CHECKED: Final = {"+": add_ints, "-": subtract_ints, "*": multiply_ints}
_NARROW: Final = {"+": np.add, "-": np.subtract, "*": np.multiply}


def is_narrow(precision: int) -> bool:
    """Return whether numbers of a precision take one lane."""
    return precision <= ONE_LANE_DIGITS


def _sized(precision: int, block: Ints) -> Ints:
    return narrow_wide(block)[0] if is_narrow(precision) else block


def _limit(precision: int) -> int:
    return int(10**precision) - 1


def numeric_arithmetic(op: str, shift_a: int, shift_b: int, precision: int, a: Ints, b: Ints) -> Computed:
    """Return the result of + - *; operands are first multiplied by powers of ten."""
    if is_narrow(precision):  # the types leave room: neither operand nor result overflows
        with np.errstate(over="ignore"):
            return _NARROW[op](a * 10**shift_a, b * 10**shift_b), ()
    x, unfit_a = _scaled_up(a, shift_a)
    y, unfit_b = _scaled_up(b, shift_b)
    values, failed = _WIDE[op](x, y, _limit(precision))
    return values, tuple((rows, TOO_LARGE) for rows in (unfit_a, unfit_b, failed) if rows is not None)


def _scaled_up(lane: Ints, shift: int) -> tuple[Ints, Bools | None]:
    return rescale_wide(widen(lane), shift) if shift else (widen(lane), None)


def divide_numerics(shift: int, precision: int, a: Ints, b: Ints) -> Computed:
    """Return a * 10**shift / b."""
    values, marks = divide_wide(widen(a), widen(b), shift, _limit(precision))
    zero = _is_zero(widen(b))
    return _sized(precision, values), ((zero, DIVISION_BY_ZERO), ((marks != 0) & ~zero, TOO_LARGE))


def remainder_numerics(shift_a: int, shift_b: int, precision: int, a: Ints, b: Ints) -> Computed:
    """Return the remainder of a / b, with the sign of a."""
    x, unfit_a = _scaled_up(a, shift_a)
    y, unfit_b = _scaled_up(b, shift_b)
    quotient, _ = divide_wide(x, y, 0, ANY_WIDE)
    product, _ = multiply_wide(quotient, y, ANY_WIDE)
    rest, _ = subtract_wide(x, product, ANY_WIDE)
    wrong_sign = ((rest[0] < 0) != (x[0] < 0)) & ~_is_zero(rest)  # the quotient was rounded away from zero
    step = np.where(x[0] < 0, negate_wide(absolute_wide(y)), absolute_wide(y))
    rest = np.where(wrong_sign, add_wide(rest, step, ANY_WIDE)[0], rest)
    failures = [(_is_zero(y), DIVISION_BY_ZERO)]
    failures += [(rows, TOO_LARGE) for rows in (unfit_a, unfit_b) if rows is not None]
    return _sized(precision, rest), tuple(failures)


def whole_quotient(shift_a: int, shift_b: int, a: Ints, b: Ints) -> Computed:
    """Return a / b without its fraction, in two lanes."""
    x, unfit_a = _scaled_up(a, shift_a)
    y, unfit_b = _scaled_up(b, shift_b)
    quotient, _ = divide_wide(x, y, 0, ANY_WIDE)
    product, _ = multiply_wide(quotient, y, ANY_WIDE)
    too_far = less(absolute_wide(x), absolute_wide(product))
    step = np.where(quotient[0] < 0, wide_constant(1), wide_constant(-1))
    quotient = np.where(too_far, add_wide(quotient, step, ANY_WIDE)[0], quotient)
    failures = [(_is_zero(y), DIVISION_BY_ZERO)]
    failures += [(rows, TOO_LARGE) for rows in (unfit_a, unfit_b) if rows is not None]
    return quotient, tuple(failures)


def _is_zero(block: Ints) -> Bools:
    zero = wide_constant(0)
    is_zero: Bools = (block[0] == zero[0]) & (block[1] == zero[1])
    return is_zero


def negated(a: Ints) -> Ints:
    """Return -a."""
    return negate_wide(a) if a.ndim == 2 else -a


def magnitude(a: Ints) -> Ints:
    """Return |a|."""
    return absolute_wide(a) if a.ndim == 2 else np.abs(a)


def sign_of(precision: int, a: Ints) -> Ints:
    """Return -1, 0 or 1."""
    sign = np.where(_is_zero(a), 0, np.where(a[0] < 0, -1, 1)) if a.ndim == 2 else np.sign(a)
    return sign if is_narrow(precision) else widen(sign)


def rescaled(shift: int, precision: int, reason: str, a: Ints) -> Computed:
    """Return a * 10**shift, rounded half away from zero; a row fails if that has more digits than `precision`."""
    if is_narrow(precision) and a.ndim == 1 and abs(shift) <= ONE_LANE_DIGITS:
        return _rescaled_lane(shift, precision, reason, a)
    values, failed = rescale_wide(widen(a), shift, _limit(precision))
    return _sized(precision, values), () if failed is None else ((failed, reason),)


def _rescaled_lane(shift: int, precision: int, reason: str, a: Ints) -> Computed:
    with np.errstate(over="ignore"):
        if shift >= 0:
            limit = _limit(precision) // 10**shift
            return a * 10**shift, (((a > limit) | (a < -limit), reason),)
        half = 10**-shift // 2
        rounded = (np.abs(a) + half) // 10**-shift
        failures = () if precision >= ONE_LANE_DIGITS + shift else ((rounded > _limit(precision), reason),)
        return np.where(a < 0, -rounded, rounded), failures


def truncated(drop: int, precision: int, a: Ints) -> Ints:
    """Return a / 10**drop without its fraction."""
    if a.ndim == 1:
        whole = np.where(a < 0, -(-a // 10**drop), a // 10**drop) if drop <= ONE_LANE_DIGITS else np.zeros_like(a)
        return whole if is_narrow(precision) else widen(whole)
    return _sized(precision, truncate_wide(a, drop))


def rounded_whole(up: bool, scale: int, precision: int, a: Ints) -> Ints:
    """Return the nearest whole number that is not below a (`up`), or not above it."""
    block = widen(a)
    whole = truncate_wide(block, scale)
    back, _ = multiply_wide(whole, wide_constant(10**scale), ANY_WIDE)
    short = less(back, block) if up else less(block, back)
    stepped, _ = add_wide(whole, wide_constant(1 if up else -1), ANY_WIDE)
    return _sized(precision, np.where(short, stepped, whole))


def rounded_at(way: str, scale: int, result_scale: int, precision: int, a: Ints, digits: Ints) -> Computed:
    """Return a rounded ("round") or cut ("trunc") to `digits` after the point, as a number of `result_scale`."""
    block = np.broadcast_to(widen(a), (2, max(a.shape[-1], digits.shape[-1])))
    wanted = np.broadcast_to(np.clip(digits, -ONE_LANE_DIGITS * 3, result_scale), block.shape[-1])
    out = np.empty(block.shape, np.int64)
    failed = np.zeros(block.shape[-1], np.bool_)
    for digit in np.unique(wanted).tolist():
        rows = wanted == digit
        kept, _ = _at_scale(way, digit - scale, np.ascontiguousarray(block[:, rows]))
        out[:, rows], unfit = rescale_wide(kept, result_scale - digit, _limit(precision))
        if unfit is not None:
            failed[rows] = unfit
    return _sized(precision, out), ((failed, TOO_LARGE),)


def _at_scale(way: str, shift: int, block: Ints) -> tuple[Ints, Bools | None]:
    if shift < -2 * ONE_LANE_DIGITS - 2:
        return np.broadcast_to(wide_constant(0), block.shape).copy(), None
    if way == "round" or shift >= 0:
        return rescale_wide(block, shift, ANY_WIDE)
    return truncate_wide(block, -shift), None


def numerics_to_integers(scale: int, type_name: str, a: Ints) -> Computed:
    """Return numerics as integers, rounded half away from zero."""
    values, _ = rescale_wide(widen(a), -scale, ANY_WIDE)
    lane, unfit = narrow_wide(values)
    low, high = INTEGER_LIMITS[type_name]
    unfit = unfit | (lane < low) | (lane > high)
    return lane, ((unfit, f"{type_name} out of range"),)


def numerics_to_floats(scale: int, a: Ints) -> Ints:
    """Return numerics as the nearest floats."""
    return floats.to_lane(to_floats(a, scale) if a.ndim == 2 else a.astype(np.float64) / 10.0**scale)


def floats_to_numerics(precision: int, scale: int, a: Ints) -> Computed:
    """Return floats as numerics: their first 15 significant digits."""
    unknown = np.isnan(floats.from_lane(a))
    values, failed = float_to_decimal(decimal(precision, scale), a)
    return values, ((unknown, "cannot convert infinity or NaN to numeric"), (failed & ~unknown, FIELD_OVERFLOW))


# The same for one row


def _row_arithmetic(op: str, shift_a: int, shift_b: int, precision: int) -> RowFunction | None:
    function = row_function(_CHECKED[op])
    if function is None or not is_narrow(precision):
        return None
    return scaled(function, 10**shift_a, 10**shift_b)


def _row_rescaled(shift: int, precision: int, reason: str) -> RowFunction | None:
    if shift not in range(ONE_LANE_DIGITS + 1) or not is_narrow(precision):
        return None
    return within(RowFunction(scale(10**shift)), -_limit(precision), _limit(precision))


ROW_FUNCTIONS.update({numeric_arithmetic: _row_arithmetic, rescaled: _row_rescaled})
