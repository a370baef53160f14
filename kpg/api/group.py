"""Groups: aggregates of the rows with equal keys.

    orders.group_by("customer").sum("amount")
    orders.group_by("customer").top_k(3, by="-amount")

Each result is a collection: the keys, then the aggregates. Maintaining counts and sums costs time in proportion to the
change; min, max and top_k in proportion to the size of the changed groups, and with `hierarchical=True` to its
logarithm. A group with no rows has no result. Sums, averages, min and max skip nulls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kpg.api.group_statistics import median_of, variance_of
from kpg.columns.expression import ColumnReference
from kpg.columns.lane_values import MAX
from kpg.columns.schema import FLOAT64, INT64, Schema, Type, decimal
from kpg.columns.wide_integers import MAX_DIGITS
from kpg.errors import BadPlan, TypeMismatch
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.api.collection import Collection

BUCKET_BITS = (16, 8)  # bits of the row hash by which each level of a hierarchical reduction groups


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

    def aggregate(self, /, **aggregates: tuple[str, str] | str) -> Collection:
        """Compute several aggregates: aggregate(n="count", total=("sum", "amount"), mean=("avg", "amount"))."""
        names: list[tuple[str, Type]] = []
        columns: list[str] = []
        for name, aggregate in aggregates.items():
            kind, column = (aggregate, "") if isinstance(aggregate, str) else aggregate
            names.append((name, self._type_of(kind, column)))
            columns.append(f"{kind}:{column}")
        if not names:
            raise BadPlan("aggregate() of nothing", hint='Name an aggregate, as in aggregate(total=("sum", "amount")).')
        schema = self._keys().concat(Schema.of(names))
        return self._reduce(schema, nodes.ReductionSpec("sums", columns=tuple(columns)))

    def _type_of(self, kind: str, column: str) -> Type:
        if kind == "count":
            return INT64
        if kind not in ("sum", "avg"):
            raise BadPlan(f"no aggregate is called {kind!r}", hint="The aggregates are count, sum and avg.")
        type_ = self.collection.schema.type_of(column)
        if not type_.is_numeric:
            raise TypeMismatch(f"cannot take the {kind} of {column}", detail=f"It is {type_}.")
        if kind == "sum":
            return decimal(MAX_DIGITS, type_.scale).optional(type_.nullable) if type_.kind == "decimal" else type_
        return FLOAT64.optional(type_.nullable)

    def min(self, column: str, name: str | None = None, *, hierarchical: bool = False) -> Collection:
        """Return the least value of a column."""
        return self._extreme(column, name, "", hierarchical)

    def max(self, column: str, name: str | None = None, *, hierarchical: bool = False) -> Collection:
        """Return the greatest value of a column."""
        return self._extreme(column, name, "-", hierarchical)

    def _extreme(self, column: str, name: str | None, sign: str, hierarchical: bool) -> Collection:
        inner = self.collection
        if inner.schema.type_of(column).nullable:
            inner = inner.filter(~ColumnReference(column).is_null())
        if set(inner.schema.names) != {*self.keys, column}:
            inner = inner.select(*self.keys, column)
        extreme = Group(inner, self.keys).first(1, sign + column, hierarchical=hierarchical)
        return extreme if name in (None, column) else extreme.rename(**{column: name})

    def variance(self, column: str, name: str | None = None) -> Collection:
        """Return the variance of a column, as float64: the mean of the squared distances to the mean."""
        type_ = self.collection.schema.type_of(column)
        if not type_.is_numeric:
            raise TypeMismatch(f"cannot take the variance of {column}", detail=f"It is {type_}.")
        return self._statistic(column, name, variance_of, FLOAT64)

    def median(self, column: str, name: str | None = None) -> Collection:
        """Return the median of a column: the value in the middle; of two, the greater one."""
        return self._statistic(column, name, median_of, self.collection.schema.type_of(column).optional(False))

    def _statistic(self, column: str, name: str | None, function: Callable[..., Any], type_: Type) -> Collection:
        inner = self.collection
        if inner.schema.type_of(column).nullable:
            inner = inner.filter(~ColumnReference(column).is_null())
            inner = inner.with_columns(**{column: ColumnReference(column).not_null()})
        return Group(inner.select(*self.keys, column), self.keys).reduce(function, **{name or column: type_})

    def argmin(self, column: str, *, hierarchical: bool = False) -> Collection:
        """Keep the row with the least value of a column; of several, the least by the other columns."""
        return self.first(1, column, hierarchical=hierarchical)

    def argmax(self, column: str, *, hierarchical: bool = False) -> Collection:
        """Keep the row with the greatest value of a column; of several, the least by the other columns."""
        return self.first(1, "-" + column, hierarchical=hierarchical)

    def top_k(self, k: int, by: str | tuple[str, ...]) -> Collection:
        """Keep the first k rows by some columns, equal rows counted by their multiplicity; "-column" is descending."""
        return self.first(k, *((by,) if isinstance(by, str) else by), copies=True)

    def first(self, limit: int, *by: str, copies: bool = False, hierarchical: bool = False) -> Collection:
        """Keep the first rows by some columns, a leading "-" for descending, ties broken by the other columns."""
        if limit < 1:
            raise BadPlan(f"the number of first rows must be at least 1, not {limit}")
        if limit > MAX:
            raise BadPlan(f"the number of first rows must be below 2^63, not {limit}")
        inner, keys = self.collection, self.keys
        order: dict[str, str] = {}
        for column in by:
            order.setdefault(column.removeprefix("-"), column)  # a repeated column decides nothing more
        inner.schema.select(order)
        by = tuple(column for name, column in order.items() if name not in keys)
        reduction = nodes.ReductionSpec("first", limit=limit, copies=copies, columns=by)
        if not hierarchical:
            return self._reduce(inner.schema.select([*keys, *_others(inner.schema, keys)]), reduction)
        columns = inner.schema.names
        for bits in BUCKET_BITS:
            hashed = inner.with_columns(**{" bucket": row_hash(columns) % (1 << bits)})
            winners = Group(hashed, (*keys, " bucket"))._reduce(
                hashed.schema.select([*keys, " bucket", *_others(inner.schema, keys)]), reduction
            )
            inner = winners.select(*columns)
        return Group(inner, keys).first(limit, *by, copies=copies)

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


def _others(schema: Schema, keys: tuple[str, ...]) -> list[str]:
    return [name for name in schema.names if name not in keys]


def row_hash(columns: tuple[str, ...]) -> Any:
    """Return an expression that hashes rows evenly to integers from 0 on."""
    mixed = ColumnReference(columns[0]).hash() % (1 << 31)
    for column in columns[1:]:
        mixed = (mixed * 31 + ColumnReference(column).hash() % (1 << 31)) % (1 << 31)
    return mixed
