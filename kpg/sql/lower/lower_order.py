"""Lower the keys of an order. Intervals are ordered by their span, as they compare in SQL."""

from __future__ import annotations

from collections.abc import Iterable

from kpg.columns.expression import Expression
from kpg.columns.intervals import interval_span
from kpg.columns.order_key import OrderKey
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.scalars import SortKey
from kpg.sql.sql_types import SqlType


def order_keys(lowering: RelationLowering, order: Iterable[SortKey], relation: LoweredRelation) -> tuple[OrderKey, ...]:
    """Return the keys of an order over the columns of a relation."""
    return tuple(
        OrderKey(
            ordered_value(lowering.expression(key.value, relation), key.value.type), key.descending, not key.nulls_first
        )
        for key in order
    )


def ordered_value(value: Expression, type_: SqlType) -> Expression:
    """Return what a value is ordered by."""
    return interval_span(value) if type_.name == "interval" else value
