"""Rows of several relations in the same columns: equal names, and types that hold the values of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kpg.api.collection import Collection
from kpg.api.join_forms import HAS_NULL_LIKE_VALUE
from kpg.columns.expression import Expression, Literal
from kpg.columns.schema import Schema, Type
from kpg.plan import nodes
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.lower.lowered_relation import LoweredRelation, unique_names
from kpg.sql.relational.scalars import Column


def concat_aligned(columns: Sequence[Column], parts: Sequence[LoweredRelation]) -> LoweredRelation:
    """Return the rows of all parts; each part has all of these columns."""
    if len(parts) == 1:
        return parts[0]
    first, *others = aligned(columns, parts)
    return first.with_rows(first.rows.concat(*[other.rows for other in others]))


def aligned(columns: Sequence[Column], parts: Sequence[LoweredRelation]) -> list[LoweredRelation]:
    """Return the parts with equal names and types of their columns."""
    types = {column: _wide_enough([type_of(part, column) for part in parts]) for column in columns}
    return [with_types(part, types) for part in parts]


def with_types(relation: LoweredRelation, types: Mapping[Column, Type]) -> LoweredRelation:
    """Return these columns as wider types of the same kinds."""
    if not types:
        return relation.select({})
    names = unique_names(types)
    schema = Schema(tuple(names.values()), tuple(types.values()))
    expressions = tuple(as_type(relation, column, type_) for column, type_ in types.items())
    node = relation.rows.node
    rows = Collection(relation.rows.db, nodes.SelectNode(schema, node.loops, node, expressions))
    return LoweredRelation(rows, names)


def as_wide(relation: LoweredRelation, columns: Sequence[Column], schema: Schema) -> Collection:
    """Return some columns under the names and wider types of a schema."""
    expressions = tuple(as_type(relation, column, type_) for column, type_ in zip(columns, schema.types, strict=True))
    node = relation.rows.node
    return Collection(relation.rows.db, nodes.SelectNode(schema, node.loops, node, expressions))


def type_of(relation: LoweredRelation, column: Column) -> Type:
    """Return the column type of a column."""
    return relation.rows.schema.type_of(relation.names[column])


def as_type(relation: LoweredRelation, column: Column, type_: Type) -> Expression:
    """Return the value of a column as a wider type; a type that only adds null has the same lanes."""
    reference, own = relation.reference(column), type_of(relation, column)
    adds_null = own.optional() == type_ and own.kind not in HAS_NULL_LIKE_VALUE
    return reference if own == type_ or adds_null else reference.cast(type_)


def null_of(column: Column) -> Expression:
    """Return null as a value of a column's type."""
    return Literal(None).cast(engine_type(column.type))


def no_rows(relation: LoweredRelation, columns: Sequence[Column]) -> LoweredRelation:
    """Return no rows with these columns."""
    nothing = relation.with_rows(relation.rows.filter(Literal(False)))
    return nothing.select({column: null_of(column) for column in columns})


def _wide_enough(types: list[Type]) -> Type:
    widest = max(types, key=lambda type_: type_.precision)
    return replace(widest, nullable=any(type_.nullable for type_ in types))


def padded(rows: LoweredRelation, other: LoweredRelation, columns: Iterable[Column]) -> LoweredRelation:
    """Return rows with null in the columns of another relation."""
    values: dict[Column, Expression] = {}
    for column in columns:
        if column in rows.names:
            values[column] = rows.reference(column)
        else:
            values[column] = Literal(None).cast(other.rows.schema.type_of(other.names[column]).optional())
    return rows.select(values)
