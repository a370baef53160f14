"""Groups: aggregates of the rows with equal keys.

    orders.group_by("customer").sum("amount")
    orders.group_by("customer").aggregate(n="count", most=col("amount").max(where=col("paid")))
    orders.group_by("customer").top_k(3, by="-amount")

Each result is a collection: the keys, then the aggregates. Maintaining counts and sums costs time in proportion to the
change; min, max and top_k in proportion to the size of the changed groups, and with `hierarchical=True` to its
logarithm. A group with no rows has no result. Sums, averages, min and max skip nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from kpg.api.aggregate_plan import VALUE, plan_aggregates, statistics_of
from kpg.api.row_order import first_rows
from kpg.columns.column_aggregates import ColumnAggregate, as_aggregate
from kpg.columns.expression import ColumnReference, Expression
from kpg.columns.order_key import OrderBy, OrderKey, order_keys_of
from kpg.columns.schema import FLOAT64, INT64, Schema, Type
from kpg.errors import TypeMismatch
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.api.collection import Collection

Aggregates: TypeAlias = ColumnAggregate | tuple[str, str] | str  # an object, a kind with a column, or "count"


class Group:
    """The rows of a collection, by key."""

    def __init__(self, collection: Collection, keys: tuple[str, ...]) -> None:
        self.collection = collection
        self.keys = keys

    def count(self, name: str = "count") -> Collection:
        """Count the rows of each group."""
        schema = self._keys().concat(Schema.of({name: INT64}))
        return self._reduce(schema, nodes.ReductionSpec("count"))

    def sum(self, /, *columns: str, **named: str) -> Collection:
        """Sum columns: sum("amount") or sum(total="amount")."""
        names = {column: column for column in columns} | named
        return self.aggregate(**{name: ("sum", column) for name, column in names.items()})

    def avg(self, /, *columns: str, **named: str) -> Collection:
        """Average columns, as float64."""
        names = {column: column for column in columns} | named
        return self.aggregate(**{name: ("avg", column) for name, column in names.items()})

    def aggregate(self, /, **aggregates: Aggregates) -> Collection:
        """Compute several aggregates: aggregate(n="count", total=("sum", "amount"), top=col("amount").max())."""
        wanted = {name: as_aggregate(aggregate) for name, aggregate in aggregates.items()}
        return plan_aggregates(self.collection, self.keys, wanted)

    def pivot(self, column: str | Expression, values: Iterable[Any], aggregate: Aggregates) -> Collection:
        """Compute an aggregate for each of some values of a column: one column for each value, named as it prints.

        pivot("month", [1, 2, 3], col("amount").sum()); with a dict, its keys are the names of the columns.
        """
        wanted = as_aggregate(aggregate)
        of = ColumnReference(column) if isinstance(column, str) else column
        named = values if isinstance(values, Mapping) else {str(value): value for value in values}
        conditions = {name: of.is_null() if value is None else of == value for name, value in named.items()}
        if wanted.where is not None:
            conditions = {name: condition & wanted.where for name, condition in conditions.items()}
        return self.aggregate(**{name: replace(wanted, where=condition) for name, condition in conditions.items()})

    def min(self, column: str, name: str | None = None, *, hierarchical: bool = False) -> Collection:
        """Return the least value of a column."""
        return self._extreme(column, name, False, hierarchical)

    def max(self, column: str, name: str | None = None, *, hierarchical: bool = False) -> Collection:
        """Return the greatest value of a column."""
        return self._extreme(column, name, True, hierarchical)

    def _extreme(self, column: str, name: str | None, greatest: bool, hierarchical: bool) -> Collection:
        inner = self.collection
        if inner.schema.type_of(column).nullable:
            inner = inner.filter(~ColumnReference(column).is_null())
        if set(inner.schema.names) != {*self.keys, column}:
            inner = inner.select(*self.keys, column)
        by = OrderKey(ColumnReference(column), greatest, nulls_last=greatest)  # there are none: the order of lanes
        extreme = Group(inner, self.keys).first(1, by, hierarchical=hierarchical)
        return extreme if name in (None, column) else extreme.rename(**{column: name})

    def variance(self, column: str, name: str | None = None) -> Collection:
        """Return the variance of a column, as float64: the mean of the squared distances to the mean."""
        type_ = self.collection.schema.type_of(column)
        if not type_.is_numeric:
            raise TypeMismatch(f"cannot take the variance of {column}", detail=f"It is {type_}.")
        return self._statistic(column, name, "variance", FLOAT64)

    def median(self, column: str, name: str | None = None) -> Collection:
        """Return the median of a column: the value in the middle; of two, the greater one."""
        return self._statistic(column, name, "median", self.collection.schema.type_of(column).optional(False))

    def _statistic(self, column: str, name: str | None, kind: str, type_: Type) -> Collection:
        """Return a statistic of the values of a column that are not null, for groups that have any."""
        inner = self.collection
        if inner.schema.type_of(column).nullable:
            inner = inner.filter(~ColumnReference(column).is_null())
            inner = inner.with_columns(**{column: ColumnReference(column).not_null()})
        values = inner.select(*self.keys, **{VALUE: ColumnReference(column)})
        return statistics_of(values, self.keys, [(name or column, type_)], [ColumnAggregate(kind)])

    def argmin(self, column: str, *, hierarchical: bool = False) -> Collection:
        """Keep the row with the least value of a column; of several, the least by the other columns."""
        return self.first(1, column, hierarchical=hierarchical)

    def argmax(self, column: str, *, hierarchical: bool = False) -> Collection:
        """Keep the row with the greatest value of a column; of several, the least by the other columns."""
        return self.first(1, "-" + column, hierarchical=hierarchical)

    def top_k(
        self, k: int | None, by: OrderBy | Iterable[OrderBy], *, offset: int = 0, hierarchical: bool = False
    ) -> Collection:
        """Keep the first k rows by some columns, equal rows counted by their multiplicity; "-column" is descending.

        Rows before `offset` are left out, as with LIMIT and OFFSET of SQL; k=None keeps all others.
        """
        return self.first(k, *order_keys_of(by), copies=True, hierarchical=hierarchical, offset=offset)

    def first(
        self, limit: int | None, *by: OrderBy, copies: bool = False, hierarchical: bool = False, offset: int = 0
    ) -> Collection:
        """Keep the first rows by some columns, a leading "-" for descending; other columns break ties, nulls last.

        A key may also be an expression, or col("x").desc(nulls_last=False). `hierarchical=True` is for large groups.
        """
        return first_rows(
            self.collection, self.keys, by, limit, offset=offset, copies=copies, hierarchical=hierarchical
        )

    def reduce(self, function: Callable[[tuple[Any, ...], list[Any]], Any], **columns: Any) -> Collection:
        """Apply `function(key, rows)` to each group; slow, since Python calls it once per changed group and time.

        `key` is a tuple, `rows` a sorted list of (row, count); return the output rows, of the given columns.
        """
        schema = self._keys().concat(Schema.of(columns))
        return self._reduce(schema, nodes.ReductionSpec("function", function=function))

    def _keys(self) -> Schema:
        return self.collection.schema.select(self.keys)

    def _reduce(self, schema: Schema, reduction: nodes.ReductionSpec) -> Collection:
        node = self.collection.node
        return self.collection._make(nodes.ReduceNode(schema, node.loops, node, self.keys, reduction))
