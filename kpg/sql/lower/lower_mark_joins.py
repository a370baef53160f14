"""Lower mark joins: each left row with whether the condition is true for some right row, as AnyRow says.

    mark = true    if some pair satisfies the condition
           null    otherwise, if the condition is null on some pair
           false   otherwise

A term `term IS TRUE` (what a filter inside the subquery became) is never null, so it restricts the pairs. The other
terms are the compared condition. Where that is one equation x = y, it is null only if x or y is, so the pairs on which
it is null are found from the rows with null alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpg.columns.expression import Expression, Literal
from kpg.columns.schema import BOOL
from kpg.sql.lower.aligned_columns import concat_aligned
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.lower.planned_join import PlannedJoin
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import BoundJoin
from kpg.sql.relational.scalars import Column, IsNull, Scalar, conjunction, conjuncts
from kpg.sql.rewrites.join_conditions import KeyPair, split_condition
from kpg.sql.rewrites.truth_terms import asserted, is_asserted
from kpg.sql.sql_types import BOOLEAN


def lower_mark_join(lowering: RelationLowering, join: BoundJoin) -> LoweredRelation:
    """Return the left rows with their mark."""
    assert join.mark is not None
    terms = conjuncts(join.condition)
    strict = tuple(asserted(term) for term in terms if is_asserted(term))
    compared = tuple(term for term in terms if not is_asserted(term))
    left, right = lowering.lower(join.left), lowering.lower(join.right)
    true = _planned(lowering, join, left, right, (*strict, *compared))
    parts = [_marked(true.rows_with_pair(0), join, Literal(True))]
    others = true.rows_without_pair(0)
    for null, false in _null_and_false(lowering, join, others, right, strict, compared):
        parts += [_marked(null, join, Literal(None).cast(BOOL.optional()))] if null is not None else []
        parts.append(_marked(false, join, Literal(False)))
    return concat_aligned((*join.left.columns, join.mark), parts)


Parts = Iterator[tuple[LoweredRelation | None, LoweredRelation]]


def _null_and_false(
    lowering: RelationLowering,
    join: BoundJoin,
    left: LoweredRelation,
    right: LoweredRelation,
    strict: tuple[Scalar, ...],
    compared: tuple[Scalar, ...],
) -> Parts:
    """Split left rows without a true pair into those with a null pair and those without, in one or two steps."""
    keys, rest = split_condition(compared, join.left.columns, join.right.columns)
    if len(keys) == 1 and not rest and not keys[0].null_safe:
        yield from _by_equation(lowering, join, left, right, strict, keys[0])
    elif all(key.null_safe for key in keys) and not rest:
        yield None, left
    else:
        null = IsNull(conjunction(compared), type=BOOLEAN)
        planned = _planned(lowering, join, left, right, (*strict, null))
        yield planned.rows_with_pair(0), planned.rows_without_pair(0)


def _by_equation(
    lowering: RelationLowering,
    join: BoundJoin,
    left: LoweredRelation,
    right: LoweredRelation,
    strict: tuple[Scalar, ...],
    key: KeyPair,
) -> Parts:
    """Split by x = y: a left row with null x has a null pair if it has any pair, others if y of a pair is null."""
    x, y = lowering.expression(key.left, left), lowering.expression(key.right, right)
    if lowering.type_of(x, left.rows).nullable:
        without_x = left.with_rows(left.rows.filter(x.is_null()))
        planned = _planned(lowering, join, without_x, right, strict)
        yield planned.rows_with_pair(0), planned.rows_without_pair(0)
        left = left.with_rows(left.rows.filter(~x.is_null()))
    if lowering.type_of(y, right.rows).nullable:
        without_y = right.with_rows(right.rows.filter(y.is_null()))
        planned = _planned(lowering, join, left, without_y, strict)
        yield planned.rows_with_pair(0), planned.rows_without_pair(0)
    else:
        yield None, left


def _planned(
    lowering: RelationLowering,
    join: BoundJoin,
    left: LoweredRelation,
    right: LoweredRelation,
    terms: tuple[Scalar, ...],
) -> PlannedJoin:
    keys, rest = split_condition(terms, join.left.columns, join.right.columns)
    return PlannedJoin(lowering, left, right, keys, rest, (join.left, join.right))


def _marked(rows: LoweredRelation, join: BoundJoin, mark: Expression) -> LoweredRelation:
    """Return left rows with a mark."""
    assert join.mark is not None
    values: dict[Column, Expression] = {column: rows.reference(column) for column in join.left.columns}
    return rows.select({**values, join.mark: mark})
