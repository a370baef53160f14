"""Twins of kpg.kernels.wide_arithmetic, in Python's unbounded integers."""

from __future__ import annotations

OVERFLOW, ZERO_DIVISOR = 1, 2


def add_wide(a: int, b: int, sign: int, limit: int) -> tuple[int, int]:
    """Return the sum or difference and 0, or 0 and the mark of an overflow."""
    total = a + sign * b
    return (total, 0) if abs(total) <= limit else (0, OVERFLOW)


def multiply_wide(a: int, b: int, limit: int) -> tuple[int, int]:
    """Return the product and 0, or 0 and the mark of an overflow."""
    return (a * b, 0) if abs(a * b) <= limit else (0, OVERFLOW)


def divide_wide(a: int, b: int, up: int, down: int, limit: int) -> tuple[int, int]:
    """Return the quotient, rounded half away from zero, and 0; or 0 and a mark."""
    if b == 0:
        return 0, ZERO_DIVISOR
    top, bottom = abs(a) * up, abs(b) * down
    quotient = (2 * top + bottom) // (2 * bottom)
    if quotient > limit:
        return 0, OVERFLOW
    return (quotient if (a < 0) == (b < 0) else -quotient), 0
