"""Arithmetic operators on numbers: + - * / % ^, signs, and operations on bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kpg.columns.expression import Expression
from kpg.sql.functions.building import distinct, first_argument, lanes, total
from kpg.sql.functions.cast_rules import NUMERIC
from kpg.sql.functions.float_lanes import float_arithmetic, total_function
from kpg.sql.functions.function import Build, Function
from kpg.sql.functions.integer_lanes import (
    bit_operation,
    divide_integers,
    integer_operation,
    remainder_integers,
    shift_bits,
)
from kpg.sql.functions.numeric_lanes import divide_numerics, negated, numeric_arithmetic, remainder_numerics
from kpg.sql.functions.numeric_results import (
    product_digits,
    quotient_digits,
    remainder_digits,
    same_digits,
    sum_digits,
)
from kpg.sql.functions.numeric_values import exact_product
from kpg.sql.sql_types import BIGINT, DOUBLE, INTEGER, REAL, SMALLINT, SqlType

INTEGERS: Final = (SMALLINT, INTEGER, BIGINT)
FLOATS: Final = (REAL, DOUBLE)


def _pairs() -> list[tuple[SqlType, SqlType, SqlType]]:
    """Return the pairs of types that arithmetic is defined for, each with its result."""
    integers = [(a, b, max(a, b, key=INTEGERS.index)) for a in INTEGERS for b in INTEGERS]
    return integers + [(a, b, max(a, b, key=FLOATS.index)) for a in FLOATS for b in FLOATS]


def _type_name(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return (result.name,)


def _is_single(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return (result.name == "real",)


def _scale(type_: SqlType) -> int:
    return type_.scale or 0


def _common_scale(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    """Return the powers of ten that bring both operands to the scale of the result, and its precision."""
    scale = max(map(_scale, types))
    return scale - _scale(types[0]), scale - _scale(types[1]), result.precision


def _product_scale(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return 0, 0, result.precision


def _quotient_scale(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return _scale(result) - _scale(types[0]) + _scale(types[1]), result.precision


def _integer_build(op: str) -> Build:
    if op == "/":
        return lanes(divide_integers, by_types=_type_name)
    return lanes(integer_operation, op, by_types=_type_name)


def _float_build(op: str) -> Build:
    return lanes(float_arithmetic, op, by_types=_is_single)


def product_build(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    """Build a * b of numerics. More than 38 digits after the point are rounded away."""
    extra = _scale(types[0]) + _scale(types[1]) - _scale(result)
    if extra <= 0:
        return lanes(numeric_arithmetic, "*", by_types=_product_scale)(arguments, types, result)
    return distinct(exact_product, result.precision, result.scale)(arguments, types, result)


def _build(op: str, result: SqlType) -> Build:
    return _integer_build(op) if result.is_integer else _float_build(op)


FUNCTIONS: Final = (
    *(Function(op, (a, b), result, _build(op, result)) for op in "+-*/" for a, b, result in _pairs()),
    *(Function(op, (NUMERIC, NUMERIC), sum_digits, lanes(numeric_arithmetic, op, by_types=_common_scale))
      for op in "+-"),
    Function("*", (NUMERIC, NUMERIC), product_digits, product_build),
    Function("/", (NUMERIC, NUMERIC), quotient_digits, lanes(divide_numerics, by_types=_quotient_scale)),
    *(Function(name, (a, a), a, lanes(remainder_integers)) for name in ("%", "mod") for a in INTEGERS),
    *(Function(name, (NUMERIC, NUMERIC), remainder_digits, lanes(remainder_numerics, by_types=_common_scale))
      for name in ("%", "mod")),
    *(Function("+", (a,), a, first_argument, total=True) for a in (*INTEGERS, *FLOATS)),
    Function("+", (NUMERIC,), same_digits, first_argument, total=True),
    *(Function("-", (a,), a, lanes(integer_operation, "neg", by_types=_type_name)) for a in INTEGERS),
    *(Function("-", (a,), a, total(total_function, "neg"), total=True) for a in FLOATS),
    Function("-", (NUMERIC,), same_digits, total(negated), total=True),
    *(Function(op, (a, a), a, total(bit_operation, op), total=True) for op in "&|#" for a in INTEGERS),
    *(Function("~", (a,), a, total(bit_operation, "~"), total=True) for a in INTEGERS),
    *(Function(op, (a, INTEGER), a, total(shift_bits, op, by_types=_type_name), total=True)
      for op in ("<<", ">>") for a in INTEGERS),
)  # fmt: skip
