"""The functions that begin expressions: col, lit, when, coalesce, min_of, max_of, udf, row_udf.

To add a function of columns, follow the steps in kpg/columns/bind.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from kpg.columns.expression import Apply, ColumnReference, Expression, FunctionCall, Literal, wrap
from kpg.columns.schema import Type, parse_type
from kpg.errors import TypeMismatch


class RowByRowWarning(UserWarning):
    """Warns that a function runs as Python code for each row, a hundred times slower than a function of arrays."""


def col(name: str) -> Expression:
    """Return the value of a column.

    >>> col("price") * col("quantity") > 100
    col("price") * col("quantity") > 100
    """
    return ColumnReference(name)


def lit(value: object) -> Expression:
    """Return a constant. Beside a column you may write it bare: `col("a") + 1`."""
    return Literal(value)


def coalesce(*values: object) -> Expression:
    """Return the first value that is not null."""
    return FunctionCall("coalesce", tuple(map(wrap, values)))


def min_of(*values: object) -> Expression:
    """Return the least of several values of a row; null if one of them is null."""
    return FunctionCall("min_of", tuple(map(wrap, values)))


def max_of(*values: object) -> Expression:
    """Return the greatest of several values of a row; null if one of them is null."""
    return FunctionCall("max_of", tuple(map(wrap, values)))


class WhenBuilder:
    """Conditions and values, to be completed by `otherwise`."""

    __slots__ = ("_steps",)

    def __init__(self, steps: tuple[Expression, ...]) -> None:
        self._steps = steps

    def when(self, condition: object, value: object) -> WhenBuilder:
        """Add a value for the rows where this condition is true and no earlier one is."""
        return WhenBuilder((*self._steps, wrap(condition), wrap(value)))

    def otherwise(self, value: object) -> Expression:
        """Complete the expression with the value where no condition is true."""
        return FunctionCall("when", (*self._steps, wrap(value)))


def when(condition: object, value: object) -> WhenBuilder:
    """Begin a choice: a value where a condition is true; complete it with `otherwise`.

    >>> when(col("a") > 0, "up").otherwise("down")
    when(col("a") > 0, "up").otherwise("down")
    """
    return WhenBuilder((wrap(condition), wrap(value)))


class UserFunction:
    """A user function that can be called with expressions."""

    __slots__ = ("_function", "_kind", "_returns")

    def __init__(self, function: Callable[..., Any], returns: Type, kind: str) -> None:
        self._function = function
        self._returns = returns
        self._kind = kind

    def __call__(self, *arguments: object) -> Expression:
        return Apply(self._function, self._returns, self._kind, tuple(map(wrap, arguments)))


def udf(function: Callable[..., Any], *, returns: object, kind: str = "numpy") -> UserFunction:
    """Return a function of arrays as a function of columns: `udf(np.hypot, returns=float)(col("x"), col("y"))`.

    kpg calls it with an array for each argument, and it returns a value for each row. With kind "numpy", rows with a
    null argument are left out and give null; with kind "arrow", the function gets Arrow arrays with their nulls. The
    value of a row must not depend on the other rows, because batches are cut anywhere. Only the rows on which the
    function raises fail.
    """
    if kind not in ("numpy", "arrow"):
        raise TypeMismatch(f"unknown kind of udf: {kind!r}", hint="Use kind='numpy' or kind='arrow'; or see row_udf.")
    return UserFunction(function, parse_type(returns), kind)


def row_udf(function: Callable[..., Any], *, returns: object) -> UserFunction:
    """Return a function of one row's Python values as a function of columns. Slow: a microsecond a row or more.

    Use it for computations that arrays cannot do. A row with a null argument gives null without a call; a row on which
    the function raises fails.
    """
    name = getattr(function, "__name__", type(function).__name__)
    warnings.warn(f"{name} runs once for each row; udf takes whole arrays", RowByRowWarning, stacklevel=2)
    return UserFunction(function, parse_type(returns), "rows")
