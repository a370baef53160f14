"""The functions users begin expressions with: col, lit, when, coalesce, min_of, max_of, udf, row_udf."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from kpg.columns.expression import Apply, ColumnReference, Expression, FunctionCall, Literal, wrap
from kpg.columns.schema import Type, parse_type
from kpg.errors import TypeMismatch


class RowByRowWarning(UserWarning):
    """A function runs as Python for each row: about a hundred times slower than a function of arrays."""


def col(name: str) -> Expression:
    """The value of a column.

    >>> col("price") * col("quantity") > 100
    col("price") * col("quantity") > 100
    """
    return ColumnReference(name)


def lit(value: object) -> Expression:
    """A constant. Beside a column it may be written bare: `col("a") + 1`."""
    return Literal(value)


def coalesce(*values: object) -> Expression:
    """The first value that is not null."""
    return FunctionCall("coalesce", tuple(map(wrap, values)))


def min_of(*values: object) -> Expression:
    """The least of some values of a row; null if one of them is."""
    return FunctionCall("min_of", tuple(map(wrap, values)))


def max_of(*values: object) -> Expression:
    """The greatest of some values of a row; null if one of them is."""
    return FunctionCall("max_of", tuple(map(wrap, values)))


class WhenBuilder:
    """Conditions and values that still lack an `otherwise`."""

    __slots__ = ("_steps",)

    def __init__(self, steps: tuple[Expression, ...]) -> None:
        self._steps = steps

    def when(self, condition: object, value: object) -> WhenBuilder:
        """A value for rows where no earlier condition is true and this one is."""
        return WhenBuilder((*self._steps, wrap(condition), wrap(value)))

    def otherwise(self, value: object) -> Expression:
        """The value where no condition is true."""
        return FunctionCall("when", (*self._steps, wrap(value)))


def when(condition: object, value: object) -> WhenBuilder:
    """A value where a condition is true; say what else with `otherwise`.

    >>> when(col("a") > 0, "up").otherwise("down")
    when(col("a") > 0, "up").otherwise("down")
    """
    return WhenBuilder((wrap(condition), wrap(value)))


class UserFunction:
    """A user's function, ready to be called with expressions."""

    __slots__ = ("_function", "_kind", "_returns")

    def __init__(self, function: Callable[..., Any], returns: Type, kind: str) -> None:
        self._function = function
        self._returns = returns
        self._kind = kind

    def __call__(self, *arguments: object) -> Expression:
        return Apply(self._function, self._returns, self._kind, tuple(map(wrap, arguments)))


def udf(function: Callable[..., Any], *, returns: object, kind: str = "numpy") -> UserFunction:
    """A function of arrays as a function of columns: `udf(np.hypot, returns=float)(col("x"), col("y"))`.

    It is called with one array for each argument and returns one value for each row. With kind "numpy" rows with a null
    argument are left out and give null; with kind "arrow" the function gets Arrow arrays and sees nulls itself. It must
    not depend on what other rows it gets: batches are cut anywhere. A row on which it raises fails; the others do not.
    """
    if kind not in ("numpy", "arrow"):
        raise TypeMismatch(f"no such kind of udf: {kind!r}", hint="kind is 'numpy' or 'arrow'; see row_udf, too.")
    return UserFunction(function, parse_type(returns), kind)


def row_udf(function: Callable[..., Any], *, returns: object) -> UserFunction:
    """A function of one row's Python values as a function of columns. Slow: about a microsecond a row and more.

    For what arrays cannot do. A row with a null argument gives null without a call; a row on which it raises fails.
    """
    name = getattr(function, "__name__", type(function).__name__)
    warnings.warn(f"{name} runs once for each row; udf takes whole arrays", RowByRowWarning, stacklevel=2)
    return UserFunction(function, parse_type(returns), "rows")
