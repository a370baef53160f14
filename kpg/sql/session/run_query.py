"""Run bound queries once: install, read, release. One-off queries have the plans and the meaning of standing views.

A query reads the arrangements that exist, so its cost is that of its own operators. Its rows come back as an Arrow
table with the columns of the query, in their order. `ORDER BY` is applied here, since a collection has no order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.building_turns import building_in_turns
from kpg.columns.pause_points import aside
from kpg.columns.schema import Schema
from kpg.errors import DataError, KpgError, TimeNotReached, TimeTooEarly, TooManyRounds
from kpg.sql.functions.row_failures import state_of_reason
from kpg.sql.lower.lower_query import lower_query
from kpg.sql.relational.relations import BoundRelation, Project, Query, without_order
from kpg.sql.relational.scalars import Column, ColumnValue, SortKey
from kpg.sql.session.evaluate_rows import constant_rows
from kpg.sql.session.key_lookups import looked_up_rows
from kpg.sql.session.planned_version import planning, require_planned_version
from kpg.sql.session.sql_errors import INVALID_PARAMETER
from kpg.sql.session.volatile_rows import projected, split_volatile
from kpg.sql.sql_states import with_sqlstate

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.sql.catalog.database_catalog import DatabaseCatalog

PROGRAM_LIMIT_EXCEEDED = "54000"  # the SQLSTATE of a recursion that does not end
Replacements = Mapping[str, "Collection"]  # what a scan of a name reads instead of the relation of that name


class CatalogSources(Mapping[str, "Collection"]):
    """The collections that queries read, by the names of the catalog."""

    def __init__(self, catalog: DatabaseCatalog, replacing: Replacements | None = None) -> None:
        self._catalog = catalog
        self._replacing = replacing or {}

    def __getitem__(self, name: str) -> Collection:
        return self._replacing[name] if name in self._replacing else self._catalog.relation(name)

    def key_of(self, name: str) -> tuple[str, ...]:
        """Return the primary key of a table that SQL created; a key that Python declared is not checked."""
        entry = self._catalog.tables.get(name)
        return () if entry is None else entry.primary_key

    def __iter__(self) -> Iterator[str]:
        return self._catalog.relation_names()

    def __len__(self) -> int:
        return len(list(self._catalog.relation_names()))


@dataclass(frozen=True, slots=True)
class FetchedRows:
    """Rows of a relation, and the engine's schema of their columns; both in the order of the relation's columns."""

    table: pa.Table
    schema: Schema


def fetch_relation(
    catalog: DatabaseCatalog, relation: BoundRelation, as_of: int | None = None, replacing: Replacements | None = None
) -> FetchedRows:
    """Return the rows of a relation now, or as of an epoch, in any order."""
    constants = constant_rows(catalog.db, relation)
    if constants is not None:
        return FetchedRows(*constants)
    rows, projections = split_volatile(relation)
    fetched = fetch_rows(catalog, rows, as_of, replacing)
    return FetchedRows(*projected(catalog.db, fetched.table, fetched.schema, projections))


def fetch_rows(
    catalog: DatabaseCatalog, relation: BoundRelation, as_of: int | None = None, replacing: Replacements | None = None
) -> FetchedRows:
    """Return the rows of a relation that has no volatile functions in its lists."""
    db = catalog.db
    try:
        in_hand = None if replacing else looked_up_rows(catalog, relation, as_of)
    except (TimeNotReached, TimeTooEarly) as error:
        raise unreadable_epoch(error, as_of) from None
    if in_hand is not None:
        return FetchedRows(*in_hand)
    if db.sealed is None:
        db.advance(wait=not db.answers_lag)
    named = Query(relation, tuple(f"column {at}" for at in range(len(relation.columns))))
    with planning(catalog):
        plan = lower_query(db, named, CatalogSources(catalog, replacing))
    require_planned_version(catalog)
    with building_in_turns():
        output = plan.output()
    try:
        return FetchedRows(output.snapshot(as_of), output.schema)
    except DataError as error:
        raise failed_query(error, output.name) from None
    except (TimeNotReached, TimeTooEarly) as error:
        raise unreadable_epoch(error, as_of) from None
    except TooManyRounds as error:
        raise with_sqlstate(PROGRAM_LIMIT_EXCEEDED, error) from None
    finally:
        output.release()


def unreadable_epoch(error: KpgError, as_of: int | None) -> KpgError:
    """Return the error of AS OF an epoch that is not complete yet, or that the db does not keep any more."""
    if isinstance(error, TimeNotReached):
        failure: KpgError = TimeNotReached(f"epoch {as_of} is not complete yet", detail=error.detail, hint=error.hint)
    else:
        hint = "kpg.open(history=N) keeps the last N epochs."
        failure = TimeTooEarly(f"the db does not keep epoch {as_of} any more", detail=error.detail, hint=hint)
    return with_sqlstate(INVALID_PARAMETER, failure)


def failed_query(error: DataError, name: str) -> DataError:
    """Return the error of a query that fails on a row, with its SQLSTATE and without the name of its output.

    A view that the query reads keeps its name in the message.
    """
    begins = error.what.startswith(f"{name} has no answer")
    what = error.what.partition(": ")[2] if begins else error.what
    hint = "Correct the row, or exclude it by another condition."
    return with_sqlstate(state_of_reason(error.what), DataError(what, detail=error.detail, hint=hint))


def fetch_query(
    catalog: DatabaseCatalog, query: Query, as_of: int | None = None, replacing: Replacements | None = None
) -> FetchedRows:
    """Return the rows of a query in its order; ties go by all columns."""
    if not query.order:
        return fetch_relation(catalog, without_order(query).relation, as_of, replacing)
    relation, keys = with_sort_columns(query)
    rows, projections = split_volatile(relation)
    early = [sort_position(projections, rows, key.position) for key in keys]
    if None in early:  # an order by a volatile value
        rows, projections, early = relation, [], [key.position for key in keys]
        fetched = fetch_relation(catalog, rows, as_of, replacing)
    else:
        fetched = fetch_rows(catalog, rows, as_of, replacing)
    order = [replace(key, position=at) for key, at in zip(keys, early, strict=True) if at is not None]
    ordered = sort_table(fetched.table, order)
    table, schema = projected(catalog.db, ordered, fetched.schema, projections)
    width = len(query.names)
    return FetchedRows(table.select(range(width)), schema.select(schema.names[:width]))


def sort_position(projections: list[Project], rows: BoundRelation, position: int) -> int | None:
    """Return the column of rows that projections pass on as theirs at a position, None if they compute it."""
    for projection in reversed(projections):
        value = projection.values[position]
        if not isinstance(value, ColumnValue):
            return None
        position = projection.input.columns.index(value.column)
    return position


@dataclass(frozen=True, slots=True)
class TableOrder:
    """One key of the order of a table: the position of a column."""

    position: int
    descending: bool
    nulls_first: bool


def with_sort_columns(query: Query) -> tuple[BoundRelation, list[TableOrder]]:
    """Return the relation with a further column for each sort key that is not a column, and the order."""
    columns = list(query.relation.columns)
    values: list[Any] = [ColumnValue(column, type=column.type) for column in columns]
    order = []
    for key in query.order:
        order.append(TableOrder(_position(key, columns, values), key.descending, key.nulls_first))
    if len(columns) == len(query.relation.columns):
        return query.relation, order
    return Project(tuple(columns), query.relation, tuple(values)), order


def _position(key: SortKey, columns: list[Column], values: list[Any]) -> int:
    if isinstance(key.value, ColumnValue) and key.value.column in columns:
        return columns.index(key.value.column)
    columns.append(Column(f"sort key {len(columns)}", key.value.type))
    values.append(key.value)
    return len(columns) - 1


def sort_table(table: pa.Table, order: list[TableOrder]) -> pa.Table:
    """Return a table in an order; rows that it does not distinguish go by all columns, nulls last."""
    keyed = {key.position for key in order}
    rest = [TableOrder(at, False, False) for at in range(table.num_columns) if at not in keyed]
    arrays: list[Any] = []
    directions: list[Any] = []
    for key in [*order, *rest]:
        column = sortable(table.column(key.position))
        if column.null_count:
            arrays.append(pc.is_null(column))
            directions.append("descending" if key.nulls_first else "ascending")
        arrays.append(column)
        directions.append("descending" if key.descending else "ascending")
    if not arrays:
        return table
    names = [str(at) for at in range(len(arrays))]
    keys = pa.table(arrays, names=names)
    return aside(table.num_rows * len(names), take_sorted, table, keys, list(zip(names, directions, strict=True)))


def take_sorted(table: pa.Table, keys: pa.Table, order: list[Any]) -> pa.Table:
    """Return the rows of a table in the order of some keys."""
    return table.take(pc.sort_indices(keys, sort_keys=order))


def sortable(column: Any) -> Any:
    """Return a column that Arrow can sort, in the order of the values."""
    if isinstance(column.type, pa.BaseExtensionType):
        storage: Any = column.type.storage_type
        return pa.chunked_array([chunk.storage for chunk in column.chunks], storage)
    if pa.types.is_nested(column.type):
        return ranks_of(column, order_of_array)
    return ranks_of(column, order_of_interval) if column.type == pa.month_day_nano_interval() else column


def ranks_of(column: Any, order: Callable[[Any], Any]) -> Any:
    """Return the rank of each value among the distinct values of a column that Arrow cannot sort; null stays null."""
    keys = [None if value is None else order(value) for value in column.to_pylist()]
    ranks = {key: rank for rank, key in enumerate(sorted({key for key in keys if key is not None}))}
    return pa.chunked_array([pa.array([None if key is None else ranks[key] for key in keys], pa.int64())])


def order_of_array(values: list[Any]) -> tuple[Any, ...]:
    """Return a key that orders arrays as PostgreSQL does: element by element, nulls last."""
    return tuple((value is None, 0 if value is None else value) for value in values)


def order_of_interval(value: Any) -> int:
    """Return the span of an interval in nanoseconds: a month is 30 days, and a day 24 hours."""
    return int((value.months * 30 + value.days) * 86_400_000_000_000 + value.nanoseconds)
