"""UPDATE: replace the rows of a table on which a condition holds. One row may match one row of FROM only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kpg.errors import ConstraintViolation
from kpg.sql.bind.bind_context import Parameters
from kpg.sql.bind.bind_statements import bind_update
from kpg.sql.catalog.entries import TableEntry
from kpg.sql.parse.sql_statements import UpdateStatement
from kpg.sql.session import sql_errors
from kpg.sql.session.planned_version import planning
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.returned_rows import returned_rows
from kpg.sql.session.row_tables import key_numbers, repeated
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.session.sql_transaction import fetch_target_rows
from kpg.sql.session.table_copies import copies_of
from kpg.sql.session.table_writes import (
    TableWrite,
    apply,
    check_keys,
    check_rows,
    named_like,
    require_table,
    schema_of_table,
    show_row,
)

if TYPE_CHECKING:
    from kpg.sql.session.sql_session import SqlSession


def update(session: SqlSession, statement: UpdateStatement, parameters: Parameters) -> QueryResult:
    """Carry out UPDATE."""
    name = str(statement.table)
    with session.writing([require_table(session, name).name]):
        return update_rows(session, statement, parameters)


def update_rows(session: SqlSession, statement: UpdateStatement, parameters: Parameters) -> QueryResult:
    """Compute the rows that go and come, check them, and write them."""
    with planning(session.catalog):
        bound = bind_update(statement, session.catalog, parameters)
    entry, width = bound.table, len(bound.old)
    fetched = fetch_target_rows(session, bound.rows, entry)
    old = named_like(entry, fetched.table.select(range(width)))
    new = named_like(entry, fetched.table.select(range(width, 2 * width)))
    if statement.sources:
        require_single_matches(session, entry, old)
    check_rows(session, entry, new)
    check_keys(session, entry, new, old)
    apply(session, TableWrite(entry, old, new))
    return returned_rows(f"UPDATE {new.num_rows}", bound.returning, bound.rows, fetched, 2 * width)


def require_single_matches(session: SqlSession, entry: TableEntry, old: pa.Table) -> None:
    """Raise if a row of the table is there more often than the table has it: it matched several rows of FROM."""
    if not old.num_rows:
        return
    schema = schema_of_table(session, entry)
    keys = entry.primary_key or schema.names
    (numbers,) = key_numbers(schema, [old], keys, session.db.symbols)
    again = repeated(numbers)
    if again.any() and not entry.primary_key:
        first = np.unique(numbers, return_index=True)[1]
        distinct = old.take(first)
        again = np.bincount(numbers)[numbers] > copies_of(session, entry, distinct)[numbers]
    if again.any():
        raise sql_error(
            ConstraintViolation,
            sql_errors.CARDINALITY_VIOLATION,
            f"a row of {entry.name} matches several rows of FROM",
            detail=f"It is {show_row(old, int(np.argmax(again)))}.",
            hint="Join with rows that are unique for each row of the table.",
        )
