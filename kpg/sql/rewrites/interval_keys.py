"""Compare, group and order intervals by their span, in which '1 month' equals '30 days'.

    a = b, a < b, …           become comparisons of spans, so that joins can use them as keys
    GROUP BY i                groups by the span; the group shows its least member: fewest months, then fewest days
    DISTINCT, UNION, …        likewise
    ORDER BY i LIMIT, min(i)  order by the span, then as above
    sum(i), avg(i)            sum months, days and microseconds

Runs before grouping sets are expanded and dependent joins are unnested: keys that unnesting introduces stay exact.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.sql.functions.function import Function
from kpg.sql.functions.interval_order import (
    INTERVAL_COUNTS,
    INTERVAL_NUMBER,
    INTERVAL_NUMBERED,
    INTERVAL_OF_SUMS,
    INTERVAL_SPAN,
)
from kpg.sql.functions.resolve import resolve, resolve_aggregate
from kpg.sql.functions.sql_comparison import COMPARISONS
from kpg.sql.relational.relations import Aggregate, BoundRelation, Distinct, Query, SetOperation, TopRows
from kpg.sql.relational.scalars import (
    AggregateCall,
    Case,
    Cast,
    Column,
    Constant,
    IsNull,
    SameValue,
    Scalar,
    ScalarCall,
    SortKey,
    map_parts,
)
from kpg.sql.rewrites.node_builders import copy_of, extend, join, keep, project, same, value_of
from kpg.sql.rewrites.relation_traversal import map_order, map_relations, map_scalars
from kpg.sql.sql_types import BIGINT, BOOLEAN, DOUBLE, INTERVAL


def interval_keys(query: Query) -> Query:
    """Return a query that compares no intervals."""
    return replace(query, relation=map_relations(query.relation, _by_span))


def _by_span(node: BoundRelation) -> BoundRelation:
    node = map_scalars(node, _scalar)
    match node:
        case Aggregate():
            return _aggregate(node)
        case Distinct() if _has_intervals(node.columns):
            return _distinct(node.input)
        case SetOperation() if _has_intervals(node.columns) and not node.all:
            return _set_operation(node)
        case TopRows() if any(key.value.type == INTERVAL for key in node.order) or _has_intervals(node.keys):
            return _top_rows(node)
    return node


def _has_intervals(columns: tuple[Column, ...]) -> bool:
    return any(column.type == INTERVAL for column in columns)


def _call(function: Function, *arguments: Scalar) -> Scalar:
    return ScalarCall(function, arguments, type=function.result_type([a.type for a in arguments]))


def _span(value: Scalar) -> Scalar:
    return _call(INTERVAL_SPAN, value)


def _number(value: Scalar) -> Scalar:
    return _call(INTERVAL_NUMBER, value)


def _scalar(scalar: Scalar) -> Scalar:
    """Return a scalar with comparisons of intervals replaced by those of their spans."""
    scalar = map_parts(scalar, _scalar)
    if isinstance(scalar, SameValue) and scalar.left.type == INTERVAL:
        return replace(scalar, left=_span(scalar.left), right=_span(scalar.right))
    if isinstance(scalar, ScalarCall) and scalar.function.name in COMPARISONS:
        if all(argument.type == INTERVAL for argument in scalar.arguments):
            spans = tuple(map(_span, scalar.arguments))
            return replace(
                scalar, function=resolve(scalar.function.name, [s.type for s in spans]).function, arguments=spans
            )
    return scalar


# --- rows -------------------------------------------------------------------------------------------------------------


def _keyed(relation: BoundRelation, keys: tuple[Column, ...]) -> tuple[BoundRelation, tuple[Column, ...]]:
    """Return a relation with the spans of its interval keys, and keys in which these stand for the intervals."""
    spans = {key: Column(f"{key.name} span", INTERVAL_SPAN.result_type(())) for key in keys if key.type == INTERVAL}
    extended = extend(relation, {span: _span(value_of(key)) for key, span in spans.items()})
    return extended, tuple(spans.get(key, key) for key in keys)


def _distinct(relation: BoundRelation) -> BoundRelation:
    """Return each row once; of rows that differ only in the spelling of intervals, the least."""
    extended, keys = _keyed(relation, relation.columns)
    order = tuple(SortKey(_number(value_of(column))) for column in relation.columns if column.type == INTERVAL)
    one = Constant(1, type=BIGINT)
    return keep(TopRows(extended.columns, extended, keys, order, one), relation.columns)


def _top_rows(node: TopRows) -> BoundRelation:
    extended, keys = _keyed(node.input, node.keys)
    order = map_order(node.order, lambda value: _span(value) if value.type == INTERVAL else value)
    return keep(replace(node, columns=extended.columns, input=extended, keys=keys, order=order), node.columns)


def _set_operation(node: SetOperation) -> BoundRelation:
    if node.kind == "union":
        return _distinct(replace(node, all=True))
    left = _distinct(node.left)
    terms = [
        same(*((_span(value_of(a)), _span(value_of(b))) if a.type == INTERVAL else (value_of(a), value_of(b))))
        for a, b in zip(left.columns, node.right.columns, strict=True)
    ]
    rows = join("semi" if node.kind == "intersect" else "anti", left, node.right, terms)
    return project(rows, dict(zip(node.columns, map(value_of, rows.columns), strict=True)))


# --- groups -----------------------------------------------------------------------------------------------------------


def _aggregate(node: Aggregate) -> BoundRelation:
    """Return groups by spans, and aggregates of numbers, with the columns of the node computed from them."""
    if not _has_intervals(node.keys) and not any(_is_of_intervals(call) for call in node.aggregates):
        return node
    extended, keys = _keyed(node.input, node.keys)
    calls: list[AggregateCall] = []
    columns: list[Column] = []

    def result(call: AggregateCall) -> Scalar:
        calls.append(call)
        columns.append(Column(call.function.name, call.type))
        return value_of(columns[-1])

    own_keys = [Column(column.name, key.type) for column, key in zip(node.columns, keys, strict=False)]
    values: dict[Column, Scalar] = {}
    for column, old, own in zip(node.columns, node.keys, own_keys, strict=False):
        values[column] = _least_member(old, own, result) if old.type == INTERVAL else value_of(own)
    count = len(node.keys)
    for column, call in zip(node.columns[count:], node.aggregates, strict=False):
        values[column] = _aggregate_value(call, result)
    grouping = [copy_of(column) for column in node.columns[count + len(node.aggregates) :]]
    for column, own in zip(node.columns[count + len(node.aggregates) :], grouping, strict=True):
        values[column] = value_of(own)
    groups = replace(node, columns=(*own_keys, *columns, *grouping), input=extended, keys=keys, aggregates=tuple(calls))
    if all(column in node.input.columns for column in node.columns[:count]) and count and node.sets is None:
        return node  # the columns of the keys are those of the input: nothing may define them again
    return project(groups, values)


def _least_member(key: Column, own: Column, result) -> Scalar:  # type: ignore[no-untyped-def]
    """Return the least interval of a group; null where the key is null or not in the grouping set."""
    least = _unnumbered(result(_extreme("min", value_of(key))))
    null = Constant(None, type=INTERVAL)
    return Case(((IsNull(value_of(own), type=BOOLEAN), null),), least, type=INTERVAL)


def _unnumbered(number: Scalar) -> Scalar:
    return _call(INTERVAL_NUMBERED, number)


def _extreme(name: str, value: Scalar, like: AggregateCall | None = None) -> AggregateCall:
    number = _number(value)
    function = resolve_aggregate(name, [number.type]).function
    type_ = function.result_type([number.type])
    kept = None if like is None else like.filter
    return AggregateCall(function, (number,), type_, filter=kept, span=None if like is None else like.span)


def _is_of_intervals(call: AggregateCall) -> bool:
    named = call.function.name in ("min", "max", "sum", "avg") or call.distinct
    return named and any(argument.type == INTERVAL for argument in call.arguments)


def _aggregate_value(call: AggregateCall, result) -> Scalar:  # type: ignore[no-untyped-def]
    if not _is_of_intervals(call):
        return result(call)  # type: ignore[no-any-return]
    name, value = call.function.name, call.arguments[-1]
    if name in ("min", "max"):
        return _unnumbered(result(_extreme(name, value, call)))
    if name == "count":
        return result(replace(call, arguments=(_span(value),)))  # type: ignore[no-any-return]
    if name not in ("sum", "avg"):
        return result(call)  # type: ignore[no-any-return]
    total = _call(INTERVAL_OF_SUMS, *(_total(call, part, result) for part in INTERVAL_COUNTS))
    if name == "sum":
        return total
    counting = resolve_aggregate("count", [INTERVAL]).function
    count = result(replace(call, function=counting, arguments=(value,), type=BIGINT))
    zero = Constant(0, type=BIGINT)
    is_empty = ScalarCall(resolve("=", (BIGINT, BIGINT)).function, (count, zero), type=BOOLEAN)
    mean = _call(resolve("/", (INTERVAL, DOUBLE)).function, total, Cast(count, type=DOUBLE))
    return Case(((is_empty, Constant(None, type=INTERVAL)),), mean, type=INTERVAL)


def _total(call: AggregateCall, part: Function, result) -> Scalar:  # type: ignore[no-untyped-def]
    value = _call(part, call.arguments[-1])
    function = resolve_aggregate("sum", [BIGINT]).function
    summed = result(replace(call, function=function, arguments=(value,), type=function.result_type([BIGINT])))
    return Cast(summed, type=BIGINT)
