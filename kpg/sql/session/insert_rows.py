"""INSERT: rows of VALUES or of a query, with defaults, identity numbers and ON CONFLICT.

Keys are looked up in the table's arrangement by its primary key, all rows of a statement together. The cost is that of
the new rows, of the present rows with their keys, and of one epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.schema import Schema
from kpg.columns.updates import Ints
from kpg.errors import ConstraintViolation, NotSupported
from kpg.sql.bind.bind_context import Parameters
from kpg.sql.bind.bind_statements import bind_insert, bind_scalar
from kpg.sql.bind.bound_changes import BoundConflict, BoundInsert, BoundReturning
from kpg.sql.catalog.entries import TableEntry
from kpg.sql.parse.sql_statements import InsertStatement
from kpg.sql.parse.statement_parser import parse_expression
from kpg.sql.relational.relations import Query
from kpg.sql.relational.scalars import Column
from kpg.sql.session import sql_errors
from kpg.sql.session.evaluate_rows import UNIT, evaluate_scalars
from kpg.sql.session.planned_version import planning
from kpg.sql.session.query_result import QueryResult, ResultColumn
from kpg.sql.session.row_tables import changed_before, key_numbers, no_rows, repeated
from kpg.sql.session.run_query import fetch_query
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.session.table_writes import (
    Key,
    TableWrite,
    apply,
    check_keys,
    check_rows,
    existing_rows,
    named_like,
    require_table,
    schema_of_table,
    with_key,
)

if TYPE_CHECKING:
    from kpg.sql.session.sql_session import SqlSession


def insert(session: SqlSession, statement: InsertStatement, parameters: Parameters) -> QueryResult:
    """Carry out INSERT. Without a key to check, it waits for no other statement that writes the table."""
    name = str(statement.table)
    with session.writing([name] if require_table(session, name).keys else []):
        return insert_rows(session, statement, parameters)


def insert_rows(session: SqlSession, statement: InsertStatement, parameters: Parameters) -> QueryResult:
    """Compute the rows to insert, check them, and write them."""
    with planning(session.catalog):
        bound = bind_insert(statement, session.catalog, parameters)
    entry = bound.table
    session.check_reads(bound.rows)
    names = tuple(column.name for column in entry.columns)
    fetched = fetch_query(session.catalog, Query(bound.rows, names, bound.order))
    rows = number_identities(session, bound, named_like(entry, fetched.table))
    change = resolve_conflicts(session, bound, rows)
    apply(session, change)
    tag = f"INSERT 0 {change.inserted.num_rows}"
    return returning_rows(session, tag, bound.returning, bound.written, entry, change.inserted)


# Identity columns


def number_identities(session: SqlSession, bound: BoundInsert, rows: pa.Table) -> pa.Table:
    """Fill identity columns that the statement does not give with the next numbers."""
    for at, (column, given) in enumerate(zip(bound.table.columns, bound.given, strict=True)):
        if column.identity is not None and not given:
            first = session.take_numbers(f"{bound.table.name}.{column.name}", rows.num_rows)
            numbers = pa.array(np.arange(first, first + rows.num_rows))
            rows = rows.set_column(at, column.name, numbers)
    return rows


def fill_defaults(session: SqlSession, entry: TableEntry, rows: pa.Table) -> pa.Table:
    """Return rows with all columns of a table: those that are missing get numbers, defaults or null."""
    columns = []
    for column in entry.columns:
        if column.name in rows.column_names:
            columns.append(rows.column(column.name))
        elif column.identity is not None:
            first = session.take_numbers(f"{entry.name}.{column.name}", rows.num_rows)
            columns.append(pa.chunked_array([np.arange(first, first + rows.num_rows)]))
        else:
            text = "null" if column.default is None else column.default
            tree = parse_expression(text, column.name)
            scalar = bind_scalar(tree, (), session.catalog, target=column.type, clause="default")
            unit = pa.table({"unit": np.zeros(rows.num_rows, np.int64)})
            columns.append(evaluate_scalars(session.db, [scalar], (), unit, UNIT)[0].column(0))
    return pa.table(columns, names=[column.name for column in entry.columns])


# Conflicts


def resolve_conflicts(session: SqlSession, bound: BoundInsert, rows: pa.Table) -> TableWrite:
    """Return what INSERT changes, by its ON CONFLICT clause."""
    entry, conflict = bound.table, bound.on_conflict
    schema = schema_of_table(session, entry)
    if conflict is not None and not entry.retained:
        raise sql_error(
            NotSupported,
            sql_errors.NOT_SUPPORTED,
            f"ON CONFLICT cannot find the rows of {entry.name}: it is a stream, whose rows are not kept",
        )
    check_rows(session, entry, rows)
    if conflict is None or not entry.keys:
        check_keys(session, entry, rows, no_rows(schema))
        return TableWrite(entry, no_rows(schema), rows)
    session.note_read(entry.name)
    if conflict.row is None:
        kept = without_conflicts(session, entry, conflict, rows)
        check_keys(session, entry, kept, no_rows(schema))
        return TableWrite(entry, no_rows(schema), kept)
    (key,) = [key for key in entry.keys if set(key) == set(conflict.target)][:1]
    present, new, old = with_present_rows(session, entry, key, rows)
    is_present = np.isin(new, old)
    order = np.argsort(old)
    matches = present.take(order[np.searchsorted(old[order], new[is_present])])
    updated, holds = update_matches(session, entry, conflict, matches, rows.filter(is_present))
    is_changed = ~is_present
    is_changed[is_present] = holds
    is_again = changed_before(new, is_changed)
    if is_again.any():
        resolve_conflicts(session, bound, rows.slice(0, int(is_again.argmax())))  # raises what an earlier row violates
        raise sql_error(
            ConstraintViolation,
            sql_errors.CARDINALITY_VIOLATION,
            "ON CONFLICT DO UPDATE would change a row a second time",
            hint="Make sure that the rows to insert have different keys.",
        )
    updated, removed = updated.filter(holds), matches.filter(holds)
    check_rows(session, entry, updated)
    inserted = pa.concat_tables([rows.filter(~is_present), updated])
    check_keys(session, entry, inserted, removed)
    return TableWrite(entry, removed, inserted)


def with_present_rows(session: SqlSession, entry: TableEntry, key: Key, rows: pa.Table) -> tuple[pa.Table, Ints, Ints]:
    """Return the present rows with a key of some rows, and a number for the key of each new and each present row.

    A row with null in the key has a number of its own.
    """
    schema = schema_of_table(session, entry)
    given = with_key(key, rows)
    present = existing_rows(session, entry, key, given)
    new, old = key_numbers(schema, [rows, present], key, session.db.symbols)
    if given.num_rows < rows.num_rows:
        null = np.zeros(rows.num_rows, np.bool_)
        for name in key:
            null |= pc.is_null(rows.column(name)).to_numpy()
        new = np.where(null, -1 - np.arange(rows.num_rows), new)
    return present, new, old


def without_conflicts(session: SqlSession, entry: TableEntry, conflict: BoundConflict, rows: pa.Table) -> pa.Table:
    """Return the rows whose keys are neither present nor those of an earlier row; of all keys, or of the target."""
    keys = [key for key in entry.keys if not conflict.target or set(key) == set(conflict.target)]
    free = np.ones(rows.num_rows, np.bool_)
    numbers = []
    for key in keys:
        _, new, old = with_present_rows(session, entry, key, rows)
        free &= ~np.isin(new, old)
        numbers.append(new)
    if len(keys) == 1:
        return rows.filter(free & ~repeated(np.where(free, numbers[0], np.iinfo(np.int64).min)))
    taken: list[set[int]] = [set() for _ in keys]
    for at in np.flatnonzero(free).tolist():  # whether a row is kept decides for later ones
        free[at] = not any(new[at] in known for new, known in zip(numbers, taken, strict=True))
        if free[at]:
            for new, known in zip(numbers, taken, strict=True):
                known.add(int(new[at]))
    return rows.filter(free)


def update_matches(
    session: SqlSession, entry: TableEntry, conflict: BoundConflict, present: pa.Table, excluded: pa.Table
) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Return what DO UPDATE makes of present rows, and whether its WHERE holds for each."""
    schema = schema_of_table(session, entry)
    both = Schema(
        tuple(f"{side} {name}" for side in ("present", "excluded") for name in schema.names), schema.types * 2
    )
    table = pa.table([*present.columns, *excluded.columns], names=list(both.names))
    columns = (*conflict.existing, *conflict.excluded)
    assert conflict.row is not None
    results, _ = evaluate_scalars(session.db, (*conflict.row, conflict.condition), columns, table, both)
    condition: Any = results.column(results.num_columns - 1)
    holds = pc.fill_null(condition, False).to_numpy(zero_copy_only=False).astype(np.bool_)
    return named_like(entry, results.select(range(len(schema)))), holds


# RETURNING


def returning_rows(
    session: SqlSession,
    tag: str,
    returning: BoundReturning | None,
    columns: tuple[Column, ...],
    entry: TableEntry,
    rows: pa.Table,
) -> QueryResult:
    """Return the result of a statement: its tag, and the rows of RETURNING if it has one."""
    if returning is None:
        return QueryResult(tag)
    table, schema = evaluate_scalars(session.db, returning.values, columns, rows, schema_of_table(session, entry))
    types = [value.type for value in returning.values]
    described = tuple(ResultColumn(name, type_) for name, type_ in zip(returning.names, types, strict=True))
    return QueryResult(tag, described, table.rename_columns(list(returning.names)), schema)
