"""References of scalars and relations: which columns they mention, and how to replace what they mention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar

from kpg.columns.pause_points import pause
from kpg.sql.relational.relations import BoundRelation, Definition, Scan
from kpg.sql.relational.scalars import (
    AggregateCall,
    Column,
    ColumnValue,
    Scalar,
    SortKey,
)

Part = TypeVar("Part")


def referenced_columns(part: Scalar | BoundRelation) -> set[Column]:
    """Return all columns that a scalar or relation mentions, inside subqueries too. A relation's own are included."""
    return {scalar.column for scalar in all_scalars(part) if isinstance(scalar, ColumnValue)}


def all_scalars(part: Any) -> Iterator[Scalar]:
    """Yield every scalar within a scalar or relation, inside subqueries too; a shared node is visited once."""
    return (inner for inner in all_parts(part) if isinstance(inner, Scalar))


def all_parts(part: Any) -> Iterator[Scalar | BoundRelation]:
    """Yield every scalar and relation within a scalar or relation, itself included, inside subqueries too."""
    seen: set[int] = set()
    stack = [part]
    while stack:
        pause()
        current = stack.pop()
        if isinstance(current, BoundRelation):
            if id(current) in seen:
                continue
            seen.add(id(current))
        if isinstance(current, (BoundRelation, Scalar)):
            yield current
        if isinstance(current, (BoundRelation, Scalar, SortKey, AggregateCall, Definition)):
            stack.extend(getattr(current, entry.name) for entry in fields(current))
        elif isinstance(current, tuple):
            stack.extend(current)


def count_scans(root: BoundRelation) -> int:
    """Return the scans of a relation and its subqueries; a relation that is used twice counts twice.

    Common tables are shared, so the number may be exponential in the size of the text. The cost is linear in that.
    """
    counts: dict[int, int] = {}
    stack = [(root, False)]
    while stack:
        relation, done = stack.pop()
        if done:
            inner = sum(counts[id(read)] for read in relations_within(relation))
            counts[id(relation)] = inner + isinstance(relation, Scan)
        elif id(relation) not in counts:
            counts[id(relation)] = 0  # a relation is no part of itself
            stack.append((relation, True))
            stack += [(read, False) for read in relations_within(relation) if id(read) not in counts]
    return counts[id(root)]


def relations_within(relation: BoundRelation) -> list[BoundRelation]:
    """Return the relations that a relation reads directly, also in subqueries of its scalars."""
    found: list[BoundRelation] = []
    stack: list[Any] = [getattr(relation, entry.name) for entry in fields(relation)]
    while stack:
        pause()
        current = stack.pop()
        if isinstance(current, BoundRelation):
            found.append(current)
        elif isinstance(current, (Scalar, SortKey, AggregateCall, Definition)):
            stack.extend(getattr(current, entry.name) for entry in fields(current))
        elif isinstance(current, tuple):
            stack.extend(current)
    return found


class ScalarReplacement:
    """Replaces scalars everywhere within scalars and relations. Columns and shared nodes keep their identity.

    `function` returns a replacement, or None to look inside. Whether a scalar is inside a subquery is `depth` > 0.
    """

    def __init__(self, function: Callable[[Scalar, int], Scalar | None]) -> None:
        self.function = function
        self.relations: dict[int, tuple[BoundRelation, BoundRelation]] = {}

    def scalar(self, scalar: Scalar, depth: int = 0) -> Scalar:
        """Return a scalar with replacements."""
        replacement = self.function(scalar, depth)
        return self.parts(scalar, depth) if replacement is None else replacement

    def relation(self, relation: BoundRelation, depth: int) -> BoundRelation:
        """Return a relation with replacements; the same one if there are none."""
        if id(relation) not in self.relations:
            self.relations[id(relation)] = (relation, self.parts(relation, depth))
        return self.relations[id(relation)][1]

    def parts(self, whole: Part, depth: int) -> Part:
        """Return a dataclass with replacements in its fields."""
        changed = {}
        for entry in fields(whole):  # type: ignore[arg-type]
            old = getattr(whole, entry.name)
            new = self.part(old, depth)
            if new is not old:
                changed[entry.name] = new
        return replace(whole, **changed) if changed else whole  # type: ignore[type-var]

    def part(self, value: Any, depth: int) -> Any:
        """Return the value of a field with replacements."""
        if isinstance(value, Scalar):
            return self.scalar(value, depth)
        if isinstance(value, BoundRelation):
            return self.relation(value, depth + 1)
        if isinstance(value, (SortKey, AggregateCall, Definition)):
            return self.parts(value, depth)
        if isinstance(value, tuple):
            new = tuple(self.part(member, depth) for member in value)
            return value if all(a is b for a, b in zip(new, value, strict=True)) else new
        return value


def mentions(part: Scalar | BoundRelation, columns: Iterable[Column]) -> bool:
    """Return whether a scalar or relation mentions one of some columns."""
    return not referenced_columns(part).isdisjoint(columns)
