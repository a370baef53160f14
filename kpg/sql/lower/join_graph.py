"""The graph of a tree of inner joins: its relations, classes of equal columns, and the other terms of the conditions.

Inner joins commute, so their order in the query has no meaning. Equations between columns form classes: any two members
of a class in different relations are a key for a join of these. A relation that other nodes read as well, and any node
that is no inner join, is a relation of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from kpg.sql.relational.relations import BoundJoin, BoundRelation, Project
from kpg.sql.relational.scalars import Column, ColumnValue, SameValue, Scalar, conjuncts
from kpg.sql.rewrites.join_conditions import columns_of, equal_sides, is_column_pair


@dataclass(frozen=True)
class JoinGraph:
    """Relations by number, classes of columns that are equal and not null in every result, and further terms."""

    relations: tuple[BoundRelation, ...]
    classes: tuple[tuple[Column, ...], ...]
    terms: tuple[Scalar, ...]

    @cached_property
    def _owners(self) -> dict[Column, int]:
        return {column: number for number, relation in enumerate(self.relations) for column in relation.columns}

    @cached_property
    def _class_owners(self) -> list[int]:
        return [self.owners(group) for group in self.classes]

    @cached_property
    def term_owners(self) -> list[int]:
        """The set of relations that each term reads, as bits."""
        return [self.owners(columns_of(term)) for term in self.terms]

    @cached_property
    def _class_numbers(self) -> dict[Column, int]:
        return {column: number for number, group in enumerate(self.classes) for column in group}

    @cached_property
    def _members(self) -> dict[int, list[tuple[Column, ...]]]:
        return {}

    def owner(self, column: Column) -> int:
        """Return the number of the relation that has a column."""
        return self._owners[column]

    def owners(self, columns: Iterable[Column]) -> int:
        """Return the set of relations that have some columns, as bits."""
        bits = 0
        for column in columns:
            bits |= 1 << self.owner(column)
        return bits

    def class_of(self, column: Column) -> int:
        """Return the number of the class that has a column."""
        return self._class_numbers[column]

    def members(self, relations: int) -> list[tuple[Column, ...]]:
        """Return for each class its members in a set of relations."""
        if relations not in self._members:
            owner = self._owners
            self._members[relations] = [
                tuple(column for column in group if relations >> owner[column] & 1) for group in self.classes
            ]
        return self._members[relations]

    def is_connected(self, first: int, second: int) -> bool:
        """Return whether a class or term connects two sets of relations."""
        if any(bits & first and bits & second for bits in self._class_owners):
            return True
        return any(bits & first and bits & second and not bits & ~(first | second) for bits in self.term_owners)


def graph_of(join: BoundJoin, is_shared: Callable[[BoundRelation], bool]) -> JoinGraph:
    """Return the graph of the inner joins below and including a join."""
    relations: list[BoundRelation] = []
    terms: list[Scalar] = []
    stack: list[BoundRelation] = [join]
    while stack:
        node = stack.pop()
        inner = without_renaming(node)
        if isinstance(inner, BoundJoin) and inner.kind == "inner" and not inner.dependent:
            if node is join or not (is_shared(node) or is_shared(inner)):
                terms += conjuncts(inner.condition)
                stack += [inner.right, inner.left]
                continue
        relations.append(node)
    classes, rest = equal_classes(terms)
    return JoinGraph(tuple(relations), classes, rest)


def without_renaming(node: BoundRelation) -> BoundRelation:
    """Return the relation below projections that only leave out columns."""
    while isinstance(node, Project) and all(
        isinstance(value, ColumnValue) and value.column is column
        for column, value in zip(node.columns, node.values, strict=True)
    ):
        node = node.input
    return node


def equal_classes(terms: Iterable[Scalar]) -> tuple[tuple[tuple[Column, ...], ...], tuple[Scalar, ...]]:
    """Return the classes of columns that terms equate, and the other terms."""
    classes: list[list[Column]] = []
    rest: list[Scalar] = []
    for term in dict.fromkeys(terms):
        sides = equal_sides(term)
        if sides is None or isinstance(term, SameValue) or not is_column_pair(*sides):
            rest.append(term)
            continue
        columns = [side.column for side in sides if isinstance(side, ColumnValue)]
        touched = [group for group in classes if any(column in group for column in columns)]
        merged = list(dict.fromkeys([*(column for group in touched for column in group), *columns]))
        classes = [group for group in classes if group not in touched] + [merged]
    return tuple(map(tuple, classes)), tuple(rest)
