"""Lower TopRows: of each group of rows with equal keys, those at some positions of an order.

The engine's `first` keeps the first rows by some columns, where null is the least value. SQL has nulls last, or first
if descending; so a nullable column is ordered after a column that says whether it is null. All other columns break
ties, in value order with nulls last, so that the answer is a function of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.api.collection import Collection
from kpg.columns.expression import ColumnReference, Expression, Literal
from kpg.columns.schema import INT64
from kpg.sql.lower.constant_values import constant_value
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import TopRows


@dataclass(frozen=True, slots=True)
class Ordered:
    """Rows with the columns that decide their order; a leading "-" means descending."""

    rows: Collection
    keys: tuple[str, ...]
    order: tuple[str, ...]  # of the ORDER BY
    ties: tuple[str, ...]  # of all other columns

    def first(self, limit: int) -> Collection:
        """Return the first rows of each group."""
        return self.rows.group_by(*self.keys).first(limit, *self.order, *self.ties, copies=True)


def lower_top_rows(lowering: RelationLowering, node: TopRows) -> LoweredRelation:
    """Return the rows at positions from the offset on, as many as the limit says."""
    relation = lowering.lower(node.input)
    limit, offset = constant_value(node.limit), constant_value(node.offset) or 0
    if limit is None and offset == 0:
        return relation
    if limit == 0:
        return relation.with_rows(relation.rows.filter(Literal(False)))
    ordered = _ordered(lowering, relation, node)
    rows = ordered.rows if limit is None else ordered.first(min(limit + offset, INT64.limits()[1]))
    if node.ties and limit is not None:
        columns = tuple(dict.fromkeys((*ordered.keys, *[name.removeprefix("-") for name in ordered.order])))
        rows = ordered.rows.semijoin(rows, on=columns)
    if offset:
        rows = rows.subtract(ordered.first(offset))
    return LoweredRelation(rows, relation.names)


def _ordered(lowering: RelationLowering, relation: LoweredRelation, node: TopRows) -> Ordered:
    """Return the rows with the columns of their order."""
    values: dict[str, Expression] = {name: ColumnReference(name) for name in relation.names.values()}
    order: list[str] = []

    def add(value: Expression, descending: bool, nulls_first: bool) -> None:
        name = value.name if isinstance(value, ColumnReference) else f" order {len(order)}"
        values[name] = value
        if lowering.type_of(value, relation.rows).nullable:
            is_null = f" null {len(order)}"
            values[is_null] = value.is_null()
            order.append(f"-{is_null}" if nulls_first else is_null)
        order.append(f"-{name}" if descending else name)

    for key in node.order:
        add(lowering.expression(key.value, relation), key.descending, key.nulls_first)
    own = len(order)
    used = {name.removeprefix("-") for name in order}
    keys = tuple(relation.names[column] for column in node.keys)
    for name in relation.names.values():
        if name not in used and name not in keys:
            add(ColumnReference(name), False, False)
    rows = relation.rows.select(**values) if values else relation.rows
    return Ordered(rows, keys, tuple(order[:own]), tuple(order[own:]))
