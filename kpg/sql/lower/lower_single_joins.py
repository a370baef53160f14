"""Lower single joins: as left joins, but a left row with several pairs is an error (SQLSTATE 21000).

The right rows that may match are reduced to one for each value of the columns that the condition reads, with their
number beside. The error is raised on the left row that finds more than one, so values that no left row asks for do not
fail. If the condition is equal keys only, groups of the right rows by key are enough. Otherwise the distinct values of
the left columns that the condition reads are first joined with the right rows.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.api.join_forms import is_unique
from kpg.columns.expression import Expression, Literal
from kpg.sql.lower.aligned_columns import concat_aligned, padded
from kpg.sql.lower.failing_expressions import SEVERAL_ROWS, failing_if
from kpg.sql.lower.join_sides import JoinSide, without_null_keys
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.lower.planned_join import PlannedJoin, joined
from kpg.sql.relational.scalars import Column
from kpg.sql.sql_types import BIGINT

ROWS = " rows"  # the column with the number of rows of a group


def lower_single_join(planned: PlannedJoin) -> LoweredRelation:
    """Return the left rows, each with the one right row that matches it, or null."""
    left, right = without_null_keys(planned.sides, planned.keys, only=1)
    if planned.rest:
        left, right = _by_witness(planned)
    elif planned.is_identified(1) or is_unique(right.relation.rows.node, right.keys):
        return _left_join(left, right)
    number = Column(ROWS, BIGINT)
    reduced = JoinSide(_one_row_each(right, number), right.keys)
    pairs = _left_join(left, reduced)
    several = pairs.reference(number) > Literal(1)
    values: dict[Column, Expression] = {}
    for column in (*planned.left.names, *planned.right.names):
        value = pairs.reference(column)
        values[column] = failing_if(several, SEVERAL_ROWS, value) if column in planned.right.names else value
    return pairs.select(values)


def _left_join(left: JoinSide, right: JoinSide) -> LoweredRelation:
    """Return the pairs with equal keys, where null equals null, and the left rows without a pair."""
    pairs = joined(left, right)
    rows = left.relation.rows
    matched = rows.join(right.relation.rows, on=dict(zip(left.keys, right.keys, strict=True)) or (), how="semi")
    alone = left.relation.with_rows(rows.subtract(matched))
    return concat_aligned(tuple(pairs.names), [pairs, padded(alone, right.relation, pairs.names)])


def _one_row_each(side: JoinSide, number: Column) -> LoweredRelation:
    """Return the least row of each group of rows with equal keys, and the number of rows of the group."""
    rows = side.relation.rows
    first = rows.group_by(*side.keys).first(1)
    counted = rows.count(*side.keys, name=ROWS)
    both: Collection = first.join(counted, on=side.keys)
    return LoweredRelation(both, {**side.relation.names, number: ROWS})


def _by_witness(planned: PlannedJoin) -> tuple[JoinSide, JoinSide]:
    """Return the left side and its matching right rows, both keyed by the left columns that the condition reads."""
    own = planned.sides[0].relation
    columns = planned.columns_read(0)
    kept = own.keep(columns)
    witnesses = kept.with_rows(kept.rows.distinct())
    pairs = PlannedJoin(planned.lowering, witnesses, planned.right, planned.keys, planned.rest).pairs
    copies = {column: Column(f"{column.name} of pair", column.type) for column in columns}
    values: dict[Column, Expression] = {copies[column]: pairs.reference(column) for column in columns}
    right = pairs.select({**values, **{column: pairs.reference(column) for column in planned.right.names}})
    names = tuple(right.names[copies[column]] for column in columns)
    only = LoweredRelation(right.rows, {column: right.names[column] for column in planned.right.names})
    return JoinSide(own, tuple(own.names[column] for column in columns)), JoinSide(only, names)
