"""Functions of numbers: rounding, powers, logarithms, angles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from kpg.columns.expression import Expression, Literal
from kpg.sql.functions import float_lanes, integer_lanes, numeric_lanes, numeric_values
from kpg.sql.functions.building import distinct, lanes, total, volatile
from kpg.sql.functions.cast_rules import NUMERIC
from kpg.sql.functions.function import Function
from kpg.sql.functions.numeric_results import (
    mean_digits,
    product_digits,
    remainder_digits,
    rounded_digits,
    same_digits,
    whole_digits,
)
from kpg.sql.functions.sql_arithmetic import FLOATS, INTEGERS
from kpg.sql.sql_types import BIGINT, DOUBLE, INTEGER, MAX_NUMERIC_DIGITS, SqlType, numeric

ANGLES: Final = (
    "sin", "cos", "tan", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "degrees",
    "radians", "cbrt",
)  # fmt: skip
BOTH: Final = ("sqrt", "exp", "ln", "log", "log10")  # defined for numeric and for double precision


TOTAL_ANGLES: Final = frozenset({"atan", "asinh", "tanh", "radians", "cbrt"})
ROUNDINGS: Final = ("sign", "ceil", "ceiling", "floor", "round", "trunc")


def _whole(types: Sequence[SqlType]) -> SqlType:
    return numeric(MAX_NUMERIC_DIGITS, 0)


def _type_name(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return (result.name,)


def _digits(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return result.precision, result.scale


def _precision(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return (result.precision,)


def _scales(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return types[0].scale, result.scale, result.precision


def _scale(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return types[0].scale, result.precision


def _drop(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return -(types[0].scale or 0), result.precision, numeric_lanes.TOO_LARGE


def _common_scale(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    scales = [type_.scale or 0 for type_ in types]
    return max(scales) - scales[0], max(scales) - scales[1]


_NUMERIC_ROUNDINGS: Final = {
    "sign": total(numeric_lanes.sign_of, by_types=_precision),
    "ceil": total(numeric_lanes.rounded_whole, True, by_types=_scale),
    "ceiling": total(numeric_lanes.rounded_whole, True, by_types=_scale),
    "floor": total(numeric_lanes.rounded_whole, False, by_types=_scale),
    "round": lanes(numeric_lanes.rescaled, by_types=_drop),
    "trunc": total(numeric_lanes.truncated, by_types=_scale),
}


def _angle(name: str) -> Function:
    if name in TOTAL_ANGLES:
        return Function(name, (DOUBLE,), DOUBLE, total(float_lanes.total_function, name), total=True)
    return Function(name, (DOUBLE,), DOUBLE, lanes(float_lanes.partial_function, name))


def _pi(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    return Literal(math.pi)


FUNCTIONS: Final = (
    *(Function(name, (a,), a, lanes(integer_lanes.integer_operation, "abs", by_types=_type_name))
      for name in ("abs", "@") for a in INTEGERS),
    *(Function(name, (a,), a, total(float_lanes.total_function, "abs"), total=True)
      for name in ("abs", "@") for a in FLOATS),
    *(Function(name, (NUMERIC,), same_digits, total(numeric_lanes.magnitude), total=True) for name in ("abs", "@")),
    *(Function(name, (DOUBLE,), DOUBLE, total(float_lanes.total_function, name.removesuffix("ing")), total=True)
      for name in ROUNDINGS),
    *(Function(name, (NUMERIC,), whole_digits, _NUMERIC_ROUNDINGS[name], total=True) for name in ROUNDINGS),
    *(Function(name, (NUMERIC, INTEGER), rounded_digits, lanes(numeric_lanes.rounded_at, name, by_types=_scales),
               returns_for=rounded_digits) for name in ("round", "trunc")),
    *(Function(name, (DOUBLE, DOUBLE), DOUBLE, lanes(float_lanes.power_of_floats)) for name in ("power", "pow", "^")),
    *(Function(name, (NUMERIC, NUMERIC), mean_digits, distinct(numeric_values.power, by_types=_digits))
      for name in ("power", "pow", "^")),
    Function("sqrt", (DOUBLE,), DOUBLE, lanes(float_lanes.square_root)),
    Function("exp", (DOUBLE,), DOUBLE, lanes(float_lanes.partial_function, "exp")),
    Function("ln", (DOUBLE,), DOUBLE, lanes(float_lanes.logarithm, "ln")),
    *(Function(name, (DOUBLE,), DOUBLE, lanes(float_lanes.logarithm, "log10")) for name in ("log", "log10")),
    *(Function(name, (NUMERIC,), mean_digits, distinct(numeric_values.irrational, name, by_types=_digits))
      for name in BOTH),
    Function("log", (NUMERIC, NUMERIC), mean_digits, distinct(numeric_values.logarithm_to, by_types=_digits)),
    *map(_angle, ANGLES),
    Function("atan2", (DOUBLE, DOUBLE), DOUBLE, total(float_lanes.angle_of), total=True),
    Function("pi", (), DOUBLE, _pi, total=True),
    Function("div", (NUMERIC, NUMERIC), _whole, lanes(numeric_lanes.whole_quotient, by_types=_common_scale)),
    *(Function("gcd", (a, a), a, lanes(integer_lanes.greatest_divisor, by_types=_type_name))
      for a in (INTEGER, BIGINT)),
    *(Function("lcm", (a, a), a, lanes(integer_lanes.least_multiple, by_types=_type_name))
      for a in (INTEGER, BIGINT)),
    Function("gcd", (NUMERIC, NUMERIC), remainder_digits, distinct(numeric_values.greatest_divisor, by_types=_digits)),
    Function("lcm", (NUMERIC, NUMERIC), product_digits, distinct(numeric_values.least_multiple, by_types=_digits)),
    Function("factorial", (BIGINT,), _whole, distinct(numeric_values.factorial)),
    Function("width_bucket", (DOUBLE, DOUBLE, DOUBLE, INTEGER), INTEGER, lanes(float_lanes.bucket_of_floats)),
    Function("width_bucket", (NUMERIC, NUMERIC, NUMERIC, INTEGER), INTEGER, distinct(numeric_values.bucket)),
    Function("random", (), DOUBLE, volatile(float_lanes.random_floats), volatile=True),
)  # fmt: skip
