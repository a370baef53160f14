"""Integers of 128 bits as two lanes, and exact arithmetic on whole columns of them.

    lanes(v)  =  (v >> 64,  (v & (2**64 - 1)) - 2**63)          int64[2, n or 1]; they sort as the numbers do

A block with a single column stands for any number of equal columns. Functions that can leave the range return the
values and the failed rows, or None if none failed, as those of kpg.columns.overflow do. A number of up to 38 digits is
below 2**127 in magnitude; the sum of two of them may be above, which counts as a failure.
Everything is vectorised: comparisons in NumPy, sums, products and quotients in kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kpg.columns.lane_values import NULL
from kpg.columns.updates import Ints
from kpg.kernels.wide_arithmetic import add_wide as add_kernel
from kpg.kernels.wide_arithmetic import divide_wide as divide_kernel
from kpg.kernels.wide_arithmetic import multiply_wide as multiply_kernel

Bools = npt.NDArray[np.bool_]
WideResult = tuple[Ints, Bools | None]

WORD_BITS: Final = 64
_WORD_MASK: Final = 2**64 - 1
_LOW_BIAS: Final = 2**63  # what a low lane is less than the low 64 bits
_LIMB_BITS: Final = 32
_SIGN_BIT: Final = np.int64(NULL)
MAX_DIGITS: Final = 38  # the most decimal digits that fit
MAX_WIDE: Final = 10**MAX_DIGITS - 1


# --- one number -------------------------------------------------------------------------------------------------------


def to_lanes(value: int) -> tuple[int, int]:
    """Return the lanes of one integer from -2**127 to 2**127 - 1."""
    return value >> WORD_BITS, (value & _WORD_MASK) - _LOW_BIAS


def from_lanes(high: int, low: int) -> int:
    """Return the integer of two lanes."""
    return (high << WORD_BITS) + low + _LOW_BIAS


def wide_constant(value: int) -> Ints:
    """Return the lanes of one integer as a block of one column."""
    return np.array(to_lanes(value), np.int64).reshape(2, 1)


# --- columns ----------------------------------------------------------------------------------------------------------


def widen(lane: Ints) -> Ints:
    """Return the two lanes of a lane of numbers of 64 bits; a block of two lanes unchanged."""
    if lane.ndim == 2:
        return lane
    block = np.empty((2, len(lane)), np.int64)
    np.right_shift(lane, 63, out=block[0])
    np.bitwise_xor(lane, _SIGN_BIT, out=block[1])
    return block


def narrow_wide(block: Ints) -> tuple[Ints, Bools]:
    """Return numbers as one lane each, and which of them do not fit 64 bits."""
    lane = block[1] ^ _SIGN_BIT
    return lane, block[0] != lane >> 63


def from_integers(values: Sequence[int]) -> Ints:
    """Return the lanes of Python integers; the caller knows that they fit."""
    block = np.empty((2, len(values)), np.int64)
    block[0] = [value >> WORD_BITS for value in values]
    block[1] = [(value & _WORD_MASK) - _LOW_BIAS for value in values]
    return block


def to_integers(block: Ints) -> list[int]:
    """Return numbers as Python integers."""
    return [from_lanes(high, low) for high, low in zip(*block.tolist(), strict=True)]


def from_words(low: Any, high: Any) -> Ints:
    """Return the lanes of numbers given as 64-bit halves, as Arrow stores them."""
    block = np.empty((2, len(low)), np.int64)
    block[0] = high
    np.bitwise_xor(low, _SIGN_BIT, out=block[1])
    return block


def to_words(block: Ints) -> Any:
    """Return numbers as pairs of 64-bit halves, the lower one first: int64[n, 2]."""
    words = np.empty((block.shape[1], 2), np.int64)
    np.bitwise_xor(block[1], _SIGN_BIT, out=words[:, 0])
    words[:, 1] = block[0]
    return words


def less(a: Ints, b: Ints) -> Bools:
    """Return whether a < b."""
    below: Bools = (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
    return below


def outside(block: Ints, limit: int) -> Bools:
    """Return which numbers exceed a limit in magnitude."""
    return less(block, wide_constant(-limit)) | less(wide_constant(limit), block)


def add_wide(a: Ints, b: Ints, limit: int = MAX_WIDE) -> WideResult:
    """Return a + b; a row fails if the sum exceeds the limit."""
    return _sum(a, b, 1, limit)


def subtract_wide(a: Ints, b: Ints, limit: int = MAX_WIDE) -> WideResult:
    """Return a - b; a row fails if the difference exceeds the limit."""
    return _sum(a, b, -1, limit)


def _sum(a: Ints, b: Ints, sign: int, limit: int) -> WideResult:
    out, marks = _results(a, b)
    failed = add_kernel(contiguous(a), contiguous(b), sign, from_integers([-limit, limit]), out, marks)
    return out, marks != 0 if failed else None


def negate_wide(a: Ints) -> Ints:
    """Return -a; the range of decimals is symmetric."""
    block = np.empty_like(a)
    low = np.negative(a[1] ^ _SIGN_BIT)
    block[0] = ~a[0] + (low == 0)
    block[1] = low ^ _SIGN_BIT
    return block


def absolute_wide(a: Ints) -> Ints:
    """Return |a|."""
    return np.where(a[0] < 0, negate_wide(a), a)


def multiply_wide(a: Ints, b: Ints, limit: int = MAX_WIDE) -> WideResult:
    """Return a × b; a row fails if the product exceeds the limit."""
    out, marks = _results(a, b)
    failed = multiply_kernel(contiguous(a), contiguous(b), wide_constant(limit), out, marks)
    return out, marks != 0 if failed else None


def divide_wide(a: Ints, b: Ints, shift: int, limit: int = MAX_WIDE) -> tuple[Ints, Ints]:
    """Return a × 10**shift / b, rounded half away from zero, and a mark for each row (kpg.kernels.wide_arithmetic)."""
    out, marks = _results(a, b)
    up, down = _power_limbs(max(shift, 0)), _power_limbs(max(-shift, 0))
    divide_kernel(contiguous(a), contiguous(b), up, down, wide_constant(limit), out, marks)
    return out, marks


def rescale_wide(a: Ints, shift: int, limit: int = MAX_WIDE) -> WideResult:
    """Return a × 10**shift, rounded half away from zero; a row fails if the result exceeds the limit."""
    if shift == 0:
        failed = outside(a, limit)
        return a, failed if failed.any() else None
    if 0 < shift <= MAX_DIGITS:
        return multiply_wide(a, wide_constant(10**shift), limit)
    out, marks = divide_wide(a, wide_constant(1), shift, limit)
    return out, _failed(marks)


def truncate_wide(a: Ints, scale: int) -> Ints:
    """Return a / 10**scale without its fraction."""
    if scale == 0:
        return a
    rounded, _ = divide_wide(a, wide_constant(1), -scale)
    back, _ = multiply_wide(rounded, wide_constant(10**scale), 2**127 - 1)
    too_far = less(absolute_wide(a), absolute_wide(back))
    one = np.where(a[0] < 0, wide_constant(1), wide_constant(-1))
    return np.where(too_far, add_wide(rounded, one)[0], rounded)


def to_floats(block: Ints, scale: int = 0) -> npt.NDArray[np.float64]:
    """Return the numbers divided by 10**scale as floats, within an ulp or two of the nearest."""
    magnitude = absolute_wide(block)
    low = (magnitude[1] ^ _SIGN_BIT).view(np.uint64).astype(np.float64)
    total = (magnitude[0].astype(np.float64) * 2.0**WORD_BITS + low) / 10.0**scale
    floats: npt.NDArray[np.float64] = np.where(block[0] < 0, -total, total)
    return floats


def contiguous(block: Ints) -> Ints:
    """Return a block as kernels take it."""
    return np.ascontiguousarray(block)


def _results(a: Ints, b: Ints) -> tuple[Ints, Ints]:
    n = b.shape[1] if a.shape[1] == 1 else a.shape[1]
    return np.empty((2, n), np.int64), np.empty(n, np.int64)


def _failed(marks: Ints) -> Bools | None:
    return marks != 0 if marks.any() else None


def _power_limbs(exponent: int) -> Ints:
    """Return the limbs of a power of ten."""
    power, limbs = 10**exponent, []
    while power:
        limbs.append(power & (2**_LIMB_BITS - 1))
        power >>= _LIMB_BITS
    return np.array(limbs, np.int64)
