"""Lower bound scalars to expressions over the columns of a collection.

Messages of failing rows show the source text of the innermost function that failed, its position, and the values of
the columns that it mentions. And, Or, Case and Coalesce hide the failures of parts that are not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from kpg.columns.expression import Apply, ColumnReference, Expression, FunctionCall, Literal, Written
from kpg.columns.expression_origin import ExpressionOrigin
from kpg.columns.pause_points import pause
from kpg.sql.functions.sql_casts import build_cast, is_total_cast, read_array
from kpg.sql.functions.text_output import write_array
from kpg.sql.lower.constant_memberships import split_memberships
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.parse.sql_failures import position_of
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
    walk,
)

if TYPE_CHECKING:
    from kpg.sql.parse.spans import Span

Names = Mapping[Column, str]


def expression_of(scalar: Scalar, names: Names) -> Expression:
    """Return the expression of a scalar; `names` has the name in the collection of each column that it reads."""

    def lower(part: Scalar) -> Expression:
        return expression_of(part, names)

    pause()
    match scalar:
        case ColumnValue():
            return ColumnReference(names[scalar.column])
        case Constant():
            return constant_expression(scalar.value, scalar)
        case ScalarCall():
            arguments = [lower(argument) for argument in scalar.arguments]
            types = [argument.type for argument in scalar.arguments]
            built = scalar.function.build(arguments, types, scalar.type)
            return built if scalar.function.total else written(built, scalar, names)
        case Cast():
            source = scalar.argument.type
            cast = build_cast(lower(scalar.argument), source, scalar.type, scalar.explicit)
            return cast if is_total_cast(source, scalar.type) else written(cast, scalar, names)
        case And():
            return balanced(and_, [lower(term) for term in scalar.terms])
        case Or():
            tests, others = split_memberships(scalar.terms, names)
            return balanced(or_, [*tests, *(lower(term) for term in others)])
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


def balanced(operator: Callable[[Expression, Expression], Expression], expressions: list[Expression]) -> Expression:
    """Return the terms of an associative operator as a tree of logarithmic depth: a list of IN may have thousands."""
    while len(expressions) > 1:
        pairs = zip(expressions[::2], expressions[1::2], strict=False)
        last = expressions[-1:] if len(expressions) % 2 else []
        expressions = [operator(left, right) for left, right in pairs] + last
    return expressions[0]


def constant_expression(value: Any, scalar: Scalar) -> Expression:
    """Return a constant as an expression of the column type of its SQL type."""
    if value is None:
        return Literal(None).cast(engine_type(scalar.type))
    type_ = engine_type(scalar.type, nullable=False)
    if scalar.type.element is not None:  # literals of the engine have no arrays
        text = Literal(write_array(scalar.type.element.name, value))
        return Apply(read_array, type_, "distinct", (text,), (str(scalar.type.element),))
    return Literal(value).cast(type_)


def written(expression: Expression, scalar: Scalar, names: Names) -> Expression:
    """Return an expression that names its source text if it fails on a row."""
    return expression if scalar.span is None else Written(expression, origin_of(scalar, scalar.span, names))


def origin_of(scalar: Scalar, span: Span, names: Names) -> ExpressionOrigin:
    """Return the source text of a scalar, its position, and the columns that it mentions."""
    position = position_of(span)
    mentioned = {part.column.name: names[part.column] for part in walk(scalar) if isinstance(part, ColumnValue)}
    text = " ".join(span.text().split())
    return ExpressionOrigin(text, str(position), position.excerpt(), tuple(mentioned.items()), f"{position} {text}")
