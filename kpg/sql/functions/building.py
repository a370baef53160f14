"""Ways to write the `build` of a function: how its expression is made from its arguments.

    total(f), lanes(f)           a vectorised function of lanes that never fails, or that returns the failed rows
    distinct(f), values(f)       a function of Python values, once for each distinct combination; `values` gets nulls

See kpg/columns/computed_nodes.py for what `f` takes and returns. Workers import `f` by its name, so it is a function at
the top level of a module. `options` are constants that `f` takes first, or are computed from the types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from kpg.columns.expression import Apply, Expression, FunctionCall, Literal
from kpg.sql.functions.function import Build
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.sql_types import SqlType

Options: TypeAlias = Callable[[Sequence[SqlType], SqlType], tuple[Any, ...]]


def constant_text(expression: Expression) -> str | None:
    """Return the value of an expression that is a constant text, else None."""
    while isinstance(expression, FunctionCall) and expression.op == "cast":
        (expression,) = expression.arguments
    value = expression.value if isinstance(expression, Literal) else None
    return value if isinstance(value, str) else None


def first_argument(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    """Build a function that returns its argument."""
    return arguments[0]


def total(function: Callable[..., Any], *options: Any, by_types: Options | None = None, null: bool = False) -> Build:
    """Return the build of a vectorised function that never fails; `null` if it may return null."""
    return _applied("total", function, options, by_types, null)


def lanes(function: Callable[..., Any], *options: Any, by_types: Options | None = None, null: bool = False) -> Build:
    """Return the build of a vectorised function that fails on some rows; `null` if it may return null."""
    return _applied("lanes", function, options, by_types, null)


def distinct(function: Callable[..., Any], *options: Any, by_types: Options | None = None, null: bool = False) -> Build:
    """Return the build of a function of values that are not null; `null` if it may return null."""
    return _applied("distinct", function, options, by_types, null)


def batches(function: Callable[..., Any], *options: Any, by_types: Options | None = None) -> Build:
    """Return the build of a function of columns of values that are not null."""
    return _applied("batches", function, options, by_types, null=False)


def values(function: Callable[..., Any], *options: Any, by_types: Options | None = None) -> Build:
    """Return the build of a function of values, also of nulls, which may return null."""
    return _applied("values", function, options, by_types, null=True)


def volatile(function: Callable[..., Any]) -> Build:
    """Return the build of a function without arguments that has another value for each row."""
    return _applied("volatile", function, (), None, null=False)


def _applied(
    kind: str, function: Callable[..., Any], options: tuple[Any, ...], by_types: Options | None, null: bool
) -> Build:
    def build(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
        chosen = options if by_types is None else options + by_types(types, result)
        return Apply(function, engine_type(result, nullable=null), kind, tuple(arguments), chosen)

    return build
