"""Lower bound scalars to expressions over the columns of a collection."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from kpg.columns.expression import ColumnReference, Expression, FunctionCall, Literal
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.relational.scalars import (
    And,
    Case,
    Cast,
    Coalesce,
    Column,
    ColumnValue,
    Constant,
    IsNull,
    Not,
    Or,
    SameValue,
    Scalar,
    ScalarCall,
)


def expression_of(scalar: Scalar, names: Mapping[Column, str]) -> Expression:
    """Return the expression of a scalar; `names` has the name in the collection of each column that it reads."""

    def lower(part: Scalar) -> Expression:
        return expression_of(part, names)

    match scalar:
        case ColumnValue():
            return ColumnReference(names[scalar.column])
        case Constant():
            return constant_expression(scalar.value, scalar)
        case ScalarCall():
            arguments = [lower(argument) for argument in scalar.arguments]
            return scalar.function.build(arguments, [argument.type for argument in scalar.arguments], scalar.type)
        case Cast():
            return lower(scalar.argument).cast(engine_type(scalar.type))
        case And():
            return reduce(lambda a, b: a & b, map(lower, scalar.terms))
        case Or():
            return reduce(lambda a, b: a | b, map(lower, scalar.terms))
        case Not():
            return ~lower(scalar.term)
        case IsNull():
            return lower(scalar.argument).is_null()
        case SameValue():
            left, right = lower(scalar.left), lower(scalar.right)
            either_null = left.is_null() | right.is_null()
            return FunctionCall("when", (either_null, left.is_null() & right.is_null(), left == right))
        case Case():
            pairs = [lower(part) for branch in scalar.branches for part in branch]
            return FunctionCall("when", (*pairs, lower(scalar.otherwise)))
        case Coalesce():
            return FunctionCall("coalesce", tuple(map(lower, scalar.arguments)))
    raise AssertionError(f"{type(scalar).__name__} is no scalar that can be lowered")


def constant_expression(value: Any, scalar: Scalar) -> Expression:
    """Return a constant as an expression of the column type of its SQL type."""
    if value is None:
        return Literal(None).cast(engine_type(scalar.type))
    return Literal(value).cast(engine_type(scalar.type, nullable=False))
