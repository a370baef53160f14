"""Split the condition of a join into pairs of equal keys and the rest.

a.x = b.y AND a.u + 1 = b.v AND a.s < b.t      keys (a.x, b.y), (a.u + 1, b.v); rest a.s < b.t
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kpg.sql.functions.resolve import resolve
from kpg.sql.relational.scalars import Column, ColumnValue, SameValue, Scalar, ScalarCall, walk
from kpg.sql.sql_types import BOOLEAN


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A value of a left row and one of a right row that must be equal. With `null_safe`, null equals null."""

    left: Scalar
    right: Scalar
    null_safe: bool = False


def split_condition(
    terms: Iterable[Scalar], left: Sequence[Column], right: Sequence[Column]
) -> tuple[tuple[KeyPair, ...], tuple[Scalar, ...]]:
    """Return the pairs of equal keys among the terms of a join condition, and the other terms."""
    keys: list[KeyPair] = []
    rest: list[Scalar] = []
    for term in terms:
        pair = key_pair(term, frozenset(left), frozenset(right))
        if pair is None:
            rest.append(term)
        elif pair not in keys:
            keys.append(pair)
    return tuple(keys), tuple(rest)


def key_pair(term: Scalar, left: frozenset[Column], right: frozenset[Column]) -> KeyPair | None:
    """Return a term as a pair of keys, if it compares a value of the left with one of the right."""
    sides = equal_sides(term)
    if sides is None:
        return None
    first, second = (columns_of(side) for side in sides)
    null_safe = isinstance(term, SameValue)
    if first and second and first <= left and second <= right:
        return KeyPair(sides[0], sides[1], null_safe)
    if first and second and first <= right and second <= left:
        return KeyPair(sides[1], sides[0], null_safe)
    return None


def equal_sides(term: Scalar) -> tuple[Scalar, Scalar] | None:
    """Return both sides of an equation, None for another term."""
    if isinstance(term, SameValue):
        return term.left, term.right
    if isinstance(term, ScalarCall) and term.function.name == "=" and len(term.arguments) == 2:
        return term.arguments[0], term.arguments[1]
    return None


def columns_of(scalar: Scalar) -> frozenset[Column]:
    """Return the columns that a scalar without subqueries reads."""
    return frozenset(part.column for part in walk(scalar) if isinstance(part, ColumnValue))


def is_column_pair(first: Scalar, second: Scalar) -> bool:
    """Return whether two scalars are different columns of one type."""
    return (
        isinstance(first, ColumnValue)
        and isinstance(second, ColumnValue)
        and first.column is not second.column
        and first.type == second.type
    )


def equation(first: Column, second: Column) -> Scalar:
    """Return the condition that two columns are equal."""
    function = resolve("=", (first.type, second.type)).function
    sides = tuple(ColumnValue(column, type=column.type) for column in (first, second))
    return ScalarCall(function, sides, type=BOOLEAN)
