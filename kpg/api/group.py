"""Groups: what can be computed of the rows with equal keys.

    orders.group_by("customer").sum("amount")
    orders.group_by("customer").top_k(3, by="-amount")

Each result is a collection: the keys, then what was computed. Counts and sums cost time in proportion to the change;
min, max and top_k in proportion to the groups that change, and with `hierarchical=True` to the logarithm of those.
A group with no rows has no result. Nulls are not counted in sums, averages, min and max.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kpg.columns.expression import ColumnReference
from kpg.columns.schema import FLOAT64, INT64, Schema, Type
from kpg.errors import BadPlan, TypeMismatch
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.api.collection import Collection

BUCKETS = (16, 8)  # bits of the hash that each level of a hierarchical reduction keeps


class Group:
    """The rows of a collection, by key."""

    def __init__(self, collection: Collection, keys: tuple[str, ...]) -> None:
        self.collection = collection
        self.keys = keys

    def count(self, name: str = "count") -> Collection:
        """How many rows each group has."""
        schema = self._keys().concat(Schema.of({name: INT64}))
        return self._reduce(schema, nodes.ReductionSpec("count"))

    def sum(self, /, *columns: str, **named: str) -> Collection:
        """The sum of each column: sum("amount") or sum(total="amount")."""
        asked = {column: column for column in columns} | named
        return self.aggregate(**{name: ("sum", column) for name, column in asked.items()})

    def avg(self, /, *columns: str, **named: str) -> Collection:
        """The mean of each column, a float64."""
        asked = {column: column for column in columns} | named
        return self.aggregate(**{name: ("avg", column) for name, column in asked.items()})

    def aggregate(self, /, **asked: tuple[str, str] | str) -> Collection:
        """Several at once: aggregate(n="count", total=("sum", "amount"), mean=("avg", "amount"))."""
        names: list[tuple[str, Type]] = []
        columns: list[str] = []
        for name, what in asked.items():
            kind, column = (what, "") if isinstance(what, str) else what
            names.append((name, self._type_of(kind, column)))
            columns.append(f"{kind}:{column}")
        if not names:
            raise BadPlan("aggregate() of nothing", hint='Say what, as in aggregate(total=("sum", "amount")).')
        schema = self._keys().concat(Schema.of(names))
        return self._reduce(schema, nodes.ReductionSpec("sums", columns=tuple(columns)))

    def _type_of(self, kind: str, column: str) -> Type:
        if kind == "count":
            return INT64
        if kind not in ("sum", "avg"):
            raise BadPlan(f"no aggregate is called {kind!r}", hint="There are count, sum and avg.")
        type_ = self.collection.schema.type_of(column)
        if not type_.is_numeric:
            raise TypeMismatch(f"cannot take the {kind} of {column}", detail=f"It is {type_}.")
        return type_ if kind == "sum" else FLOAT64.optional(type_.nullable)

    def min(self, column: str, name: str | None = None, *, hierarchical: bool = False) -> Collection:
        """The least value of a column."""
        return self._extreme(column, name, "", hierarchical)

    def max(self, column: str, name: str | None = None, *, hierarchical: bool = False) -> Collection:
        """The greatest value of a column."""
        return self._extreme(column, name, "-", hierarchical)

    def _extreme(self, column: str, name: str | None, sign: str, hierarchical: bool) -> Collection:
        inner = self.collection
        if inner.schema.type_of(column).nullable:
            inner = inner.filter(~ColumnReference(column).is_null())
        if set(inner.schema.names) != {*self.keys, column}:
            inner = inner.select(*self.keys, column)
        made = Group(inner, self.keys).first(1, sign + column, hierarchical=hierarchical)
        return made if name in (None, column) else made.rename(**{column: name})

    def argmin(self, column: str, *, hierarchical: bool = False) -> Collection:
        """The row with the least value of a column; of several, the least by the other columns."""
        return self.first(1, column, hierarchical=hierarchical)

    def argmax(self, column: str, *, hierarchical: bool = False) -> Collection:
        """The row with the greatest value of a column; of several, the least by the other columns."""
        return self.first(1, "-" + column, hierarchical=hierarchical)

    def top_k(self, k: int, by: str | tuple[str, ...]) -> Collection:
        """The first k rows by some columns, equal rows counted as often as they are there; "-column" is descending."""
        return self.first(k, *((by,) if isinstance(by, str) else by), copies=True)

    def first(self, limit: int, *by: str, copies: bool = False, hierarchical: bool = False) -> Collection:
        """The first rows by some columns, a leading "-" for descending, ties broken by the others."""
        if limit < 1:
            raise BadPlan("the first rows of a group are at least one")
        inner, keys = self.collection, self.keys
        order: dict[str, str] = {}
        for column in by:
            order.setdefault(column.removeprefix("-"), column)  # what comes again decides nothing more
        inner.schema.select(order)
        by = tuple(column for name, column in order.items() if name not in keys)
        reduction = nodes.ReductionSpec("first", limit=limit, copies=copies, columns=by)
        if not hierarchical:
            return self._reduce(inner.schema.select([*keys, *_others(inner.schema, keys)]), reduction)
        columns = inner.schema.names
        for bits in BUCKETS:
            hashed = inner.with_columns(**{" bucket": row_hash(columns) % (1 << bits)})
            winners = Group(hashed, (*keys, " bucket"))._reduce(
                hashed.schema.select([*keys, " bucket", *_others(inner.schema, keys)]), reduction
            )
            inner = winners.select(*columns)
        return Group(inner, keys).first(limit, *by, copies=copies)

    def reduce(self, function: Callable[[tuple[Any, ...], list[Any]], Any], **columns: Any) -> Collection:
        """Whatever `function(key, rows)` makes of a group; called once per group and time, so slow.

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
    """A whole number from 0 that spreads rows evenly."""
    mixed = ColumnReference(columns[0]).hash() % (1 << 31)
    for column in columns[1:]:
        mixed = (mixed * 31 + ColumnReference(column).hash() % (1 << 31)) % (1 << 31)
    return mixed
