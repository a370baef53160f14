"""Functions of numbers: rounding, powers, logarithms, angles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kpg.sql.functions.building import pending
from kpg.sql.functions.cast_rules import NUMERIC
from kpg.sql.functions.function import Function
from kpg.sql.functions.numeric_results import (
    mean_digits,
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


def _whole(types: Sequence[SqlType]) -> SqlType:
    return numeric(MAX_NUMERIC_DIGITS, 0)


FUNCTIONS: Final = (
    *(Function(name, (a,), a, pending) for name in ("abs", "@") for a in (*INTEGERS, *FLOATS)),
    *(Function(name, (NUMERIC,), same_digits, pending) for name in ("abs", "@")),
    *(Function(name, (DOUBLE,), DOUBLE, pending) for name in ("sign", "ceil", "ceiling", "floor", "round", "trunc")),
    *(Function(name, (NUMERIC,), whole_digits, pending)
      for name in ("sign", "ceil", "ceiling", "floor", "round", "trunc")),
    *(Function(name, (NUMERIC, INTEGER), rounded_digits, pending, returns_for=rounded_digits)
      for name in ("round", "trunc")),
    *(Function(name, (DOUBLE, DOUBLE), DOUBLE, pending) for name in ("power", "pow", "^")),
    *(Function(name, (NUMERIC, NUMERIC), mean_digits, pending) for name in ("power", "pow", "^")),
    *(Function(name, (DOUBLE,), DOUBLE, pending) for name in BOTH),
    *(Function(name, (NUMERIC,), mean_digits, pending) for name in BOTH),
    Function("log", (NUMERIC, NUMERIC), mean_digits, pending),
    *(Function(name, (DOUBLE,), DOUBLE, pending) for name in ANGLES),
    Function("atan2", (DOUBLE, DOUBLE), DOUBLE, pending),
    Function("pi", (), DOUBLE, pending),
    Function("div", (NUMERIC, NUMERIC), _whole, pending),
    *(Function(name, (a, a), a, pending) for name in ("gcd", "lcm") for a in (INTEGER, BIGINT)),
    Function("gcd", (NUMERIC, NUMERIC), remainder_digits, pending),
    Function("lcm", (NUMERIC, NUMERIC), remainder_digits, pending),
    Function("factorial", (BIGINT,), _whole, pending),
    Function("width_bucket", (DOUBLE, DOUBLE, DOUBLE, INTEGER), INTEGER, pending),
    Function("width_bucket", (NUMERIC, NUMERIC, NUMERIC, INTEGER), INTEGER, pending),
    Function("random", (), DOUBLE, pending, volatile=True),
)  # fmt: skip
