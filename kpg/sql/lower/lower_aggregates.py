"""Lower groups: keys and aggregates.

Nulls are skipped, and values on which FILTER is not true count as null. Without keys there is one group even if there
is no row: a row of nulls is added, which no aggregate counts.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.expression import ColumnReference, Expression, FunctionCall, Literal
from kpg.query.lower.unit_input import unit_input
from kpg.sql.lower.aligned_columns import concat_aligned
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.lower.lowered_relation import LoweredRelation, unique_names
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import Aggregate
from kpg.sql.relational.scalars import AggregateCall, Column


def lower_aggregate(lowering: RelationLowering, node: Aggregate) -> LoweredRelation:
    """Return one row for each group."""
    assert node.sets is None and not node.grouping, "the rewrites expand grouping sets"
    relation = lowering.lower(node.input)
    values = [Column(f" value {number}", call.type) for number, call in enumerate(node.aggregates)]
    computed: dict[Column, Expression] = {key: relation.reference(key) for key in node.keys}
    for value, call in zip(values, node.aggregates, strict=True):
        computed[value] = _argument(lowering, call, relation)
    rows = relation.select(computed)
    if not node.keys:
        rows = _with_empty_group(lowering, node, rows, values)
    if not node.aggregates:
        return rows.with_rows(rows.rows.distinct())
    names = unique_names(node.columns)
    keys = tuple(rows.names[key] for key in node.keys)
    result: Collection = rows.rows.count(*keys, name=" rows")
    for value, call in zip(values, node.aggregates, strict=True):
        part = _aggregated(rows.rows, keys, rows.names[value], call)
        result = result.join(part, on=keys or (), how="left", nulls_equal=True)
    finished: dict[str, Expression] = {
        names[column]: ColumnReference(key) for column, key in zip(node.columns, keys, strict=False)
    }
    for value, column in zip(values, node.columns[len(keys) :], strict=True):
        finished[names[column]] = ColumnReference(rows.names[value])
    return LoweredRelation(result.select(**finished), names)


def _argument(lowering: RelationLowering, call: AggregateCall, relation: LoweredRelation) -> Expression:
    """Return the value of a row that an aggregate reads: null if the row does not count."""
    argument = lowering.expression(call.arguments[0], relation) if call.arguments else Literal(1)
    if call.filter is None:
        return argument
    kept = lowering.expression(call.filter, relation)
    type_ = lowering.type_of(argument, relation.rows).optional()
    return FunctionCall("when", (kept, argument, Literal(None).cast(type_)))


def _with_empty_group(
    lowering: RelationLowering, node: Aggregate, rows: LoweredRelation, values: list[Column]
) -> LoweredRelation:
    """Return the rows, and a row of nulls, so that there is a group."""
    unit = LoweredRelation(unit_input(lowering.db), {})
    nulls = unit.select({
        value: Literal(None).cast(rows.rows.schema.type_of(rows.names[value]).optional()) for value in values
    })  # fmt: skip
    return concat_aligned(values, [rows, nulls])


def _aggregated(rows: Collection, keys: tuple[str, ...], value: str, call: AggregateCall) -> Collection:
    """Return the keys of each group with one aggregate, under the name of its values."""
    rows = rows.select(*keys, value)
    if call.distinct:
        rows = rows.distinct()
    group = rows.group_by(*keys)
    match call.function.lowering:
        case "count":
            one = FunctionCall("when", (ColumnReference(value).is_null(), Literal(0), Literal(1)))
            return rows.with_columns(**{value: one}).group_by(*keys).sum(value)
        case "sum":
            summed = group.sum(value)
            return summed.with_columns(**{value: ColumnReference(value).cast(engine_type(call.type))})
        case "avg":
            mean = group.avg(value)
            return mean.with_columns(**{value: ColumnReference(value).cast(engine_type(call.type))})
        case "min":
            return group.min(value, hierarchical=not keys)
        case "max":
            return group.max(value, hierarchical=not keys)
    raise AssertionError(f"no aggregate is computed as {call.function.lowering!r}")
