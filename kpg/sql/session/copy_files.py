"""COPY: load a CSV, text or Parquet file into a table, or write a table or query to one.

A load is one epoch: all rows of the file, or none. A long load shows its progress on a terminal. Files are read and
written column by column (kpg/sql/session/copy_input.py, copy_output.py). A session of a server has no files
(`SqlSession.has_files`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kpg.columns.schema import Schema
from kpg.columns.table_rows import decode, encode
from kpg.errors import NotAuthorised, NotSupported, ProgramError, SchemaMismatch, Unavailable
from kpg.sql.bind.bind_context import Parameters
from kpg.sql.bind.bind_statements import bind_query
from kpg.sql.catalog.entries import TableColumn, TableEntry
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.parse.sql_statements import CopyStatement
from kpg.sql.relational.relations import Query
from kpg.sql.session import sql_errors
from kpg.sql.session.copy_input import read_columns
from kpg.sql.session.copy_options import CopyOptions
from kpg.sql.session.copy_output import text_column, write_text
from kpg.sql.session.insert_rows import fill_defaults
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.row_tables import no_rows
from kpg.sql.session.run_query import FetchedRows, fetch_query
from kpg.sql.session.select_rows import read_time, result_of
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.session.table_copies import scan_of
from kpg.sql.session.table_writes import (
    TableWrite,
    apply,
    check_keys,
    check_rows,
    require_table,
    schema_of_table,
)

if TYPE_CHECKING:
    from kpg.sql.session.sql_session import SqlSession


def copy(session: SqlSession, statement: CopyStatement, parameters: Parameters) -> QueryResult:
    """Carry out COPY."""
    options = CopyOptions(statement)
    if not session.has_files:
        raise sql_error(
            NotAuthorised,
            "42501",
            "a client of a server cannot COPY from or to the server's files",
            hint="Read the file on the client's side and send its rows.",
        )
    if options.format == "binary":
        what = "COPY of files in the binary format"
        raise sql_error(NotSupported, sql_errors.NOT_SUPPORTED, what, hint="Clients of PostgreSQL's protocol have it.")
    if statement.direction == "from":
        return load(session, statement)
    return store(session, statement, options, parameters)


# Loading


@dataclass(frozen=True, slots=True)
class CopyTarget:
    """The table and columns that COPY … FROM loads, and its options."""

    entry: TableEntry
    columns: list[TableColumn]
    options: CopyOptions


def copy_target(session: SqlSession, statement: CopyStatement) -> CopyTarget:
    """Return what COPY … FROM loads."""
    assert statement.table is not None
    entry = require_table(session, str(statement.table))
    columns = named_columns(entry, [str(name) for name in statement.columns])
    return CopyTarget(entry, columns, CopyOptions(statement))


def load(session: SqlSession, statement: CopyStatement) -> QueryResult:
    """Carry out COPY … FROM a file."""
    target = copy_target(session, statement)
    return load_file(session, target, local_file(statement), named=True)


def load_file(session: SqlSession, target: CopyTarget, path: str, *, named: bool = False) -> QueryResult:
    """Load a file of CSV, text or Parquet. Errors name the file only if the statement does."""
    shown = path if named else "STDIN"
    try:
        given = read_columns(session.db, path, target.entry.name, target.columns, target.options)
    except (pa.ArrowException, UnicodeDecodeError, LookupError) as error:
        raise sql_error(
            SchemaMismatch, sql_errors.BAD_COPY_FORMAT, f"cannot read {shown}", detail=str(error).split("\n")[0]
        ) from None
    except OSError as error:
        raise sql_error(Unavailable, "58P01", f"cannot read {shown}", detail=str(error)) from None
    return insert_given(session, target.entry, given)


def load_columns(session: SqlSession, target: CopyTarget, rows: list[tuple[Any, ...]]) -> QueryResult:
    """Load rows of values of the columns' types."""
    types = tuple(engine_type(column.type) for column in target.columns)
    schema = Schema(tuple(column.name for column in target.columns), types)
    symbols = session.db.symbols
    return insert_given(session, target.entry, decode(schema, encode(schema, rows, symbols), symbols))


def insert_given(session: SqlSession, entry: TableEntry, given: pa.Table) -> QueryResult:
    """Insert rows of some columns; the others have their defaults."""
    with session.writing([entry.name] if entry.keys else []):
        rows = fill_defaults(session, entry, given)
        check_rows(session, entry, rows)
        schema = schema_of_table(session, entry)
        check_keys(session, entry, rows, no_rows(schema))
        apply(session, TableWrite(entry, no_rows(schema), rows))
    return QueryResult(f"COPY {rows.num_rows}")


def named_columns(entry: TableEntry, names: list[str]) -> list[TableColumn]:
    """Return the columns of a table that COPY names, in that order; all if it names none."""
    if not names:
        return list(entry.columns)
    by_name = {column.name: column for column in entry.columns}
    missing = next((name for name in names if name not in by_name), None)
    if missing is not None:
        raise sql_error(ProgramError, sql_errors.UNDEFINED_COLUMN, f"{entry.name} has no column {missing!r}")
    return [by_name[name] for name in names]


def local_file(statement: CopyStatement) -> str:
    """Return the path of a file to copy from."""
    if statement.path is None:
        raise sql_error(
            NotSupported, sql_errors.NOT_SUPPORTED, "COPY FROM STDIN", hint="Name a file: COPY t FROM 'file.csv'."
        )
    return statement.path


# Storing


def store(session: SqlSession, statement: CopyStatement, options: CopyOptions, parameters: Parameters) -> QueryResult:
    """Carry out COPY … TO."""
    query = stored_query(session, statement, parameters)
    fetched = fetch_query(session.catalog, query)
    table = fetched.table.rename_columns(unique(query.names))
    try:
        if options.format == "parquet":
            pq.write_table(parquet_columns(session, query, fetched, table), required_path(statement))
        else:
            write_rows(session, query, fetched, statement.path, options)
    except OSError as error:
        raise sql_error(Unavailable, "58030", f"cannot write {statement.path}", detail=str(error)) from None
    return QueryResult(f"COPY {table.num_rows}")


def copied_rows(
    session: SqlSession, statement: CopyStatement, parameters: Parameters
) -> tuple[CopyOptions, QueryResult]:
    """Return the options of COPY … TO STDOUT, and the rows to send."""
    options = CopyOptions(statement)
    if options.format == "parquet":
        required_path(statement)
    query = stored_query(session, statement, parameters)
    session.check_reads(query.relation)
    return options, result_of(query, fetch_query(session.catalog, query, read_time(session, None, parameters)))


def stored_query(session: SqlSession, statement: CopyStatement, parameters: Parameters) -> Query:
    """Return the query whose rows COPY writes."""
    if statement.query is not None:
        return bind_query(statement.query, session.catalog, parameters, standing=False)
    assert statement.table is not None
    entry = session.catalog.entry(str(statement.table))
    if not isinstance(entry, TableEntry):
        raise sql_error(
            ProgramError,
            sql_errors.WRONG_OBJECT_TYPE,
            f"{statement.table} is not a table",
            hint=f"COPY (SELECT * FROM {statement.table}) TO …",
        )
    columns = tuple(named_columns(entry, [str(name) for name in statement.columns]))
    reduced = TableEntry(entry.name, columns)
    return Query(scan_of(reduced), tuple(column.name for column in columns))


def required_path(statement: CopyStatement) -> str:
    """Return the path to write to."""
    if statement.path is None:
        raise sql_error(NotSupported, sql_errors.NOT_SUPPORTED, "Parquet to STDOUT", hint="Name a file.")
    return statement.path


def parquet_columns(session: SqlSession, query: Query, fetched: FetchedRows, table: pa.Table) -> pa.Table:
    """Return rows whose intervals are text, since Parquet files of Arrow have no intervals of three parts."""
    for at, column in enumerate(query.relation.columns[: len(query.names)]):
        if column.type.name == "interval":
            text = text_column(session.db, fetched.table, fetched.schema, at, column.type)
            table = table.set_column(at, table.column_names[at], text)
    return table


def write_rows(session: SqlSession, query: Query, fetched: FetchedRows, path: str | None, options: CopyOptions) -> None:
    """Write rows as CSV or text to a file, or to standard output."""
    names, types = query.names, [column.type for column in query.relation.columns[: len(query.names)]]
    arguments = (session.db, fetched.table, fetched.schema, names, types)
    if path is None:
        write_text(*arguments, sys.stdout.buffer, options)
        return
    with open(path, "wb") as file:
        write_text(*arguments, file, options)


def unique(names: tuple[str, ...]) -> list[str]:
    """Return names for the columns of a file, all different."""
    result: list[str] = []
    for name in names:
        result.append(name if name not in result else f"{name}_{len(result) + 1}")
    return result
