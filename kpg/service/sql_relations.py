"""SQL in a service: a session for each client, and tables and materialized views as relations of the service.

    sql.execute(owner, text, parameters)     in the session of that client
    sql.publish()                            make tables and views relations that rules, queries and interests read

Rules in Datalog and EDN read tables and views as they read base relations, through the same arrangements. Only SQL
changes a table, because only SQL checks its keys and constraints. In turn, SQL reads the relations that clients have
created, and does not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kpg.api.embedded_arrangement import EmbeddedArrangement
from kpg.api.embedded_stream import EmbeddedStream
from kpg.columns.schema import Schema
from kpg.columns.updates import Ints
from kpg.errors import InUse, NotSupported, TypeMismatch
from kpg.query.lower.value_expressions import kind_of_type
from kpg.service.base_relations import BaseRelation, Catalog
from kpg.service.planner import Planner
from kpg.service.relation_declarations import RelationDeclaration
from kpg.sql.catalog.database_catalog import catalog_of
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.sql_session import SqlSession

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.installed_arrangement import InstalledArrangement


class ViewSource:
    """A materialized view as a source of arrangements, for queries that are built on it."""

    closed = False

    def __init__(self, arrangement: EmbeddedArrangement) -> None:
        self._arrangement = arrangement

    @property
    def size(self) -> int:
        """The approximate row count."""
        return self._arrangement.rows

    def base(self) -> InstalledArrangement:
        """Return the arrangement that holds the rows."""
        return self._arrangement.installed

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return the arrangement of the view if it is by these columns."""
        return self._arrangement.installed.arranged_by(keys)

    def arrange(self, *keys: str) -> EmbeddedArrangement:
        """Install an arrangement by these columns."""
        arrangement = self._arrangement.arrange(*keys)
        assert isinstance(arrangement, EmbeddedArrangement)
        return arrangement


class SqlRelation(BaseRelation):
    """A table or materialized view of SQL, which clients read and only SQL changes."""

    def __init__(self, db: EmbeddedDatabase, name: str, schema: Schema, source: Any) -> None:
        pairs = zip(schema.names, schema.types, strict=True)
        self.db = db
        self.declaration = RelationDeclaration(
            name, tuple((column, kind_of_type(type_)) for column, type_ in pairs), "raw"
        )
        self.name = name
        self.schema = schema
        self.input = source

    def encode(self, rows: Any) -> Ints:
        raise InUse(f"{self.name} belongs to SQL", hint="Change it with INSERT, UPDATE and DELETE.")


class SqlRelations:
    """The SQL of one service."""

    def __init__(
        self, db: EmbeddedDatabase, catalog: Catalog, planner: Planner, before_drop: Callable[[Sequence[str]], None]
    ) -> None:
        self.db = db
        self._catalog = catalog
        self._planner = planner
        self._before_drop = before_drop
        self._sessions: dict[Any, SqlSession] = {}
        self._version = -1

    def execute(self, owner: Any, text: str, parameters: Mapping[str, Any]) -> QueryResult:
        """Execute statements in the session of a client, and return the result of the last one."""
        session = self._sessions.get(owner)
        if session is None:
            session = self._sessions[owner] = SqlSession(
                self.db, False, self._is_foreign, self._require_droppable, self._planner.sql
            )
        try:
            result = session.execute(text, parameters)
        finally:
            self.publish()
        if not isinstance(result, QueryResult):
            result.close()
            raise NotSupported(
                "SUBSCRIBE as a query", hint="Create a materialized view, and follow it with an interest."
            )
        return result

    def _require_droppable(self, names: Sequence[str]) -> None:
        """Raise if SQL may not drop a name: it belongs to the service, or a rule or an interest reads it."""
        foreign = next((name for name in names if self._is_foreign(name)), None)
        if foreign is not None:
            error = InUse(f"{foreign} is not a table of SQL", hint="Drop it as its creator does.")
            error.sqlstate = "42501"
            raise error
        self._before_drop(names)

    def _is_foreign(self, name: str) -> bool:
        """Return whether a relation belongs to the service, so that SQL only reads it."""
        relation = self._catalog.relations.get(name)
        return relation is not None and not isinstance(relation, SqlRelation)

    def drop_owner(self, owner: Any) -> None:
        """End the session of a client; an open transaction is rolled back."""
        session = self._sessions.pop(owner, None)
        if session is not None and session.transaction is not None:
            session.execute("ROLLBACK")

    def publish(self) -> None:
        """Make the tables and materialized views of the catalog relations of the service, and remove dropped ones."""
        sql = catalog_of(self.db)
        if sql.version == self._version:
            return
        self._version = sql.version
        sources: dict[str, Any] = {name: self.db.inputs[name] for name in sql.tables}
        sources |= {name: view.arrangement for name, view in sql.installed.items()}
        for name, relation in tuple(self._catalog.relations.items()):
            if isinstance(relation, SqlRelation) and name not in sources:
                del self._catalog.relations[name]
        for name, source in sources.items():
            if not isinstance(source, EmbeddedStream):
                self._publish(name, source)

    def _publish(self, name: str, source: Any) -> None:
        held = ViewSource(source) if isinstance(source, EmbeddedArrangement) else source
        try:
            self._catalog.relations[name] = SqlRelation(self.db, name, source.schema, held)
        except TypeMismatch:  # a type that rules do not have: the relation is there for SQL only
            self._catalog.relations.pop(name, None)
