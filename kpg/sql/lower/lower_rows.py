"""Lower the nodes that treat each row by itself: Scan, Values, Project, Filter."""

from __future__ import annotations

from functools import reduce
from operator import and_

from kpg.columns.bind import bind_condition
from kpg.columns.expression import Expression, FunctionCall, Literal
from kpg.query.lower.unit_input import unit_input
from kpg.sql.lower.aligned_columns import concat_aligned, no_rows
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import Filter, Project, Scan, Values
from kpg.sql.relational.scalars import Column, Scalar, conjuncts


def lower_scan(lowering: RelationLowering, scan: Scan) -> LoweredRelation:
    """Return the rows of a table or installed view, under their own names."""
    return LoweredRelation(lowering.sources[scan.source], dict(zip(scan.columns, scan.fields, strict=True)))


def lower_values(lowering: RelationLowering, values: Values) -> LoweredRelation:
    """Return constant rows: each is computed from the one row of the unit input."""
    unit = LoweredRelation(unit_input(lowering.db), {})
    if not values.rows:
        return no_rows(unit, values.columns)
    return concat_aligned(values.columns, [_values_row(lowering, unit, values.columns, row) for row in values.rows])


def _values_row(
    lowering: RelationLowering, unit: LoweredRelation, columns: tuple[Column, ...], row: tuple[Scalar, ...]
) -> LoweredRelation:
    return unit.select({
        column: lowering.expression(value, unit) for column, value in zip(columns, row, strict=True)
    })  # fmt: skip


def lower_project(lowering: RelationLowering, project: Project) -> LoweredRelation:
    """Return the computed columns of each row."""
    rows = lowering.lower(project.input)
    return rows.select({
        column: lowering.expression(value, rows)
        for column, value in zip(project.columns, project.values, strict=True)
    })  # fmt: skip


def lower_filter(lowering: RelationLowering, node: Filter) -> LoweredRelation:
    """Return the rows on which all terms of a condition are true."""
    rows = lowering.lower(node.input)
    return rows.with_rows(rows.rows.filter(condition_of(lowering, conjuncts(node.condition), rows)))


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
    return reduce(and_, expressions)
