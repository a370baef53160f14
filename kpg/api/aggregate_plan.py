"""The plan of several aggregates of a group: parts that are maintained each in its way, joined by the group's key.

    sums       count, sum, avg, all, any: one reduction for all of them, accumulated in the diff
    distinct   the same over the distinct values of an expression: one for each expression
    extremes   min or max: the first row of each group
    scans      quantile, mode, variance, stddev, string_agg: one reduction for each expression and order

Every part has one row for each group, because values that do not count are null instead of left out. The join of the
parts by the key is therefore complete. A single part is not joined.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kpg.api.join_forms import widened
from kpg.api.row_order import first_rows, order_of_keys
from kpg.columns.bind import bind
from kpg.columns.column_aggregates import SCANNED, SUMMED, ColumnAggregate, as_aggregate
from kpg.columns.expression import ColumnReference, Expression, FunctionCall, Literal, wrap
from kpg.columns.order_key import OrderKey
from kpg.columns.schema import BOOL, FLOAT64, INT64, Schema, Type, array_of, decimal
from kpg.columns.wide_integers import MAX_DIGITS
from kpg.errors import BadPlan, TypeMismatch
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.api.collection import Collection

Member = tuple[str, ColumnAggregate, str]  # the name of the result, the aggregate, and the column of its values
SumRequest = tuple[str, str, Type | None]  # a kind, the column of its values, and the type of the result if given
NO_COLUMN = ""  # of an aggregate of rows
COUNTS = " counts"  # the column that tells whether a row counts, if null does not tell it; also the option that says so
VALUE = " value"  # the column of the values that an extreme or a scan reads


def plan_aggregates(
    collection: Collection, keys: tuple[str, ...], aggregates: Mapping[str, ColumnAggregate]
) -> Collection:
    """Return the keys, and a column for each aggregate, in their order."""
    if not aggregates:
        raise BadPlan("aggregate() of nothing", hint='Name an aggregate, as in aggregate(total=col("amount").sum()).')
    columns = ComputedColumns(collection)
    parts: dict[Hashable, list[Member]] = {}
    for name, aggregate in aggregates.items():
        column = columns.of_aggregate(aggregate)
        parts.setdefault(_part_of(name, aggregate, column), []).append((name, aggregate, column))
    rows = columns.rows()
    results = [_compute(rows, keys, members) for members in parts.values()]
    joined = results[0]
    for result in results[1:]:
        joined = joined.join(result, keys)
    wanted = (*keys, *aggregates)
    return joined if joined.schema.names == wanted else joined.select(*wanted)


def aggregate_all(collection: Collection, aggregates: Mapping[str, Any]) -> Collection:
    """Return one row with the aggregates of all rows; of no rows, counts are 0 and other aggregates are null."""
    wanted = {name: as_aggregate(aggregate) for name, aggregate in aggregates.items()}
    result = plan_aggregates(collection, (), wanted)
    types = [
        type_.optional(wanted[name].kind != "count")
        for name, type_ in zip(result.schema.names, result.schema.types, strict=True)
    ]
    schema = Schema(result.schema.names, tuple(types))
    of_nothing = tuple(0 if wanted[name].kind == "count" else None for name in schema.names)
    default = collection._make(nodes.ValuesNode(schema, frozenset(), (of_nothing,)))
    return widened(result, schema).concat(default.join(result, (), "anti"))


def _part_of(name: str, aggregate: ColumnAggregate, column: str) -> Hashable:
    """Return a key that is equal for aggregates that are computed together."""
    if aggregate.kind in SUMMED:
        return ("sums", column if aggregate.distinct else None)
    if aggregate.kind in SCANNED:
        order = tuple((key.expression.structure(), key.descending, key.nulls_last) for key in aggregate.order)
        kept = None if aggregate.where is None or aggregate.kind != "array_agg" else wrap(aggregate.where).structure()
        return ("scan", column, aggregate.distinct, order, aggregate.kind == "array_agg", kept)
    return ("extreme", name)


class ComputedColumns:
    """The columns of values: those of a collection, and others that are computed, each expression once."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._expressions: dict[str, Expression] = {}
        self._names: dict[Hashable, str] = {}

    def of_aggregate(self, aggregate: ColumnAggregate) -> str:
        """Return the column of the values of an aggregate: null, or false, where a value does not count."""
        argument = aggregate.argument
        where = None if aggregate.where is None else wrap(aggregate.where)
        if argument is None:
            return NO_COLUMN if where is None else self.of(where)
        type_ = self.type_of(argument)
        _check(aggregate, type_)
        if where is not None and aggregate.kind != "array_agg":  # an array has nulls, too
            argument = FunctionCall("when", (where, argument, Literal(None).cast(type_)))
        return self.of(argument)

    def of(self, expression: Expression) -> str:
        """Return the column of an expression."""
        if isinstance(expression, ColumnReference):
            self.collection.schema.index(expression.name)
            return expression.name
        structure = expression.structure()
        if structure not in self._names:
            name = f" value {len(self.collection.schema) + len(self._names)}"  # greater than those of an earlier plan
            self._names[structure] = name
            self._expressions[name] = expression
        return self._names[structure]

    def rows(self) -> Collection:
        """Return the collection with the computed columns."""
        return self.collection.with_columns(**self._expressions) if self._expressions else self.collection

    def type_of(self, expression: Expression) -> Type:
        """Return the type of an expression of the collection's columns."""
        return bind(expression, self.collection.schema, self.collection.db.symbols).type


def _check(aggregate: ColumnAggregate, type_: Type) -> None:
    kind = aggregate.kind
    numeric = kind in ("sum", "avg", "variance", "stddev") or aggregate.option.startswith("between")
    fits = type_.is_numeric or not numeric
    fits &= type_.kind == "bool" or kind not in ("all", "any")
    fits &= type_.kind == "string" or kind != "string_agg"
    if not fits:
        raise TypeMismatch(f"cannot take the {kind} of {aggregate.argument!r}", detail=f"It is {type_}.")


# Parts


def _compute(rows: Collection, keys: tuple[str, ...], members: list[Member]) -> Collection:
    name, aggregate, column = members[0]
    if aggregate.kind in SCANNED:
        return _scan(rows, keys, members)
    if aggregate.kind not in SUMMED:
        values = rows.select(*keys, **{VALUE: ColumnReference(column)})
        sign = "-" if aggregate.kind == "max" else ""
        return first_rows(values, keys, [sign + VALUE], 1, hierarchical=aggregate.hierarchical).rename(**{VALUE: name})
    if aggregate.distinct:
        rows = rows.select(*dict.fromkeys((*keys, column))).distinct()
    return _sums(rows, keys, members)


def _sums(rows: Collection, keys: tuple[str, ...], members: list[Member]) -> Collection:
    """Return counts, sums and averages; `all` and `any` follow from the numbers of true and of false values."""
    columns = ComputedColumns(rows)
    requests: dict[SumRequest, str] = {}  # with the names of their columns
    results = {}
    for name, aggregate, column in members:
        needed = [(kind, of, aggregate.returns) for kind, of in _sums_needed(aggregate, column, columns)]
        for index, request in enumerate(needed):
            requests.setdefault(request, name if len(needed) == 1 else f" {index} of {name}")
        results[name] = _result([ColumnReference(requests[request]) for request in needed], aggregate.kind)
    inner = columns.rows()
    types = [(name, _type_of_sum(inner.schema, *request)) for request, name in requests.items()]
    schema = inner.schema.select(keys).concat(Schema.of(types))
    spec = nodes.ReductionSpec("sums", columns=tuple(f"{kind}:{column}" for kind, column, _ in requests))
    reduced = rows._make(nodes.ReduceNode(schema, inner.node.loops, inner.node, keys, spec))
    direct = all(isinstance(result, ColumnReference) and result.name == name for name, result in results.items())
    return reduced if direct else reduced.select(*keys, **results)


def _sums_needed(aggregate: ColumnAggregate, column: str, columns: ComputedColumns) -> list[tuple[str, str]]:
    """Return the sums that an aggregate is computed from: pairs of a kind and a column."""
    if aggregate.kind in ("sum", "avg"):
        return [(aggregate.kind, column)]
    if aggregate.argument is None:  # of rows, or of rows on which a condition is true
        return [("count", column)]
    value = ColumnReference(column)
    if aggregate.kind == "count":
        nullable = columns.type_of(value).nullable
        return [("count", columns.of(~value.is_null()) if nullable else NO_COLUMN)]
    return [("count", column), ("count", columns.of(~value))]


def _result(sums: list[ColumnReference], kind: str) -> Expression:
    """Return an aggregate as an expression of its sums."""
    if len(sums) == 1:
        return sums[0]
    true, false = (number > 0 for number in sums)
    decisive, other = (false, true) if kind == "all" else (true, false)
    return FunctionCall(
        "when", (decisive, Literal(kind == "any"), other, Literal(kind == "all"), Literal(None).cast(BOOL))
    )


def _type_of_sum(schema: Schema, kind: str, column: str, returns: Type | None) -> Type:
    if kind == "count":
        return INT64
    type_ = schema.type_of(column)
    if returns is not None:
        return _exact_result(kind, column, type_, returns)
    if kind == "avg":
        return FLOAT64.optional(type_.nullable)
    return decimal(MAX_DIGITS, type_.scale).optional(type_.nullable) if type_.kind == "decimal" else type_


def _exact_result(kind: str, column: str, type_: Type, returns: Type) -> Type:
    """Return the decimal type of a sum or average that was asked for; raise TypeMismatch if it cannot hold it."""
    if type_.kind == "float64" or (kind == "sum" and type_.scale != returns.scale):
        hint = f"Take decimal({MAX_DIGITS},{type_.scale})." if type_.kind != "float64" else "Cast the values first."
        raise TypeMismatch(f"the {kind} of {type_} is not {returns}", hint=hint)
    return returns.optional(type_.nullable)


def _scan(rows: Collection, keys: tuple[str, ...], members: list[Member]) -> Collection:
    """Return statistics of the values of one column, in one order."""
    _, first, column = members[0]
    by = (*first.order, OrderKey(ColumnReference(column))) if first.kind == "array_agg" else first.order
    order = order_of_keys(rows, keys, by, breaks_ties=first.kind == "array_agg")
    computed = {**order.hidden, VALUE: ColumnReference(column)}
    deciding = [name.removeprefix("-") for name in order.columns]
    if first.kind == "array_agg" and first.where is not None:
        computed[COUNTS] = FunctionCall("when", (wrap(first.where), Literal(True), Literal(False)))
        deciding.insert(0, COUNTS)
        members = [(name, replace(aggregate, option=COUNTS), of) for name, aggregate, of in members]
    inner = rows.with_columns(**computed).select(*keys, *deciding, VALUE)
    if first.distinct:
        inner = inner.distinct()
    type_ = inner.schema.type_of(VALUE)
    types = [(name, statistic_type(aggregate, type_)) for name, aggregate, _ in members]
    return statistics_of(inner, keys, types, [aggregate for _, aggregate, _ in members], order.columns)


def statistics_of(
    rows: Collection,
    keys: tuple[str, ...],
    types: list[tuple[str, Type]],
    aggregates: list[ColumnAggregate],
    order: tuple[str, ...] = (),
) -> Collection:
    """Return statistics of the last column of some rows; their other columns are keys, and those of the order."""
    columns = tuple(f"{aggregate.kind}:{aggregate.option}" for aggregate in aggregates)
    spec = nodes.ReductionSpec("statistics", columns=columns, order=order)
    schema = rows.schema.select(keys).concat(Schema.of(types))
    return rows._make(nodes.ReduceNode(schema, rows.node.loops, rows.node, keys, spec))


def statistic_type(aggregate: ColumnAggregate, type_: Type) -> Type:
    """Return the type of a statistic of values of a type."""
    if aggregate.kind in ("variance", "stddev"):
        if " " in aggregate.option:  # the scale of an exact result
            return decimal(MAX_DIGITS, int(aggregate.option.split(" ")[1])).optional()
        return FLOAT64.optional(type_.nullable or aggregate.option == "sample")
    if aggregate.option.startswith("between"):
        return FLOAT64.optional(type_.nullable)
    return array_of(type_).optional(aggregate.where is not None) if aggregate.kind == "array_agg" else type_
