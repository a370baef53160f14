"""The order of the rows of a group, and its first rows.

    by the given keys, then by all other columns in value order with nulls last

Lanes put nulls first in ascending and last in descending order. Where the order asks for the opposite, a hidden column
that tells whether the value is null comes before the value; keys that are expressions are hidden columns, too. Rows of
plain columns without null have no hidden columns, and their first rows are read from an existing index of that order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpg.columns.bind import bind
from kpg.columns.expression import ColumnReference, Expression, Named
from kpg.columns.lane_values import MAX
from kpg.columns.order_key import OrderBy, order_keys_of
from kpg.columns.schema import Schema
from kpg.errors import BadPlan, TypeMismatch
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.api.collection import Collection

BUCKET_BITS = (16, 8)  # bits of the row hash by which each level of a hierarchical reduction groups


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Columns to order by, a leading "-" for descending, and the hidden ones among them."""

    columns: tuple[str, ...]
    hidden: dict[str, Expression]


def order_of_keys(
    collection: Collection, keys: tuple[str, ...], by: Iterable[OrderBy], breaks_ties: bool = False
) -> RowOrder:
    """Return the order by some keys; columns of the group's key decide nothing, nor do repeated ones.

    Columns that break ties may have a type without an order: any fixed order of their values will do.
    """
    schema, symbols = collection.schema, collection.db.symbols
    columns: dict[str, str] = {}
    hidden: dict[str, Expression] = {}
    for index, key in enumerate(order_keys_of(by)):
        expression = key.expression.expression if isinstance(key.expression, Named) else key.expression
        bound = bind(expression, schema, symbols)
        if not breaks_ties and not bound.type.definition.is_ordered:
            hint = "Order by its span: kpg.interval_span(col(...))." if bound.type.kind == "interval" else None
            shown = expression.name if isinstance(expression, ColumnReference) else repr(expression)
            raise TypeMismatch(f"rows cannot be ordered by {shown}", detail=f"It is {bound.type}.", hint=hint)
        name = expression.name if isinstance(expression, ColumnReference) else f" order {index}"
        if name in keys or name in columns:
            continue
        if not isinstance(expression, ColumnReference):
            hidden[name] = expression
        if bound.type.nullable and key.descending != key.nulls_last:
            hidden[f" null {name}"] = expression.is_null()
            columns[f" null {name}"] = "-" if key.descending else ""
        columns[name] = "-" if key.descending else ""
    return RowOrder(tuple(sign + name for name, sign in columns.items()), hidden)


def order_of_rows(collection: Collection, keys: tuple[str, ...], by: Iterable[OrderBy]) -> RowOrder:
    """Return the order by some keys, with ties broken by all other columns, nulls last."""
    order = order_of_keys(collection, keys, by)
    taken = {column.removeprefix("-") for column in order.columns}
    rest = [name for name in collection.schema.names if name not in keys and name not in taken]
    if not order.hidden and not any(collection.schema.type_of(name).nullable for name in rest):
        return order
    ties = order_of_keys(collection, keys, rest, breaks_ties=True)
    return RowOrder(order.columns + ties.columns, order.hidden | ties.hidden)


def first_rows(
    collection: Collection,
    keys: tuple[str, ...],
    by: Iterable[OrderBy],
    limit: int | None,
    *,
    offset: int = 0,
    copies: bool = False,
    hierarchical: bool = False,
) -> Collection:
    """Keep the rows of each group at the positions [offset, offset + limit) of an order; without limit, the rest.

    Copies of a row count once, or, with `copies`, each of them.
    """
    if limit is not None and limit < 1:
        raise BadPlan(f"the number of first rows must be at least 1, not {limit}")
    if offset < 0:
        raise BadPlan(f"the offset of the first row must be at least 0, not {offset}")
    if offset + (limit or 0) > MAX:
        raise BadPlan(f"the number of first rows must be below 2^63, not {offset + (limit or 0)}")
    by = tuple(by)
    if limit is None:
        kept = collection if copies else collection.distinct()
    else:
        kept = _first(collection, keys, order_of_rows(collection, keys, by), limit + offset, copies, hierarchical)
    if not offset:
        return kept
    order = order_of_rows(kept, keys, by)
    return kept.subtract(_first(kept, keys, order, offset, copies, hierarchical and limit is None))


def _first(
    collection: Collection, keys: tuple[str, ...], order: RowOrder, limit: int, copies: bool, hierarchical: bool
) -> Collection:
    """Keep the first rows of each group; in rounds by ever fewer buckets if `hierarchical`."""
    columns = (*keys, *(name for name in collection.schema.names if name not in keys))
    spec = nodes.ReductionSpec("first", limit=limit, copies=copies, columns=order.columns)
    rows = collection.with_columns(**order.hidden) if order.hidden else collection
    for bits in BUCKET_BITS if hierarchical else ():
        bucketed = rows.with_columns(**{" bucket": row_hash(columns) % (1 << bits)})
        rows = _reduce(bucketed, (*keys, " bucket"), spec).select(*columns, *order.hidden)
    kept = _reduce(rows, keys, spec)
    return kept.select(*columns) if order.hidden else kept


def _reduce(rows: Collection, keys: tuple[str, ...], spec: nodes.ReductionSpec) -> Collection:
    schema: Schema = rows.schema.select([*keys, *(name for name in rows.schema.names if name not in keys)])
    return rows._make(nodes.ReduceNode(schema, rows.node.loops, rows.node, keys, spec))


def row_hash(columns: tuple[str, ...]) -> Any:
    """Return an expression that hashes rows evenly to integers from 0 on."""
    mixed = ColumnReference(columns[0]).hash() % (1 << 31)
    for column in columns[1:]:
        mixed = (mixed * 31 + ColumnReference(column).hash() % (1 << 31)) % (1 << 31)
    return mixed
