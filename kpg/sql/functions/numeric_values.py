"""Functions of numeric as Python decimals, for results with any number of digits: once for each distinct value.

`precision` and `scale` are those of the result, which is rounded half away from zero. A ValueError fails the row.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, DecimalException, Overflow
from typing import Any, Final

from kpg.sql.functions.text_input import EXACT, rounded_number

_DIGITS: Final = Context(prec=60, Emax=9999, Emin=-9999)  # enough for 38 digits of a result, and for its rounding


def exact_product(precision: int, scale: int, a: Decimal, b: Decimal) -> Decimal:
    """Return a * b, rounded to a scale."""
    return _fitted(EXACT.multiply(a, b), precision, scale)


def _fitted(value: Decimal, precision: int, scale: int) -> Decimal:
    try:
        return rounded_number(value, precision, scale)
    except ValueError:
        raise ValueError("value overflows numeric format") from None


def irrational(name: str, precision: int, scale: int, value: Decimal) -> Decimal:
    """Return sqrt, exp, ln or log (to base 10) of a number."""
    if name == "sqrt":
        if value < 0:
            raise ValueError("cannot take square root of a negative number")
        return _fitted(_DIGITS.sqrt(value), precision, scale)
    if name == "exp":
        try:
            return _fitted(_DIGITS.exp(value), precision, scale)
        except (Overflow, DecimalException):
            raise ValueError("value overflows numeric format") from None
    return _fitted(_logarithm(name, value), precision, scale)


def _logarithm(name: str, value: Decimal) -> Decimal:
    if value < 0:
        raise ValueError("cannot take logarithm of a negative number")
    if value == 0:
        raise ValueError("cannot take logarithm of zero")
    return _DIGITS.ln(value) if name == "ln" else _DIGITS.log10(value)


def logarithm_to(precision: int, scale: int, base: Decimal, value: Decimal) -> Decimal:
    """Return the logarithm of a number to a base."""
    divisor, dividend = _logarithm("ln", base), _logarithm("ln", value)
    if divisor == 0:
        raise ValueError("division by zero")
    return _fitted(_DIGITS.divide(dividend, divisor), precision, scale)


def power(precision: int, scale: int, base: Decimal, exponent: Decimal) -> Decimal:
    """Return a number to the power of another."""
    if base == 0 and exponent < 0:
        raise ValueError("zero raised to a negative power is undefined")
    if base < 0 and exponent != exponent.to_integral_value():
        raise ValueError("a negative number raised to a non-integer power yields a complex result")
    if exponent == 0:
        return Decimal(1)
    if base == 0:
        return Decimal(0)
    try:
        return _fitted(_DIGITS.power(base, exponent), precision, scale)
    except DecimalException:
        raise ValueError("value overflows numeric format") from None


def greatest_divisor(precision: int, scale: int, a: Decimal, b: Decimal) -> Decimal:
    """Return the greatest common divisor."""
    return _fitted(Decimal(math.gcd(_units(a, scale), _units(b, scale))).scaleb(-scale, EXACT), precision, scale)


def least_multiple(precision: int, scale: int, a: Decimal, b: Decimal) -> Decimal:
    """Return the least common multiple."""
    return _fitted(Decimal(math.lcm(_units(a, scale), _units(b, scale))).scaleb(-scale, EXACT), precision, scale)


def _units(value: Decimal, scale: int) -> int:
    return int(value.scaleb(scale, EXACT))


def factorial(value: int) -> Decimal:
    """Return the product of the numbers up to one."""
    if value < 0:
        raise ValueError("factorial of a negative number is undefined: out of range")
    if value > 33:  # the first with more than 38 digits is 34!
        raise ValueError("value overflows numeric format")
    return Decimal(math.factorial(value))


def bucket(value: Decimal, low: Decimal, high: Decimal, count: int) -> Any:
    """Return which of `count` equal parts of low to high has a number: 0 below, count + 1 above."""
    if count <= 0:
        raise ValueError("count must be greater than zero")
    if low == high:
        raise ValueError("lower bound cannot equal upper bound")
    if low > high:
        value, low, high = value.copy_negate(), low.copy_negate(), high.copy_negate()
    if value < low:
        return 0
    number = (
        count + 1
        if value >= high
        else 1 + int(_DIGITS.divide(_DIGITS.multiply(_DIGITS.subtract(value, low), count), _DIGITS.subtract(high, low)))
    )
    if number > 2**31 - 1:
        raise ValueError("integer out of range")
    return number
