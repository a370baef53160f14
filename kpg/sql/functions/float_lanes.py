"""Functions of real and double precision on lanes. A result that overflows fails its row, as in PostgreSQL.

`single` is true for results of type real, which are rounded to 32 bits.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kpg.columns import floats
from kpg.columns.row_functions import ROW_FUNCTIONS, RowFunction, float_operation
from kpg.columns.updates import Ints
from kpg.sql.functions.integer_lanes import DIVISION_BY_ZERO, Computed

OVERFLOW: Final = "value out of range: overflow"
UNDERFLOW: Final = "value out of range: underflow"
OUT_OF_RANGE: Final = "input is out of range"
_ARITHMETIC: Final[dict[str, Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


def rounded_to(single: bool, values: Any) -> Any:
    """Return floats with the digits of their type."""
    with np.errstate(all="ignore"):
        return values.astype(np.float32).astype(np.float64) if single else values


def float_arithmetic(op: str, single: bool, a: Ints, b: Ints) -> Computed:
    """Return the result of + - * /."""
    x, y = floats.from_lane(a), floats.from_lane(b)
    zero = (y == 0) & ~np.isnan(x) if op == "/" else None
    with np.errstate(all="ignore"):
        result = rounded_to(single, np.asarray(_ARITHMETIC[op](x, y)))
    failures = [(np.isinf(result) & ~np.isinf(x) & ~np.isinf(y), OVERFLOW)]
    if op == "*":
        failures.append(((result == 0) & (x != 0) & (y != 0), UNDERFLOW))
    if zero is not None:
        failures = [(zero, DIVISION_BY_ZERO), *failures, ((result == 0) & (x != 0) & ~np.isinf(y), UNDERFLOW)]
    return floats.to_lane(result), tuple(failures)


def narrow_floats(a: Ints) -> Computed:
    """Return double precision as real."""
    x = floats.from_lane(a)
    result = rounded_to(True, x)
    overflow, underflow = np.isinf(result) & ~np.isinf(x), (result == 0) & (x != 0)
    return floats.to_lane(result), ((overflow, OVERFLOW), (underflow, UNDERFLOW))


def _sign(x: Any) -> Any:
    return np.where(np.isnan(x), 0.0, np.sign(x))


_TOTAL: Final[dict[str, Any]] = {
    "neg": np.negative, "abs": np.abs, "sign": _sign, "ceil": np.ceil, "floor": np.floor, "round": np.rint,
    "trunc": np.trunc, "atan": np.arctan, "asinh": np.arcsinh, "tanh": np.tanh, "radians": np.radians,
    "cbrt": np.cbrt,
}  # fmt: skip


def total_function(name: str, a: Ints) -> Ints:
    """Return a function of floats that is defined everywhere."""
    with np.errstate(all="ignore"):
        return floats.to_lane(np.asarray(_TOTAL[name](floats.from_lane(a))))


def _cot(x: Any) -> Any:
    return 1.0 / np.tan(x)


_PARTIAL: Final[dict[str, Any]] = {
    "exp": np.exp, "sinh": np.sinh, "cosh": np.cosh, "degrees": np.degrees, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "cot": _cot, "asin": np.arcsin, "acos": np.arccos, "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip
_MAY_OVERFLOW: Final = frozenset({"exp", "degrees"})  # sinh and cosh may be infinite


def partial_function(name: str, a: Ints) -> Computed:
    """Return a function of floats that fails outside of its domain, or by overflow."""
    x = floats.from_lane(a)
    with np.errstate(all="ignore"):
        result = np.asarray(_PARTIAL[name](x))
    failures = [(np.isnan(result) & ~np.isnan(x), OUT_OF_RANGE)]
    if name in _MAY_OVERFLOW:
        failures.append((np.isinf(result) & ~np.isinf(x), OVERFLOW))
    if name == "exp":
        failures.append(((result == 0) & ~np.isinf(x), UNDERFLOW))
    return floats.to_lane(result), tuple(failures)


def square_root(a: Ints) -> Computed:
    """Return the square root."""
    x = floats.from_lane(a)
    with np.errstate(all="ignore"):
        return floats.to_lane(np.sqrt(x)), ((x < 0, "cannot take square root of a negative number"),)


def logarithm(name: str, a: Ints) -> Computed:
    """Return the natural logarithm, or that to base 10."""
    x = floats.from_lane(a)
    with np.errstate(all="ignore"):
        result = np.log(x) if name == "ln" else np.log10(x)
    negative, zero = x < 0, x == 0
    reasons = ((negative, "cannot take logarithm of a negative number"), (zero, "cannot take logarithm of zero"))
    return floats.to_lane(result), reasons


def power_of_floats(a: Ints, b: Ints) -> Computed:
    """Return a to the power of b."""
    x, y = floats.from_lane(a), floats.from_lane(b)
    with np.errstate(all="ignore"):
        result = np.power(x, y)
    zero = (x == 0) & (y < 0)
    fraction = (x < 0) & (np.floor(y) != y) & np.isfinite(y) & np.isfinite(x)
    finite = np.isfinite(x) & np.isfinite(y)
    return floats.to_lane(result), (
        (zero, "zero raised to a negative power is undefined"),
        (fraction, "a negative number raised to a non-integer power yields a complex result"),
        (np.isinf(result) & finite & ~zero, OVERFLOW),
        ((result == 0) & finite & (x != 0), UNDERFLOW),
    )


def angle_of(a: Ints, b: Ints) -> Ints:
    """Return the angle of the point (b, a)."""
    return floats.to_lane(np.arctan2(floats.from_lane(a), floats.from_lane(b)))


def bucket_of_floats(a: Ints, low: Ints, high: Ints, count: Ints) -> Computed:
    """Return which of `count` equal parts of low to high has a number: 0 below, count + 1 above."""
    x, lo, hi = np.broadcast_arrays(floats.from_lane(a), floats.from_lane(low), floats.from_lane(high))
    unfit = np.isnan(x) | np.isnan(lo) | np.isnan(hi)
    infinite = np.isinf(lo) | np.isinf(hi)
    equal = lo == hi
    with np.errstate(all="ignore"):
        part = np.floor(count * ((x - lo) / (hi - lo)))
        part = np.where(np.isfinite(part), part, 0.0)
        within = part.astype(np.int64) + 1
    below = np.where(lo < hi, x < lo, x > lo)
    above = np.where(lo < hi, x >= hi, x <= hi)
    result = np.where(below, 0, np.where(above, count + 1, within))
    return result, (
        (count <= 0, "count must be greater than zero"),
        (unfit, "operand, lower bound, and upper bound cannot be NaN"),
        (infinite, "lower and upper bounds must be finite"),
        (equal, "lower bound cannot equal upper bound"),
        (result > 2**31 - 1, "integer out of range"),
    )


def floats_to_integers(type_name: str, a: Ints) -> Computed:
    """Return floats as integers, rounded half to even."""
    values = np.rint(floats.from_lane(a))
    limit = {"smallint": 2.0**15, "integer": 2.0**31, "bigint": 2.0**63}[type_name]
    failed = ~((values >= -limit) & (values < limit))
    return np.where(failed, 0.0, values).astype(np.int64), ((failed, f"{type_name} out of range"),)


def integers_to_floats(single: bool, a: Ints) -> Ints:
    """Return integers as the nearest floats."""
    return floats.to_lane(a.astype(np.float32).astype(np.float64) if single else a.astype(np.float64))


def random_floats(count: int) -> Ints:
    """Return random numbers from 0 up to but not including 1."""
    return floats.to_lane(np.random.default_rng().random(count))


def _row_arithmetic(op: str, single: bool) -> RowFunction | None:
    return None if single else float_operation(_ARITHMETIC[op])


ROW_FUNCTIONS[float_arithmetic] = _row_arithmetic
