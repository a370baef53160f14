"""SELECT, VALUES, TABLE and WITH: run a query once and return its rows in its order.

Bound queries are kept by their texts (kpg/sql/session/bound_queries.py), since applications repeat theirs.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from kpg.errors import ProgramError
from kpg.sql.bind.bind_context import Parameters
from kpg.sql.bind.bind_statements import bind_scalar
from kpg.sql.catalog.system_columns import is_system
from kpg.sql.parse.sql_statements import QueryStatement, SyntaxTree
from kpg.sql.relational.relations import Query
from kpg.sql.session import sql_errors
from kpg.sql.session.bound_queries import bound_query
from kpg.sql.session.evaluate_rows import evaluate_one
from kpg.sql.session.planned_version import planning
from kpg.sql.session.query_result import QueryResult, ResultColumn
from kpg.sql.session.relation_reads import scanned_names
from kpg.sql.session.run_query import FetchedRows, fetch_query
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.sql_types import BIGINT

if TYPE_CHECKING:
    from kpg.api.contracts import Database
    from kpg.sql.session.sql_session import SqlSession


def select(session: SqlSession, statement: QueryStatement, parameters: Parameters) -> QueryResult:
    """Carry out a query."""
    with planning(session.catalog):
        query = bound_query(session.catalog, statement.query, parameters, standing=False)
    session.check_reads(query.relation)
    as_of = read_time(session, statement.as_of, parameters)
    names = scanned_names(query.relation)
    if statement.as_of is not None or not names or not all(map(is_system, names)):
        return result_of(query, fetch_query(session.catalog, query, as_of))
    with catalog_limits(session.db):
        return result_of(query, fetch_query(session.catalog, query))


def catalog_limits(db: Database) -> AbstractContextManager[None]:
    """Return a block for queries of pg_catalog, which is read as of now, also in a transaction.

    They join relations that are small, in ways that are estimated as products of large ones.
    """
    admission = getattr(db, "admission", None)
    return nullcontext() if admission is None else admission.using(replace(admission.current, product_rows=None))


def result_of(query: Query, fetched: FetchedRows) -> QueryResult:
    """Return the rows of a query with its names and types."""
    pairs = zip(query.names, query.relation.columns, strict=False)  # further columns serve the order only
    columns = tuple(ResultColumn(name, column.type) for name, column in pairs)
    table = fetched.table.rename_columns(list(query.names))
    return QueryResult(f"SELECT {table.num_rows}", columns, table, fetched.schema)


def read_time(session: SqlSession, as_of: SyntaxTree | None, parameters: Parameters) -> int | None:
    """Return the epoch that a read sees: that of AS OF, or of the open transaction; None for the last one."""
    if as_of is not None:
        return epoch_of(session, as_of, parameters)
    transaction = session.transaction
    if transaction is None:
        session.require_no_pending_rows()
        return None
    return transaction.as_of


def epoch_of(session: SqlSession, tree: SyntaxTree, parameters: Parameters) -> int:
    """Return the epoch that an expression of AS OF or UP TO names."""
    scalar = bind_scalar(tree, (), session.catalog, parameters, target=BIGINT, clause="as of")
    epoch = evaluate_one(session.db, scalar)
    if not isinstance(epoch, int):
        raise sql_error(ProgramError, sql_errors.INVALID_PARAMETER, "AS OF needs an epoch", hint="Write a number.")
    return epoch
