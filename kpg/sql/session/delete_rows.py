"""DELETE and TRUNCATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kpg.errors import NotSupported
from kpg.sql.bind.bind_context import Parameters
from kpg.sql.bind.bind_statements import bind_delete
from kpg.sql.parse.sql_statements import DeleteStatement, TruncateStatement
from kpg.sql.session import sql_errors
from kpg.sql.session.planned_version import planning
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.returned_rows import returned_rows
from kpg.sql.session.row_tables import key_numbers, no_rows, repeat
from kpg.sql.session.run_query import FetchedRows
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.session.sql_transaction import fetch_target_rows
from kpg.sql.session.table_copies import copies_of, scan_of
from kpg.sql.session.table_writes import TableWrite, apply, named_like, require_table, schema_of_table, write_changes

if TYPE_CHECKING:
    from kpg.sql.session.sql_session import SqlSession


def delete(session: SqlSession, statement: DeleteStatement, parameters: Parameters) -> QueryResult:
    """Carry out DELETE."""
    name = str(statement.table)
    with session.writing([require_table(session, name).name]):
        return delete_rows(session, statement, parameters)


def delete_rows(session: SqlSession, statement: DeleteStatement, parameters: Parameters) -> QueryResult:
    """Compute the rows that go, and write them."""
    with planning(session.catalog):
        bound = bind_delete(statement, session.catalog, parameters)
    entry, width = bound.table, len(bound.old)
    fetched = fetch_target_rows(session, bound.rows, entry)
    schema = schema_of_table(session, entry)
    if statement.sources and fetched.table.num_rows:  # a row may match several rows of USING: it goes once
        named = named_like(entry, fetched.table.select(range(width)))
        (numbers,) = key_numbers(schema, [named], schema.names, session.db.symbols)
        first = np.sort(np.unique(numbers, return_index=True)[1])
        once = fetched.table.take(first)
        if not entry.primary_key:
            once = repeat(once, copies_of(session, entry, named.take(first)))
        fetched = FetchedRows(once, fetched.schema)
    old = named_like(entry, fetched.table.select(range(width)))
    apply(session, TableWrite(entry, old, no_rows(schema)))
    return returned_rows(f"DELETE {old.num_rows}", bound.returning, bound.rows, fetched, width)


def truncate(session: SqlSession, statement: TruncateStatement) -> QueryResult:
    """Carry out TRUNCATE: remove all rows of some tables."""
    session.require_outside_transaction("TRUNCATE")
    if statement.cascade:
        raise sql_error(NotSupported, sql_errors.NOT_SUPPORTED, "TRUNCATE … CASCADE: there are no foreign keys")
    entries = [require_table(session, str(name)) for name in statement.tables]
    with session.writing(entry.name for entry in entries):
        tables = [fetch_target_rows(session, scan_of(entry), entry).table for entry in entries]
        changes = [
            TableWrite(entry, named_like(entry, table), no_rows(schema_of_table(session, entry)))
            for entry, table in zip(entries, tables, strict=True)
        ]

        def restart() -> None:
            for entry in entries if statement.restart_identity else ():
                session.restart_numbers(entry)

        write_changes(session, changes, restart)
    return QueryResult("TRUNCATE TABLE")
