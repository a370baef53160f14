"""Changes of one table by one statement: rows that go and rows that come, checked before they are written.

    TableWrite(entry, removed, inserted)       Arrow tables with the columns of the table
    check_rows(session, change)                 NOT NULL and CHECK, for the rows that come
    existing_rows(session, entry, key, rows)    the present rows with the keys of some rows

Outside a transaction a change is one epoch; inside, the transaction keeps it until COMMIT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.pause_points import aside
from kpg.columns.updates import Ints
from kpg.errors import Closed, ConstraintViolation, InUse, UndefinedName
from kpg.sql.bind.bind_statements import NamedColumns, bind_scalar
from kpg.sql.catalog.entries import TableEntry, ViewEntry
from kpg.sql.catalog.system_columns import is_system
from kpg.sql.functions.text_output import show_value
from kpg.sql.parse.statement_parser import parse_expression
from kpg.sql.relational.scalars import Column
from kpg.sql.session import sql_errors
from kpg.sql.session.evaluate_rows import evaluate_scalars
from kpg.sql.session.row_tables import key_numbers, no_rows, repeated
from kpg.sql.session.sql_errors import sql_error

if TYPE_CHECKING:
    from kpg.columns.schema import Schema
    from kpg.sql.session.sql_session import SqlSession


Key: TypeAlias = tuple[str, ...]  # columns of a table


@dataclass(frozen=True, slots=True)
class TableWrite:
    """Rows that a statement removes from a table and rows that it inserts."""

    entry: TableEntry
    removed: pa.Table
    inserted: pa.Table


def schema_of_table(session: SqlSession, entry: TableEntry) -> Schema:
    """Return the engine's schema of a table."""
    return session.db.inputs[entry.name].schema


def named_like(entry: TableEntry, table: pa.Table) -> pa.Table:
    """Return rows with the column names of a table; all columns may be null until they are checked."""
    return pa.table(table.columns, names=[column.name for column in entry.columns])


def check_rows(session: SqlSession, entry: TableEntry, rows: pa.Table) -> None:
    """Raise if a row has null in a column that refuses it, or a check is false."""
    for column in entry.columns:
        if column.not_null and rows.column(column.name).null_count:
            at = int(np.argmax(pc.is_null(rows.column(column.name)).to_numpy()))
            raise sql_error(
                ConstraintViolation,
                sql_errors.NOT_NULL_VIOLATION,
                f'null in column "{column.name}" of {entry.name}, which is NOT NULL',
                detail=f"Failing row: {show_row(rows, at)}.",
            )
    if not entry.checks or not rows.num_rows:
        return
    schema = schema_of_table(session, entry)
    columns = tuple(Column(column.name, column.type) for column in entry.columns)
    scope = (NamedColumns(entry.name, columns),)
    conditions = [
        bind_scalar(parse_expression(text, name), scope, session.catalog, clause="check") for name, text in entry.checks
    ]
    results, _ = evaluate_scalars(session.db, conditions, columns, rows, schema)
    held: list[Any] = results.columns
    for (name, text), result in zip(entry.checks, held, strict=True):
        false = pc.fill_null(pc.invert(result), False)
        if pc.any(false).as_py():
            at = int(np.argmax(false.to_numpy()))
            raise sql_error(
                ConstraintViolation,
                sql_errors.CHECK_VIOLATION,
                f'a row of {entry.name} violates the check "{name}": {text}',
                detail=f"Failing row: {show_row(rows, at)}.",
            )


def existing_rows(session: SqlSession, entry: TableEntry, key: Key, rows: pa.Table) -> pa.Table:
    """Return the rows of a table whose key is that of one of some rows; those of the own transaction too."""
    schema = schema_of_table(session, entry)
    if not rows.num_rows:
        return no_rows(schema)
    keys = rows.select(list(key))
    present = no_rows(schema)
    if session.db.sealed is not None:
        present = session.catalog.key_index(entry.name, key).lookup_many(keys).select(list(schema.names))
    if session.transaction is None:
        return present
    return session.transaction.rows_with_keys(entry, key, present, keys)


def with_key(key: Key, rows: pa.Table) -> pa.Table:
    """Return the rows without null in a key: rows with null equal no others."""
    for name in key:
        if rows.column(name).null_count:
            rows = rows.filter(pc.is_valid(rows.column(name)))
    return rows


def check_keys(session: SqlSession, entry: TableEntry, inserted: pa.Table, removed: pa.Table) -> None:
    """Raise if a row that is inserted has a key of another, or of a present row that the change does not remove."""
    for key in entry.keys:
        check_key(session, entry, key, with_key(key, inserted), with_key(key, removed))


def check_key(session: SqlSession, entry: TableEntry, key: Key, inserted: pa.Table, removed: pa.Table) -> None:
    """Check one key."""
    if not inserted.num_rows:
        return
    schema = schema_of_table(session, entry)
    present = existing_rows(session, entry, key, inserted)
    if inserted.num_rows == 1 and not present.num_rows:
        return
    tables = [inserted, present, removed]
    new, old, gone = key_numbers(schema, tables, key, session.db.symbols)
    clash = repeated(new) | aside(len(new) + len(old), is_present, new, old, gone)
    if clash.any():
        raise duplicate_key(entry, key, inserted, int(np.argmax(clash)))


def is_present(new: Ints, old: Ints, gone: Ints) -> npt.NDArray[np.bool_]:
    """Return whether each number is among the old ones that are not gone."""
    return np.isin(new, np.setdiff1d(old, gone))


def duplicate_key(entry: TableEntry, key: Key, rows: pa.Table, at: int) -> ConstraintViolation:
    """Return the error for a row whose key is present."""
    values = rows.select(list(key)).slice(at, 1).to_pylist()[0].values()
    shown = ", ".join(show_value(value, "null") for value in values)
    return sql_error(
        ConstraintViolation,
        sql_errors.UNIQUE_VIOLATION,
        f"duplicate key in {entry.name}",
        detail=f"A row with ({', '.join(key)}) = ({shown}) is there already.",
        hint="INSERT … ON CONFLICT DO UPDATE replaces it, DO NOTHING keeps it.",
    )


def show_row(rows: pa.Table, at: int) -> str:
    """Return a row for a message."""
    values = rows.slice(at, 1).to_pylist()[0].values()
    return "(" + ", ".join(show_value(value, "null") for value in values) + ")"


def apply(session: SqlSession, change: TableWrite) -> None:
    """Write a change: as one epoch, or into the open transaction."""
    if session.transaction is not None:
        session.transaction.add(change)
    elif change.removed.num_rows or change.inserted.num_rows:
        write_changes(session, [change])


def write_changes(
    session: SqlSession, changes: Sequence[TableWrite], before: Callable[[], None] = lambda: None
) -> None:
    """Write changes as one epoch. They are encoded before, so that other requests may run until then.

    `before` is called when nothing can interrupt any more; it may raise.
    """
    encoded = [encode_change(session, change) for change in changes]
    with session.db.uninterrupted():
        for change in changes:
            require_same(session, change.entry)
        before()
        session.write(lambda: fill_all(encoded))


def fill_all(encoded: Sequence[Callable[[], None]]) -> None:
    """Pass encoded changes on."""
    for fill in encoded:
        fill()


def encode_change(session: SqlSession, change: TableWrite) -> Callable[[], None]:
    """Return a function that passes a change to the input of its table."""
    require_same(session, change.entry)
    source = session.db.inputs[change.entry.name]
    try:
        removed, inserted = source.encode_rows(change.removed), source.encode_rows(change.inserted)
    except Closed:  # the table was dropped while its rows were encoded
        require_same(session, change.entry)
        raise

    def fill() -> None:
        for data, diff in ((removed, -1), (inserted, 1)):
            if data.shape[1]:
                source.take_encoded(data, diff)

    return fill


def require_same(session: SqlSession, entry: TableEntry) -> None:
    """Raise if a table was dropped, or replaced by another, since a statement has looked it up."""
    if session.catalog.entry(entry.name) != entry:
        what = f"{entry.name} was dropped while the statement ran"
        raise sql_error(UndefinedName, sql_errors.UNDEFINED_TABLE, what)


def require_table(session: SqlSession, name: str) -> TableEntry:
    """Return the entry of a table to write; raise if there is none, or if it is a view."""
    entry = session.catalog.entry(name)
    if isinstance(entry, ViewEntry):
        raise sql_error(UndefinedName, sql_errors.WRONG_OBJECT_TYPE, f"{name} is a view", hint="Only tables take rows.")
    if entry is None:
        raise sql_error(UndefinedName, sql_errors.UNDEFINED_TABLE, f"there is no table {name!r}")
    if is_system(entry.name):
        what = f'permission denied: "{entry.name}" is a system catalog'
        raise sql_error(InUse, "42501", what, hint="Change what it describes with CREATE and DROP.")
    if session.is_foreign(name):
        raise sql_error(
            InUse, "42501", f"{name} is not a table of SQL", hint="Change it as its creator does, by transactions."
        )
    return entry
