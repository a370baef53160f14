"""Lower TopRows: of each group of rows with equal keys, those at some positions of an order.

All other columns break ties, in value order with nulls last, so that the answer is a function of the rows.
"""

from __future__ import annotations

from kpg.columns.expression import ColumnReference, Expression, Literal
from kpg.columns.order_key import OrderKey
from kpg.columns.schema import INT64
from kpg.sql.lower.constant_values import constant_value
from kpg.sql.lower.lower_order import order_keys, ordered_value
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import TopRows


def lower_top_rows(lowering: RelationLowering, node: TopRows) -> LoweredRelation:
    """Return the rows at positions from the offset on, as many as the limit says."""
    relation = lowering.lower(node.input)
    limit, offset = constant_value(node.limit), constant_value(node.offset) or 0
    if limit is None and offset == 0:
        return relation
    if limit == 0:
        return relation.with_rows(relation.rows.filter(Literal(False)))
    kept = relation.keep(node.columns) if len(relation.rows.schema) != len(node.columns) else relation
    keys = tuple(kept.names[column] for column in node.keys)
    if node.ties and limit is not None:
        return _with_ties(lowering, kept, keys, node, limit, offset)
    limit = None if limit is None else min(limit, INT64.limits()[1] - offset)
    order = order_keys(lowering, node.order, kept)
    group = kept.rows.group_by(*keys)
    return kept.with_rows(group.first(limit, *order, copies=True, offset=offset, hierarchical=not keys))


def _with_ties(
    lowering: RelationLowering, relation: LoweredRelation, keys: tuple[str, ...], node: TopRows, limit: int, offset: int
) -> LoweredRelation:
    """Return the first rows and all rows with the same order as one of them, without those before the offset."""
    values: dict[str, Expression] = {name: ColumnReference(name) for name in relation.names.values()}
    order: list[OrderKey] = []
    columns = list(keys)
    for number, key in enumerate(node.order):
        name = f" order {number}"
        values[name] = ordered_value(lowering.expression(key.value, relation), key.value.type)
        order.append(OrderKey(ColumnReference(name), key.descending, not key.nulls_first))
        columns.append(name)
    rows = relation.rows.select(**values)
    group = rows.group_by(*keys)
    first = group.first(limit + offset, *order, copies=True, hierarchical=not keys)
    kept = rows.semijoin(first, on=columns)
    if offset:
        kept = kept.subtract(group.first(offset, *order, copies=True, hierarchical=not keys))
    return relation.with_rows(kept)
