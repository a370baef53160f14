"""Build nodes of the algebra with the columns that follow from their inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kpg.sql.relational.relations import BoundJoin, BoundRelation, Filter, JoinKind, Project, Values
from kpg.sql.relational.scalars import TRUE, Column, ColumnValue, SameValue, Scalar, conjunction, conjuncts
from kpg.sql.sql_types import BOOLEAN

LEFT_ONLY: Final = ("semi", "anti")  # the kinds of joins with the columns of the left side alone


def join(
    kind: JoinKind,
    left: BoundRelation,
    right: BoundRelation,
    terms: Iterable[Scalar] = (),
    *,
    mark: Column | None = None,
    dependent: bool = False,
) -> BoundJoin:
    """Return a join of two relations on the conjunction of some terms."""
    columns = left.columns if kind in (*LEFT_ONLY, "mark") else left.columns + right.columns
    columns += () if mark is None else (mark,)
    return BoundJoin(columns, kind, left, right, conjunction(flattened(terms)), mark, dependent)


def where(relation: BoundRelation, terms: Iterable[Scalar]) -> BoundRelation:
    """Return the rows on which all terms are true."""
    condition = conjunction(flattened(terms))
    return relation if condition == TRUE else Filter(relation.columns, relation, condition)


def flattened(terms: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """Return the conjuncts of some terms, each once."""
    parts = [part for term in terms for part in conjuncts(term)]
    return tuple(dict.fromkeys(parts)) if len(parts) > 1 else tuple(parts)  # the hash of a long list takes long


def keep(relation: BoundRelation, columns: Iterable[Column]) -> BoundRelation:
    """Return a relation with some of its columns."""
    chosen = tuple(columns)
    if chosen == relation.columns:
        return relation
    return Project(chosen, relation, tuple(map(value_of, chosen)))


def extend(relation: BoundRelation, computed: Mapping[Column, Scalar]) -> BoundRelation:
    """Return a relation with further columns."""
    if not computed:
        return relation
    columns = relation.columns + tuple(computed)
    return Project(columns, relation, (*map(value_of, relation.columns), *computed.values()))


def project(relation: BoundRelation, values: Mapping[Column, Scalar]) -> BoundRelation:
    """Return a relation with exactly these columns."""
    return Project(tuple(values), relation, tuple(values.values()))


def one_row() -> Values:
    """Return the relation of one row without columns."""
    return Values((), ((),))


def value_of(column: Column) -> ColumnValue:
    """Return the value of a column."""
    return ColumnValue(column, type=column.type)


def same(left: Scalar, right: Scalar) -> Scalar:
    """Return whether two values are equal, where null equals null."""
    return SameValue(left, right, type=BOOLEAN)


def copy_of(column: Column) -> Column:
    """Return a new column with the same name and type."""
    return Column(column.name, column.type)
