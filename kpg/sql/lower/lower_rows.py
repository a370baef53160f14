"""Lower the nodes that treat each row by itself: Scan, Values, Project, Filter."""

from __future__ import annotations

from collections import Counter
from operator import and_
from typing import Any, Final

from kpg.api.collection import Collection
from kpg.columns.bind import bind_condition
from kpg.columns.expression import Expression, FunctionCall, Literal
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.query.lower.unit_input import UNIT
from kpg.sql.lower.aligned_columns import concat_aligned, no_rows
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.lower.lower_scalars import balanced
from kpg.sql.lower.lowered_relation import LoweredRelation, unique_names
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import Filter, Project, Scan, Values
from kpg.sql.relational.scalars import (
    Column,
    ColumnValue,
    Constant,
    IsNull,
    Not,
    Scalar,
    ScalarCall,
    conjunction,
    conjuncts,
    walk,
)
from kpg.sql.rewrites.scalar_properties import can_fail
from kpg.sql.rewrites.unnested_relation import replace_scalars
from kpg.sql.sql_types import BOOLEAN

COMPUTED_ROWS: Final = 8  # more constant rows than this are encoded at once


def lower_scan(lowering: RelationLowering, scan: Scan) -> LoweredRelation:
    """Return the rows of a table or installed view, under their own names."""
    rows = lowering.sources[scan.source]
    if not lowering.settings.share_arrangements:
        rows = own_copy(rows, scan)
    return LoweredRelation(rows, dict(zip(scan.columns, scan.fields, strict=True)))


def own_copy(rows: Collection, scan: Scan) -> Collection:
    """Return the columns that a query reads of a table, in an arrangement of its own if the table has a key."""
    key: tuple[str, ...] = getattr(rows, "key", ())
    if isinstance(rows.node, nodes.StreamNode) or not (key or scan.fields):
        return rows
    columns = rows.select(*dict.fromkeys((*key, *scan.fields)))
    return Collection(rows.db, nodes.ArrangeNode(columns.schema, frozenset(), columns.node, key)) if key else columns


def lower_values(lowering: RelationLowering, values: Values) -> LoweredRelation:
    """Return constant rows; a few of them, and those with computed values, are computed from one row."""
    unit = unit_row(lowering)
    if not values.rows:
        return no_rows(unit, values.columns)
    if not values.columns:  # only their number matters
        return LoweredRelation(lowering.db.values([(0,)] * len(values.rows), Schema.of({UNIT: int})), {})
    if len(values.rows) > COMPUTED_ROWS and all(isinstance(value, Constant) for row in values.rows for value in row):
        return _constant_rows(lowering, values)
    return concat_aligned(values.columns, [_values_row(lowering, unit, values.columns, row) for row in values.rows])


def unit_row(lowering: RelationLowering) -> LoweredRelation:
    """Return the relation of one row without columns."""
    return LoweredRelation(lowering.db.values([(0,)], Schema.of({UNIT: int})), {})


def _values_row(
    lowering: RelationLowering, unit: LoweredRelation, columns: tuple[Column, ...], row: tuple[Scalar, ...]
) -> LoweredRelation:
    return unit.select({
        column: lowering.expression(value, unit) for column, value in zip(columns, row, strict=True)
    })  # fmt: skip


def _constant_rows(lowering: RelationLowering, values: Values) -> LoweredRelation:
    names = unique_names(values.columns)
    types = {
        names[column]: engine_type(column.type, nullable=any(value is None for value in _constants(values, at)))
        for at, column in enumerate(values.columns)
    }
    rows = zip(*[_constants(values, at) for at in range(len(values.columns))], strict=True)
    return LoweredRelation(lowering.db.values(list(rows), Schema.of(types)), names)


def _constants(values: Values, at: int) -> list[Any]:
    """Return the values of one column; those of char have no trailing blanks, as the engine holds them."""
    constants = [row[at].value for row in values.rows if isinstance(row[at], Constant)]  # type: ignore[attr-defined]
    if values.columns[at].type.name == "character":
        return [value if value is None else value.rstrip(" ") for value in constants]
    return constants


def lower_project(lowering: RelationLowering, project: Project) -> LoweredRelation:
    """Return the computed columns of each row. Columns that are only kept or renamed need no computation."""
    rows = lowering.lower(project.input)
    if project.columns and all(isinstance(value, ColumnValue) for value in project.values):
        kept = [value.column for value in project.values if isinstance(value, ColumnValue)]
        names = [rows.names[column] for column in kept]
        return LoweredRelation(rows.rows, dict(zip(project.columns, names, strict=True)))
    return rows.select({
        column: lowering.expression(value, rows)
        for column, value in zip(project.columns, project.values, strict=True)
    })  # fmt: skip


def lower_filter(lowering: RelationLowering, node: Filter) -> LoweredRelation:
    """Return the rows on which all terms of a condition are true. Terms that are always true are left out."""
    rows = lowering.lower(node.input)
    not_null = lowering.facts.not_null(node.input)
    terms = tuple(term for term in conjuncts(node.condition) if not is_present(term, not_null))
    if not terms:
        return rows
    repeated = repeated_calls(conjunction(terms))
    if not repeated:
        return rows.with_rows(rows.rows.filter(condition_of(lowering, terms, rows)))
    columns = {call: Column(f" {call.function.name}", call.type) for call in repeated}
    kept: dict[Column, Expression] = {column: rows.reference(column) for column in rows.names}
    computed = {column: lowering.expression(call, rows) for call, column in columns.items()}
    wide = rows.select({**kept, **computed})
    values: dict[Scalar, Scalar] = {call: ColumnValue(column, type=call.type) for call, column in columns.items()}
    terms = tuple(replace_scalars(term, values) for term in terms)
    return wide.with_rows(wide.rows.filter(condition_of(lowering, terms, wide))).keep(rows.names)


def is_present(term: Scalar, not_null: frozenset[Column]) -> bool:
    """Return whether a term is IS NOT NULL of a column that never is null."""
    match term:
        case Not(term=IsNull(argument=ColumnValue() as value)):
            return value.column in not_null
    return False


def repeated_calls(condition: Scalar) -> list[ScalarCall]:
    """Return the calls that occur several times in a condition and cannot fail; each is computed once.

    Comparisons are cheaper than a column of their results. Of calls within calls, the outermost count.
    """
    count = Counter(part for part in walk(condition) if isinstance(part, ScalarCall) and part.type != BOOLEAN)
    found = [call for call, number in count.items() if number > 1 and not can_fail(call)]
    return [call for call in found if not any(call in set(walk(other)) - {other} for other in found)]


def condition_of(lowering: RelationLowering, terms: tuple[Scalar, ...], rows: LoweredRelation) -> Expression:
    """Return the conjunction of terms; where one of them fails, the row fails only if all others are true.

    In the engine, a failure counts unless another side of & is false. So null is made false where a term can fail.
    """
    if not terms:
        return Literal(True)
    expressions = [lowering.expression(term, rows) for term in terms]
    bound = [bind_condition(expression, rows.rows.schema, lowering.db.symbols) for expression in expressions]
    if len(terms) > 1 and any(part.fallible for part in bound):
        expressions = [
            FunctionCall("coalesce", (expression, Literal(False))) if part.type.nullable else expression
            for expression, part in zip(expressions, bound, strict=True)
        ]
    return balanced(and_, expressions)
