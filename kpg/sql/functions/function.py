"""Entries of the function tables: the signature of a function, its result type, and its computation over columns.

The binder chooses an entry by PostgreSQL's rules for overloads and casts each argument to the type of its parameter;
the lowering calls `build` with engine expressions of exactly these types. A function is strict (null for a null
argument) unless its `build` handles nulls itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from kpg.columns.expression import Expression
from kpg.sql.sql_types import SqlType

ResultType: TypeAlias = SqlType | Callable[[Sequence[SqlType]], SqlType]
Build: TypeAlias = Callable[[Sequence[Expression], Sequence[SqlType], SqlType], Expression]


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function or operator for some parameter types.

    `returns` is the result type, or computes it from the types of the arguments (numeric scales). If the scale depends
    on a value, as in round(x, 2), `returns_for` computes it from the types and the values of constant arguments (None
    for others). `build` takes the arguments, their types and the result type. `volatile` functions are allowed only in
    INSERT and UPDATE. `stable` ones, such as now(), have one value in a transaction and are not allowed in views.
    `total` functions fail on no row.
    """

    name: str
    parameters: tuple[SqlType, ...]
    returns: ResultType
    build: Build
    variadic: bool = False  # the last parameter may be repeated
    volatile: bool = False
    stable: bool = False
    total: bool = False
    returns_for: Callable[[Sequence[SqlType], Sequence[Any]], SqlType] | None = None

    def result_type(self, arguments: Sequence[SqlType], constants: Sequence[Any] = ()) -> SqlType:
        """Return the type of the result for arguments of these types; `constants` has the values that are known."""
        if self.returns_for is not None and constants:
            return self.returns_for(arguments, constants)
        return self.returns(arguments) if callable(self.returns) else self.returns


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate for some parameter types. `lowering` names how kpg/sql/lower computes it: "sum", "min", …"""

    name: str
    parameters: tuple[SqlType, ...]
    returns: ResultType
    lowering: str
    ordered: bool = False  # takes WITHIN GROUP (ORDER BY …): the ordered value is the last argument

    def result_type(self, arguments: Sequence[SqlType]) -> SqlType:
        """Return the type of the result for arguments of these types."""
        return self.returns(arguments) if callable(self.returns) else self.returns


@dataclass(frozen=True, slots=True)
class TableFunction:
    """A function that returns rows. `rows` maps the values of one row's arguments to the tuples it returns."""

    name: str
    parameters: tuple[SqlType, ...]
    returns: Callable[[Sequence[SqlType]], tuple[SqlType, ...]]
    rows: Callable[..., Any]
