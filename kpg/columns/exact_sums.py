"""Exact sums: a value is split into lanes that are added as integers, so that a removal undoes an insertion exactly.

    value  →  (1, part, part, ...)  or zeros for null;    Σ of these over a group  →  count, sum, average

Integers, decimals and times are split into two parts of 32 bits, so that a sum has 96 bits and is checked only when it
is read. Decimals of two lanes are split into four parts; their sums have 160 bits, of which 128 can be read. Floats are
split into six parts of 32 bits, fixed point from 2^-128 to 2^63. Additions are exact, in any order.
A float with bits outside of that range, infinity and NaN have no such parts: they are *outliers* (see
kpg.operators.exact_float_sums). A bool has only a count: of the rows on which it is true.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kpg.columns.exact_diffs import MAX_MASS
from kpg.columns.floats import from_lane, to_lane
from kpg.columns.lane_values import MAX, NULL, is_null
from kpg.columns.schema import Type
from kpg.columns.updates import Ints
from kpg.columns.wide_integers import divide_wide, from_words, narrow_wide, outside, widen

MASK = np.int64(0xFFFFFFFF)  # the bits of one part
_UNSIGNED_HIGH = np.int64(2**31)  # the lane of a uint64 is the number minus 2**63: 2**31 in the high part
PART_BITS = 32
FLOAT_PARTS = 6  # parts of 32 bits: 128 bits after the binary point and 64 before it
FLOAT_BITS_BELOW = 128  # bits after the binary point


class LaneKind(Enum):
    """The meaning of a lane of accumulated diffs."""

    COUNT = 0  # a number of rows
    PART = 1  # a part of a sum; its bits from bit 32 on count in the next lane
    LAST_PART = 2  # the most significant part of a sum
    MARK = 3  # only whether it is zero matters


LaneKinds: TypeAlias = tuple[LaneKind, ...]
COUNT_ONLY: LaneKinds = (LaneKind.COUNT,)


def lane_kinds(types: Iterable[Type], marked: bool) -> LaneKinds:
    """Return the kinds of the lanes of accumulated diffs: the count, the parts of each column, perhaps a mark."""
    kinds = [LaneKind.COUNT]
    for type_ in types:
        kinds.append(LaneKind.COUNT)
        if part_count(type_) > 1:
            kinds += [*[LaneKind.PART] * (part_count(type_) - 2), LaneKind.LAST_PART]
    return (*kinds, *[LaneKind.MARK] * marked)


def fit_totals(totals: tuple[int, ...], kinds: LaneKinds) -> tuple[int, ...]:
    """Return totals as lanes, by carrying between the parts of a sum.

    A count that does not fit becomes NULL, and a last part that does not fit becomes one beyond `MAX_MASS`.
    """
    if max(map(abs, totals)) <= MAX_MASS:
        return totals
    lanes = list(totals)
    for lane, kind in enumerate(kinds):
        if kind is LaneKind.PART:
            lanes[lane + 1] += lanes[lane] >> PART_BITS
            lanes[lane] &= int(MASK)
        elif kind is LaneKind.LAST_PART:
            lanes[lane] = max(-MAX_MASS - 1, min(MAX_MASS + 1, lanes[lane]))
        elif kind is LaneKind.MARK:
            lanes[lane] = int(lanes[lane] != 0)
        elif abs(lanes[lane]) > MAX:
            lanes[lane] = NULL
    return tuple(lanes)


def part_count(type_: Type) -> int:
    """Return the number of lanes that a value of a type is split into, its count included; a bool is only counted."""
    if type_.kind == "bool":
        return 1
    return 1 + (FLOAT_PARTS if type_.kind == "float64" else 2 * type_.lanes)


def split(values: Ints, type_: Type) -> tuple[Ints, npt.NDArray[np.bool_] | None]:
    """Return the parts of each value, and which values are outliers (None if none is)."""
    if type_.kind == "bool":
        return (values == 1).astype(np.int64).reshape(1, -1), None
    n = values.shape[-1]
    present = ~is_null(values) if type_.nullable else np.ones(n, np.bool_)
    if type_.kind == "float64":
        return _split_floats(values, present)
    parts = np.empty((part_count(type_), n), np.int64)
    parts[0] = present
    high = values
    if type_.lanes == 2:
        high, low = values[0], (values[1] ^ np.int64(NULL)).view(np.uint64)
        parts[1] = low & np.uint64(MASK)
        parts[2] = low >> np.uint64(PART_BITS)
    np.bitwise_and(high, MASK, out=parts[-2])
    np.right_shift(high, PART_BITS, out=parts[-1])
    if type_.kind == "uint64":
        parts[2] += _UNSIGNED_HIGH
    if type_.nullable:
        parts[1:, ~present] = 0
    return parts, None


def _split_floats(values: Ints, present: npt.NDArray[np.bool_]) -> tuple[Ints, npt.NDArray[np.bool_] | None]:
    floats = np.where(present, from_lane(values), 0.0)
    finite = np.isfinite(floats)
    mantissa, exponent = np.frexp(np.where(finite, floats, 0.0))
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    position = exponent.astype(np.int64) - 53 + FLOAT_BITS_BELOW
    low = np.clip(-position, 0, 53)  # bits below the last part of the accumulator
    lost = (whole & ((np.int64(1) << low) - 1)) != 0
    whole, position = whole >> low, np.maximum(position, 0)
    failed = ~finite | lost | (exponent > 63)
    whole = np.where(failed, 0, whole)
    lane, offset = np.where(failed, 0, position // 32), position % 32
    first = (whole & MASK) << offset
    carry = ((first >> 32) & MASK) + ((whole >> 32) << offset)
    pieces = (first & MASK, carry & MASK, carry >> 32)
    sign = np.where(floats < 0, -1, 1)
    parts = np.zeros((1 + FLOAT_PARTS, len(values)), np.int64)
    parts[0] = present
    for index in range(FLOAT_PARTS):
        for piece, bits in enumerate(pieces):
            parts[1 + index] += np.where(lane + piece == index, bits, 0)
        parts[1 + index] *= sign
    return parts, failed if failed.any() else None


def total(parts: Ints, type_: Type, result: Type) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the sums of accumulated parts of a type as a lane of the result type, and which of them do not fit."""
    count = parts[0]
    if result.kind == "decimal":
        return _decimal_total(parts, result)
    if type_.kind == "float64":
        values, failed = to_lane(_float_total(parts[1:])), is_out_of_range(parts)
    else:
        carry = parts[1] >> 32
        high = parts[2] + carry
        if type_.kind == "uint64":
            high = high - _UNSIGNED_HIGH
        failed = (high > np.int64(2**31 - 1)) | (high < -np.int64(2**31))
        values = (high << 32) + (parts[1] & MASK)
        if type_.nullable:  # in such a column -2^63 means null
            failed |= (values == NULL) & (count != 0)
    return np.where(count == 0, NULL, values) if type_.nullable else values, failed


def _decimal_total(parts: Ints, result: Type) -> tuple[Ints, npt.NDArray[np.bool_]]:
    block, failed = wide_total(parts)
    failed |= outside(block, result.limits()[1])
    values = block if result.lanes == 2 else narrow_wide(block)[0]
    return np.where(parts[0] == 0, NULL, values) if result.nullable else values, failed


def wide_total(parts: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the sums of accumulated parts of integers as 128-bit integers, and which of them do not fit."""
    digits, carry = np.empty((4, parts.shape[1]), np.int64), np.zeros(parts.shape[1], np.int64)
    for index in range(4):  # two parts stand for 64 bits, whose sums have more
        whole = carry if index >= len(parts) - 1 else parts[1 + index] + carry
        digits[index], carry = (whole & MASK if index < 3 else whole), whole >> PART_BITS
    failed = (digits[3] != digits[3] << 32 >> 32) | is_out_of_range(parts)
    low, high = (digits[1] << 32) | digits[0], (digits[3] << 32) | digits[2]
    return from_words(low, high), failed


def decimal_average(parts: Ints, type_: Type, result: Type) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the means as decimals, rounded half away from zero, and which of them do not fit; null without a value."""
    sums, failed = wide_total(parts)
    values, marks = divide_wide(sums, widen(parts[0]), result.scale - type_.scale, result.limits()[1])
    values = values if result.lanes == 2 else narrow_wide(values)[0]
    present = parts[0] != 0
    return np.where(present, values, NULL) if result.nullable else values, failed | (marks != 0) & present


def is_out_of_range(parts: Ints) -> npt.NDArray[np.bool_]:
    """Return which accumulated parts stand for a sum that they could not hold: see `fit_totals`."""
    outside: npt.NDArray[np.bool_] = np.abs(parts[-1]) > MAX_MASS
    return outside


def _float_total(parts: Ints) -> npt.NDArray[np.float64]:
    digits, carry = np.empty_like(parts), np.zeros(parts.shape[1], np.int64)
    negative = _is_negative(parts)
    signed = np.where(negative, -parts, parts)
    for index in range(FLOAT_PARTS):
        whole = signed[index] + carry
        digits[index], carry = whole & MASK, whole >> 32
    result = np.zeros(parts.shape[1])
    for index in range(FLOAT_PARTS):
        result += np.ldexp(digits[index].astype(np.float64), 32 * index - FLOAT_BITS_BELOW)
    result += np.ldexp(carry.astype(np.float64), 32 * FLOAT_PARTS - FLOAT_BITS_BELOW)
    return np.where(negative, -result, result)


def _is_negative(parts: Ints) -> npt.NDArray[np.bool_]:
    carry = np.zeros(parts.shape[1], np.int64)
    for index in range(FLOAT_PARTS):
        carry = (parts[index] + carry) >> 32
    return carry < 0


def average(parts: Ints, type_: Type) -> Ints:
    """Return the means of accumulated parts as a float64 lane; null where the count is zero."""
    count = parts[0].astype(np.float64)
    if type_.kind == "float64":
        sums = _float_total(parts[1:])
    else:
        weights = 2.0 ** (PART_BITS * np.arange(len(parts) - 1))
        sums = (parts[1:].astype(np.float64) * weights.reshape(-1, 1)).sum(axis=0) / 10.0**type_.scale
    with np.errstate(divide="ignore", invalid="ignore"):
        means = to_lane(sums / count)
    return np.where(parts[0] == 0, NULL, means)
