"""Bound scalars: expressions whose columns, functions and types are resolved. One value for each row, or null.

Scalars are immutable and refer to `Column` objects by identity. A scalar inside a subquery may refer to columns of the
surrounding query: the subquery is then correlated, and nothing else marks it. Logic has three values. Casts are
explicit: the arguments of a `ScalarCall` have exactly the types that its function takes.

`span` is the part of the source text that the user wrote, for the messages of rows that fail. Generated scalars have
the span of what they were generated from, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from kpg.columns.pause_points import pause
from kpg.sql.sql_types import BOOLEAN, SqlType

if TYPE_CHECKING:
    from kpg.sql.functions.function import AggregateFunction, Function
    from kpg.sql.parse.spans import Span
    from kpg.sql.relational.relations import BoundRelation


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """A column of a relation, identified by the object itself. Its name is for people."""

    name: str
    type: SqlType

    def __repr__(self) -> str:
        return f"{self.name}#{id(self) % 9973}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A value for each row. Equality compares structure, spans aside."""

    type: SqlType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ColumnValue(Scalar):
    """The value of a column."""

    column: Column


@dataclass(frozen=True, slots=True)
class Constant(Scalar):
    """One value: the Python value of the type (int, Decimal, str, date, …), None for null."""

    value: Any


@dataclass(frozen=True, slots=True)
class ScalarCall(Scalar):
    """A function or operator of the function table applied to arguments of the types that it takes."""

    function: Function
    arguments: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Cast(Scalar):
    """A value as another type; `explicit` casts may truncate text, as in PostgreSQL."""

    argument: Scalar
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class And(Scalar):
    """True if all terms are. A failing term counts only where no other term is false."""

    terms: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Or(Scalar):
    """True if some term is. A failing term counts only where no other term is true."""

    terms: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Not(Scalar):
    """True if the term is false."""

    term: Scalar


@dataclass(frozen=True, slots=True)
class IsNull(Scalar):
    """Whether the argument is null; never null itself."""

    argument: Scalar


@dataclass(frozen=True, slots=True)
class SameValue(Scalar):
    """Whether two values of one type are equal, where null equals null (IS NOT DISTINCT FROM); never null itself."""

    left: Scalar
    right: Scalar


@dataclass(frozen=True, slots=True)
class Case(Scalar):
    """The value of the first branch with a true condition. Other branches are not evaluated, so they cannot fail."""

    branches: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar


@dataclass(frozen=True, slots=True)
class Coalesce(Scalar):
    """The first argument that is not null; later ones are not evaluated."""

    arguments: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class SubqueryValue(Scalar):
    """The one value of a subquery: null if it has no row, an error if it has several."""

    query: BoundRelation
    column: Column


@dataclass(frozen=True, slots=True)
class Exists(Scalar):
    """Whether a subquery has a row."""

    query: BoundRelation


@dataclass(frozen=True, slots=True)
class AnyRow(Scalar):
    """Whether a condition holds for some row of a subquery: true, else null if it is null for some row, else false.

    `x IN (SELECT y …)` has the condition x = y. `x > ALL (…)` is the negation of `NOT x > y` for any row.
    """

    query: BoundRelation
    condition: Scalar


@dataclass(frozen=True, slots=True)
class SubqueryArray(Scalar):
    """The values of a subquery's column as an array, in value order unless `order` says otherwise."""

    query: BoundRelation
    column: Column
    order: tuple[SortKey, ...] = ()


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an order. PostgreSQL's default: nulls are last, and first if descending."""

    value: Scalar
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate function over the rows of a group. `filter` selects rows; null means all."""

    function: AggregateFunction
    arguments: tuple[Scalar, ...]
    type: SqlType
    distinct: bool = False
    filter: Scalar | None = None
    order: tuple[SortKey, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


SUBQUERIES = (SubqueryValue, Exists, AnyRow, SubqueryArray)
TRUE = Constant(True, type=BOOLEAN)
WITHOUT_PARTS = frozenset({"type", "span", "column", "value", "function", "explicit", "query"})  # fields of scalars
_part_names: dict[type[Scalar], tuple[str, ...]] = {}


def part_names(kind: type[Scalar]) -> tuple[str, ...]:
    """Return the fields of a kind of scalar that may hold scalars; found once, since trees are walked often."""
    names = _part_names.get(kind)
    if names is None:
        names = tuple(entry.name for entry in fields(kind) if entry.name not in WITHOUT_PARTS)
        _part_names[kind] = names
    return names


def parts(scalar: Scalar) -> tuple[Scalar, ...]:
    """Return the direct parts of a scalar. Subqueries are no part of it, except the condition of `AnyRow`."""
    pause()
    collected: list[Scalar] = []
    for name in part_names(type(scalar)):
        _collect(getattr(scalar, name), collected)
    return tuple(collected)


def _collect(value: Any, into: list[Scalar]) -> None:
    if isinstance(value, Scalar):
        into.append(value)
    elif isinstance(value, tuple):
        for member in value:
            _collect(member, into)


def map_parts(scalar: Scalar, function: Callable[[Scalar], Scalar]) -> Scalar:
    """Return the scalar with a function applied to its direct parts."""
    pause()
    changed = {}
    for name in part_names(type(scalar)):
        old = getattr(scalar, name)
        new = _mapped(old, function)
        if new is not old:
            changed[name] = new
    return replace(scalar, **changed) if changed else scalar


def _mapped(value: Any, function: Callable[[Scalar], Scalar]) -> Any:
    if isinstance(value, Scalar):
        return function(value)
    if isinstance(value, tuple) and value and any(isinstance(member, (Scalar, tuple)) for member in value):
        mapped = tuple(_mapped(member, function) for member in value)
        return value if all(new is old for new, old in zip(mapped, value, strict=True)) else mapped
    return value


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """Yield the scalar and all scalars within it, outer ones first; not those inside subqueries."""
    stack = [scalar]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(parts(current)))


def conjuncts(scalar: Scalar) -> tuple[Scalar, ...]:
    """Return the terms of a conjunction, nested ones included; another scalar is its own only term."""
    if scalar == TRUE:
        return ()
    return tuple(term for part in scalar.terms for term in conjuncts(part)) if isinstance(scalar, And) else (scalar,)


def conjunction(terms: tuple[Scalar, ...]) -> Scalar:
    """Return the conjunction of terms; TRUE if there is none."""
    if not terms:
        return TRUE
    return terms[0] if len(terms) == 1 else And(terms, type=BOOLEAN)
