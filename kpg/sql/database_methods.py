"""The methods of a db that take SQL: `db.sql` and `db.query`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kpg.errors import ProgramError
from kpg.sql.catalog.definition_store import has_definitions
from kpg.sql.lower.lower_query import lower_query
from kpg.sql.lower.plan_settings import using_settings
from kpg.sql.parse.sql_statements import QueryStatement
from kpg.sql.relational.relations import without_order
from kpg.sql.session.bound_queries import bound_query
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.run_query import CatalogSources
from kpg.sql.session.sql_session import parse_cached, session_of
from kpg.sql.session.subscribe_changes import SqlSubscription

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.api.contracts import Database


def restore(db: Database) -> bool:
    """Carry out the definitions of a directory, if it has some that were not yet; return whether it has any."""
    return has_definitions(db) and bool(session_of(db).catalog.store.definitions)


def execute(
    db: Database, text: str, values: Sequence[Any], parameters: Mapping[str, Any]
) -> QueryResult | SqlSubscription:
    """Execute statements in the session of the db; return the result of the last one."""
    return session_of(db).execute(text, numbered(values) | dict(parameters))


def collection_of(db: Database, text: str, values: Sequence[Any], parameters: Mapping[str, Any]) -> Collection:
    """Return the collection of a query."""
    session = session_of(db)
    catalog = session.catalog
    parsed = parse_cached(text, "query")
    if len(parsed) != 1 or not isinstance(parsed[0], QueryStatement) or parsed[0].as_of is not None:
        raise ProgramError("db.query takes one SELECT, VALUES, TABLE or WITH", hint="Use db.sql for other statements.")
    query = without_order(bound_query(catalog, parsed[0].query, numbered(values) | dict(parameters)))
    with using_settings(session.settings):
        return lower_query(db, query, CatalogSources(catalog))


def numbered(values: Sequence[Any]) -> dict[str, Any]:
    """Return the values of $1, $2, … by their numbers."""
    return {str(number): value for number, value in enumerate(values, 1)}
