"""Types of result columns: string constants without a type become text, or the type that a query around them wants.

Only the list of a plain SELECT has constants without a type: DISTINCT, ORDER BY and LIMIT give them one.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpg.sql.bind.bind_context import BoundSelect, value_of
from kpg.sql.bind.coercions import coerce, is_unknown
from kpg.sql.functions.cast_rules import CastContext
from kpg.sql.relational.relations import BoundRelation, Project
from kpg.sql.relational.scalars import Column, Scalar
from kpg.sql.sql_types import TEXT, UNKNOWN, SqlType


def typed(query: BoundSelect) -> BoundSelect:
    """Return a query all of whose columns have types."""
    if all(column.type != UNKNOWN for column in query.columns):
        return query
    return with_types(query, [TEXT if column.type == UNKNOWN else column.type for column in query.columns])


def with_types(query: BoundSelect, targets: Sequence[SqlType], context: CastContext = "implicit") -> BoundSelect:
    """Return a query whose columns have given types, without its order if any column changes."""
    if [column.type for column in query.columns] == list(targets):
        return query
    relation = query.rows()
    if isinstance(relation, Project) and any(map(is_unknown, relation.values)):
        relation = typed_constants(relation, targets, context)
    values = tuple(coerce(value_of(c), target, context) for c, target in zip(relation.columns, targets, strict=True))
    if all(value.type == column.type for value, column in zip(values, relation.columns, strict=True)):
        return BoundSelect(relation, query.names)
    return BoundSelect(projected(relation, values), query.names)


def typed_constants(relation: Project, targets: Sequence[SqlType], context: CastContext) -> Project:
    """Return a projection whose constants without a type have the given ones."""
    columns: list[Column] = []
    values: list[Scalar] = []
    for column, value, target in zip(relation.columns, relation.values, targets, strict=True):
        changed = coerce(value, target, context) if is_unknown(value) else value
        columns.append(column if changed is value else Column(column.name, changed.type))
        values.append(changed)
    return Project(tuple(columns), relation.input, tuple(values))


def projected(relation: BoundRelation, values: tuple[Scalar, ...]) -> Project:
    """Return new columns with values over a relation, named as its own."""
    columns = tuple(Column(c.name, value.type) for c, value in zip(relation.columns, values, strict=True))
    return Project(columns, relation, values)
