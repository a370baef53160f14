"""Lower joins of two relations: equal keys are found in the condition, the rest of it filters the pairs.

inner   pairs                        left    pairs + left rows without a pair, with null on the right
semi    left rows with a pair        full    left + right rows without a pair, with null on the left
anti    left rows without a pair
"""

from __future__ import annotations

from kpg.sql.lower.aligned_columns import concat_aligned, padded
from kpg.sql.lower.lower_function_scans import lower_lateral_function
from kpg.sql.lower.lower_inner_joins import lower_inner_join
from kpg.sql.lower.lower_mark_joins import lower_mark_join
from kpg.sql.lower.lower_single_joins import lower_single_join
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.lower.planned_join import PlannedJoin
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import BoundJoin
from kpg.sql.relational.scalars import conjuncts
from kpg.sql.rewrites.join_conditions import split_condition


def lower_join(lowering: RelationLowering, join: BoundJoin) -> LoweredRelation:
    """Return the rows of a join."""
    if join.dependent:
        return lower_lateral_function(lowering, join)
    if join.kind == "mark":
        return lower_mark_join(lowering, join)
    if join.kind == "inner":
        return lower_inner_join(lowering, join)
    planned = planned_join(lowering, join)
    match join.kind:
        case "semi":
            return planned.rows_with_pair(0)
        case "anti":
            return planned.rows_without_pair(0)
        case "single":
            return lower_single_join(planned)
    return outer_join(planned, full=join.kind == "full")


def planned_join(lowering: RelationLowering, join: BoundJoin) -> PlannedJoin:
    """Return a join with its condition split into keys and the rest."""
    keys, rest = split_condition(conjuncts(join.condition), join.left.columns, join.right.columns)
    sides = (join.left, join.right)
    return PlannedJoin(lowering, lowering.lower(join.left), lowering.lower(join.right), keys, rest, sides)


def outer_join(planned: PlannedJoin, full: bool) -> LoweredRelation:
    """Return the pairs, and the left or all rows without a pair, with null in the columns of the other side."""
    pairs = planned.pairs
    parts = [pairs, padded(planned.rows_without_pair(0), planned.right, pairs.names)]
    if full:
        parts.append(padded(planned.rows_without_pair(1), planned.left, pairs.names))
    return concat_aligned(tuple(pairs.names), parts)
