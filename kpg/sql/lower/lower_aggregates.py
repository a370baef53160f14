"""Lower groups: the keys, and the aggregates of each group, as the engine's aggregates of expressions.

The engine skips nulls, counts values only where FILTER is true, and gives counts of 0 and nulls for no rows at all if
there are no keys. What differs in SQL is computed from its results: an average of exact numbers is their sum divided by
their count, with the digits of a numeric quotient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kpg.api.collection import Collection
from kpg.columns.column_aggregates import ColumnAggregate
from kpg.columns.expression import Apply, ColumnReference, Expression, FunctionCall, Literal
from kpg.columns.intervals import PARTS, interval_part, make_interval
from kpg.columns.order_key import OrderKey
from kpg.errors import BadPlan
from kpg.sql.functions.folded_arrays import extreme_array, folded_bits, joined_pairs, with_delimiter
from kpg.sql.functions.resolve import resolve
from kpg.sql.functions.sql_casts import build_cast
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.lower.lower_order import order_keys, ordered_value
from kpg.sql.lower.lowered_relation import LoweredRelation, unique_names
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import Aggregate
from kpg.sql.relational.scalars import AggregateCall, Cast, Constant, Scalar
from kpg.sql.sql_states import with_sqlstate
from kpg.sql.sql_types import BIGINT, DOUBLE, INTERVAL, MAX_NUMERIC_DIGITS, TEXT, SqlType, numeric

SPREADS: Final = {
    "var_samp": ("variance", "sample"),
    "var_pop": ("variance", "population"),
    "stddev_samp": ("stddev", "sample"),
    "stddev_pop": ("stddev", "population"),
}
EXACT_SUM: Final = numeric(MAX_NUMERIC_DIGITS, 0)  # of integers
EXACT_BIGINT: Final = numeric(19, 0)  # holds all values of a bigint, so that their sum cannot overflow


@dataclass(frozen=True, slots=True)
class LoweredCall:
    """The aggregates of the engine that a call is computed from, and its value in terms of their columns."""

    needed: tuple[ColumnAggregate, ...]
    finish: Callable[[list[Expression]], Expression]


def lower_aggregate(lowering: RelationLowering, node: Aggregate) -> LoweredRelation:
    """Return one row for each group."""
    assert node.sets is None and not node.grouping, "the rewrites expand grouping sets"
    relation = lowering.lower(node.input)
    keys = tuple(relation.names[key] for key in node.keys)
    grouped = node.columns[: len(keys)]
    if not node.aggregates:
        groups = relation.select(
            {column: relation.reference(key) for column, key in zip(grouped, node.keys, strict=True)}
        )
        return groups.with_rows(groups.rows.distinct())
    calls = [lower_call(lowering, call, relation, bool(keys)) for call in node.aggregates]
    parts = {
        f" {number} {index}": aggregate
        for number, call in enumerate(calls)
        for index, aggregate in enumerate(call.needed)
    }
    rows: Collection = relation.rows
    reduced = rows.group_by(*keys).aggregate(**parts) if keys else rows.aggregate(**parts)
    own = node.columns[len(keys) :]
    names = dict(zip(grouped, keys, strict=True)) | unique_names(own, taken=keys)
    values: dict[str, Expression] = {key: ColumnReference(key) for key in keys}
    for number, (column, call) in enumerate(zip(own, calls, strict=True)):
        sums: list[Expression] = [ColumnReference(f" {number} {index}") for index in range(len(call.needed))]
        values[names[column]] = call.finish(sums)
    return LoweredRelation(reduced.select(**values), names)


def lower_call(lowering: RelationLowering, call: AggregateCall, relation: LoweredRelation, keyed: bool) -> LoweredCall:
    """Return how the engine computes an aggregate. A group without keys is large: `min` and `max` are hierarchical."""
    where = None if call.filter is None else lowering.expression(call.filter, relation)
    if not call.arguments:
        return LoweredCall((ColumnAggregate("count", None, where),), _only)
    value, type_ = lowering.expression(call.arguments[_value_position(call)], relation), call.arguments[-1].type
    order = order_keys(lowering, call.order, relation)
    way = call.function.lowering
    whole = ColumnAggregate(way, value, where, call.distinct)
    match way:
        case "count":
            return LoweredCall((whole,), _only)
        case "min" | "max":
            return LoweredCall((ColumnAggregate(way, value, where, hierarchical=not keyed),), _only)
        case "mode":
            return LoweredCall((ColumnAggregate("mode", value, where),), _only)
        case "bool_and" | "bool_or":
            return LoweredCall((replace(whole, kind="all" if way == "bool_and" else "any"),), _only)
        case "sum" | "avg" if type_ == INTERVAL:
            return _intervals(whole)
        case "sum":
            return _sum(whole, type_, call.type)
        case "avg":
            return _average(whole, type_, call.type)
        case "var_samp" | "var_pop" | "stddev_samp" | "stddev_pop":
            kind, option = SPREADS[way]
            digits = f" {call.type.scale}" if call.type.name == "numeric" else ""
            return LoweredCall((replace(whole, kind=kind, option=option + digits),), _only)
        case "percentile_cont" | "percentile_disc":
            form = "between" if way == "percentile_cont" else "first"
            option = f"{form} {float(_constant(call.arguments[0], 'the fraction of a percentile'))!r}"
            return LoweredCall((replace(whole, kind="quantile", option=option),), _only)
        case "string_agg" if _is_constant(call.arguments[1]):
            separator = str(_constant(call.arguments[1], "the delimiter of string_agg") or "")
            return LoweredCall((replace(whole, option=separator, order=order),), _only)
        case "string_agg" if type_ == TEXT:
            return _delimited(whole, lowering.expression(call.arguments[1], relation), order)
        case "bit_and" | "bit_or" | "bit_xor":
            values = replace(whole, kind="array_agg", distinct=call.distinct or way != "bit_xor")
            return LoweredCall((values,), partial(_folded, folded_bits, (way,), call.type))
        case "min_array" | "max_array":
            assert type_.element is not None
            texts = ColumnAggregate("array_agg", build_cast(value, type_, TEXT, False), where, distinct=True)
            options = (way.removesuffix("_array"), str(type_.element))
            return LoweredCall((texts,), partial(_folded, extreme_array, options, call.type))
        case "array_agg":
            if type_.name == "interval" and not order:
                order = (OrderKey(ordered_value(value, type_)),)
            return LoweredCall((replace(whole, order=order),), _only)
    raise with_sqlstate("0A000", BadPlan(f"the aggregate {call.function.name} is not supported"))


def _delimited(whole: ColumnAggregate, delimiter: Expression, order: tuple[OrderKey, ...]) -> LoweredCall:
    """Return string_agg whose delimiter differs from row to row: the one of a row stands before its value."""
    value = whole.argument
    assert value is not None
    pair = Apply(with_delimiter, engine_type(TEXT), "values", (value, delimiter))
    order = order or (OrderKey(value), OrderKey(delimiter))
    pairs = replace(whole, kind="array_agg", argument=pair, order=order)
    return LoweredCall((pairs,), partial(_folded, joined_pairs, (), TEXT))


def _folded(
    function: Callable[..., Any], options: tuple[Any, ...], result: SqlType, values: list[Expression]
) -> Expression:
    """Return a function of the array of a group's values, which may be null."""
    return Apply(function, engine_type(result), "distinct", (values[0],), options)


def _is_constant(scalar: Scalar) -> bool:
    while isinstance(scalar, Cast):
        scalar = scalar.argument
    return isinstance(scalar, Constant)


def _only(values: list[Expression]) -> Expression:
    return values[0]


def _value_position(call: AggregateCall) -> int:
    """Return the argument that is aggregated; string_agg has its delimiter after it."""
    return 0 if call.function.lowering == "string_agg" else -1


def _constant(scalar: Scalar, what: str) -> Any:
    while isinstance(scalar, Cast):
        scalar = scalar.argument
    if not isinstance(scalar, Constant):
        raise with_sqlstate("0A000", BadPlan(f"{what} has to be a constant"))
    return scalar.value


def _sum(whole: ColumnAggregate, type_: SqlType, result: SqlType) -> LoweredCall:
    """Return a sum, of bigint as numeric, in the type that SQL gives it."""
    assert whole.argument is not None
    summed = EXACT_SUM if type_ == BIGINT and result.name == "numeric" else _type_of_sum(type_)
    if summed == EXACT_SUM:
        whole = replace(whole, returns=engine_type(EXACT_SUM, nullable=False))
    return LoweredCall((whole,), lambda values: _as(values[0], summed, result))


def _average(whole: ColumnAggregate, type_: SqlType, result: SqlType) -> LoweredCall:
    """Return an average: of exact numbers the quotient of their sum and count, rounded once."""
    if result.name != "numeric":
        return LoweredCall((whole,), lambda values: _as(values[0], DOUBLE, result))
    exact = EXACT_SUM if type_.is_integer else _type_of_sum(type_)
    function = resolve("/", (exact, EXACT_BIGINT)).function

    def quotient(values: list[Expression]) -> Expression:
        total, count = values[0], _as(values[1], BIGINT, EXACT_BIGINT)
        divisor = FunctionCall("when", (values[1] == 0, Literal(None).cast(engine_type(EXACT_BIGINT)), count))
        return function.build([total, divisor], [exact, EXACT_BIGINT], result)

    total = replace(whole, kind="sum", returns=engine_type(exact, nullable=False))
    return LoweredCall((total, replace(whole, kind="count")), quotient)


def _intervals(whole: ColumnAggregate) -> LoweredCall:
    """Return a sum of intervals, which is the sums of their three counts, or their average."""
    if whole.distinct:  # equal intervals may have different counts
        raise with_sqlstate("0A000", BadPlan(f"{whole.kind}(DISTINCT …) of intervals is not supported"))
    assert whole.argument is not None
    value = whole.argument
    counts = tuple(replace(whole, kind="sum", argument=interval_part(value, part)) for part in PARTS)
    if whole.kind == "sum":
        return LoweredCall(counts, lambda values: make_interval(*values))
    divide = resolve("/", (INTERVAL, DOUBLE)).function

    def quotient(values: list[Expression]) -> Expression:
        number = FunctionCall("when", (values[3] == 0, Literal(None).cast(engine_type(BIGINT)), values[3]))
        return divide.build([make_interval(*values[:3]), _as(number, BIGINT, DOUBLE)], [INTERVAL, DOUBLE], INTERVAL)

    return LoweredCall((*counts, replace(whole, kind="count")), quotient)


def _type_of_sum(type_: SqlType) -> SqlType:
    """Return the SQL type of the engine's sum of values of a type."""
    if type_.name == "numeric":
        return numeric(MAX_NUMERIC_DIGITS, type_.scale or 0)
    return BIGINT if type_.is_integer else type_


def _as(value: Expression, source: SqlType, target: SqlType) -> Expression:
    """Return a value of one type as another; the value itself if both are held alike."""
    return value if engine_type(source) == engine_type(target) else build_cast(value, source, target, False)
