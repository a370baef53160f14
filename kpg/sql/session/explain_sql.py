"""EXPLAIN: the algebra of a query after its rewrites, and the arrangements that its plan reads and keeps.

EXPLAIN of the name of a materialized view shows what is installed, with rows and bytes. EXPLAIN ANALYZE installs the
query for a moment, and shows the same for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.errors import NotSupported
from kpg.sql.bind.bind_context import Parameters
from kpg.sql.bind.bind_statements import bind_query
from kpg.sql.lower.lower_query import lower_query
from kpg.sql.parse.sql_statements import CreateView, ExplainStatement, QueryStatement
from kpg.sql.relational.relations import without_order
from kpg.sql.relational.show_relations import show_relation
from kpg.sql.session import sql_errors
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.run_query import CatalogSources
from kpg.sql.session.show_settings import texts
from kpg.sql.session.sql_errors import sql_error

if TYPE_CHECKING:
    from kpg.sql.session.sql_session import SqlSession


def explain(session: SqlSession, statement: ExplainStatement, parameters: Parameters) -> QueryResult:
    """Carry out EXPLAIN."""
    inner = statement.statement
    if not isinstance(inner, (QueryStatement, CreateView)):
        raise sql_error(
            NotSupported, sql_errors.NOT_SUPPORTED, "EXPLAIN of a statement that writes", hint="Explain its query."
        )
    query = without_order(bind_query(inner.query, session.catalog, parameters))
    lines = show_relation(query.relation).splitlines()
    collection = lower_query(session.db, query, CatalogSources(session.catalog))
    output = collection.output(keep=False)
    try:
        lines += ["", *output.explain().splitlines()]
    finally:
        output.release()
    return texts(["QUERY PLAN"], [(line,) for line in lines])
