"""Arithmetic operators on numbers: + - * / % ^, signs, and operations on bits."""

from __future__ import annotations

from typing import Final

from kpg.sql.functions.building import pending
from kpg.sql.functions.cast_rules import NUMERIC
from kpg.sql.functions.function import Function
from kpg.sql.functions.numeric_results import (
    product_digits,
    quotient_digits,
    remainder_digits,
    same_digits,
    sum_digits,
)
from kpg.sql.sql_types import BIGINT, DOUBLE, INTEGER, REAL, SMALLINT, SqlType

INTEGERS: Final = (SMALLINT, INTEGER, BIGINT)
FLOATS: Final = (REAL, DOUBLE)


def _pairs() -> list[tuple[SqlType, SqlType, SqlType]]:
    """Return the pairs of types that arithmetic is defined for, each with its result."""
    integers = [(a, b, max(a, b, key=INTEGERS.index)) for a in INTEGERS for b in INTEGERS]
    return integers + [(a, b, max(a, b, key=FLOATS.index)) for a in FLOATS for b in FLOATS]


FUNCTIONS: Final = (
    *(Function(op, (a, b), result, pending) for op in "+-*/" for a, b, result in _pairs()),
    Function("+", (NUMERIC, NUMERIC), sum_digits, pending),
    Function("-", (NUMERIC, NUMERIC), sum_digits, pending),
    Function("*", (NUMERIC, NUMERIC), product_digits, pending),
    Function("/", (NUMERIC, NUMERIC), quotient_digits, pending),
    *(Function(name, (a, a), a, pending) for name in ("%", "mod") for a in INTEGERS),
    *(Function(name, (NUMERIC, NUMERIC), remainder_digits, pending) for name in ("%", "mod")),
    *(Function(op, (a,), a, pending) for op in "+-" for a in (*INTEGERS, *FLOATS)),
    *(Function(op, (NUMERIC,), same_digits, pending) for op in "+-"),
    *(Function(op, (a, a), a, pending) for op in "&|#" for a in INTEGERS),
    *(Function("~", (a,), a, pending) for a in INTEGERS),
    *(Function(op, (a, INTEGER), a, pending) for op in ("<<", ">>") for a in INTEGERS),
)
