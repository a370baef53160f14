"""Lower Distinct and set operations. Null equals null here, as in the engine.

union all       the sum of the counts                 union       each row of it once
intersect all   the lesser of the two counts          intersect   each row that both have, once
except all      the count left minus the right one,   except      each row of the left that the right has not, once
                not below zero: A − (A intersect all B)
"""

from __future__ import annotations

from kpg.sql.lower.aligned_columns import aligned, concat_aligned
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import BoundRelation, Distinct, SetOperation


def lower_distinct(lowering: RelationLowering, node: Distinct) -> LoweredRelation:
    """Return each row once."""
    rows = lowering.lower(node.input)
    if len(rows.rows.schema) != len(node.columns) or set(rows.names) != set(node.columns):
        rows = rows.keep(node.columns)
    return rows.with_rows(rows.rows.distinct())


def lower_set_operation(lowering: RelationLowering, node: SetOperation) -> LoweredRelation:
    """Return the union, intersection or difference of two relations."""
    left, right = aligned(node.columns, [_renamed(lowering, node, node.left), _renamed(lowering, node, node.right)])
    if node.kind == "union":
        rows = concat_aligned(node.columns, [left, right])
        return rows if node.all else rows.with_rows(rows.rows.distinct())
    names = left.rows.schema.names
    if not node.all:
        distinct = left.rows.distinct()
        kept = distinct.semijoin(right.rows, on=names)
        return left.with_rows(kept if node.kind == "intersect" else distinct.subtract(kept))
    both = left.rows.intersect_all(right.rows) if node.kind == "intersect" else left.rows.except_all(right.rows)
    return left.with_rows(both)


def _renamed(lowering: RelationLowering, node: SetOperation, side: BoundRelation) -> LoweredRelation:
    """Return one side under the columns of the operation."""
    rows = lowering.lower(side)
    return rows.select({
        column: rows.reference(own) for column, own in zip(node.columns, side.columns, strict=True)
    })  # fmt: skip
