"""SQL in a service: a session for each client, and tables and materialized views as relations of the service.

    sql.within(owner, function)              call a function with the session of that client
    sql.publish()                            make tables and views relations that rules, queries and interests read
    sql.followed()                           the cursors of SUBSCRIBE that clients read

Rules in Datalog and EDN read tables and views as they read base relations, through the same arrangements. Only SQL
changes a table, because only SQL checks its keys and constraints. In turn, SQL reads the relations that clients have
created, and does not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa

from kpg.api.contracts import Arrangement
from kpg.api.request_queue import RequestQueue
from kpg.columns.updates import Ints
from kpg.errors import InUse, NotSupported, TypeMismatch
from kpg.query.lower.value_expressions import kind_of_type
from kpg.service.base_relations import BaseRelation, Catalog
from kpg.service.planner import Planner
from kpg.service.relation_declarations import RelationDeclaration
from kpg.sql.catalog.database_catalog import catalog_of
from kpg.sql.catalog.open_snapshots import OpenSnapshots
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.session_cursors import ChangeCursor
from kpg.sql.session.sql_session import SqlSession
from kpg.sql.session.subscribe_changes import SqlSubscription

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Input


Result = TypeVar("Result")


def execute_text(session: SqlSession, text: str, parameters: Mapping[str, Any]) -> QueryResult:
    """Execute statements, and return the result of the last one."""
    result = session.execute(text, parameters)
    if not isinstance(result, QueryResult):
        result.close()
        hint = "DECLARE a cursor for it, or create a materialized view and follow it with an interest."
        raise NotSupported("SUBSCRIBE as a query", hint=hint)
    return result


class SqlRelation(BaseRelation):
    """A table or materialized view of SQL, which clients read and only SQL changes."""

    def __init__(self, db: Database, name: str, source: Input | Arrangement) -> None:
        pairs = zip(source.schema.names, source.schema.types, strict=True)
        self.db = db
        self.declaration = RelationDeclaration(
            name, tuple((column, kind_of_type(type_)) for column, type_ in pairs), "raw"
        )
        self.name = name
        self.schema = source.schema
        self._source = source

    @property
    def source(self) -> Input | Arrangement:
        return self._source

    @property
    def closed(self) -> bool:
        return False

    def look_up(
        self, columns: tuple[str, ...], rows: list[tuple[Any, ...]], as_of: int | None
    ) -> Callable[[], pa.Table] | None:
        if not isinstance(self._source, Arrangement):
            return self._source.look_up(columns, rows, as_of)
        return partial(self._source.lookup_many, rows, as_of) if self._source.keys == columns else None

    def encode(self, rows: Any) -> Ints:
        raise InUse(f"{self.name} belongs to SQL", hint="Change it with INSERT, UPDATE and DELETE.")

    def close(self) -> None:
        raise InUse(f"{self.name} belongs to SQL", hint="Only SQL changes it.")

    def drop(self) -> None:
        raise InUse(f"{self.name} belongs to SQL", hint="Use DROP TABLE or DROP MATERIALIZED VIEW.")


@dataclass(frozen=True, slots=True)
class FollowedCursor:
    """A cursor of SUBSCRIBE, and the client that reads it."""

    owner: Any
    name: str
    cursor: ChangeCursor

    @property
    def subscription(self) -> SqlSubscription:
        """The changes that it returns."""
        return self.cursor.subscription


class SqlRelations:
    """The SQL of one service."""

    def __init__(
        self,
        db: Database,
        catalog: Catalog,
        planner: Planner,
        before_drop: Callable[[Sequence[str]], None],
        new_number: Callable[[], int],  # of a query, by which administrators stop it
    ) -> None:
        self.db = db
        self._catalog = catalog
        self._planner = planner
        self._before_drop = before_drop
        self._new_number = new_number
        self._numbers: WeakKeyDictionary[SqlSubscription, int] = WeakKeyDictionary()
        self._sessions: dict[Any, SqlSession] = {}
        self._queues: dict[Any, RequestQueue] = {}  # of each client, whose statements run one after the other
        self._version = -1
        catalog_of(db).planning = partial(planner.limited, db)

    def within(self, owner: Any, function: Callable[[SqlSession], Result]) -> Result:
        """Call a function with the session of a client; then publish what it has defined."""
        session = self._sessions.get(owner)
        if session is None:
            session = self._sessions[owner] = SqlSession(
                self.db, False, self._is_foreign, self._require_droppable, self._planner.sql,
                advances_pending=True,  # arguments of other sessions wait for the next epoch, whichever it is
                takes_turns=True,
            )  # fmt: skip
            self._queues[owner] = RequestQueue(self.db.wait_for_future)
        with self._queues[owner].turn(), self.db.in_turns(), self._planner.serving(owner):
            try:
                return function(session)
            finally:
                self.publish()

    def _require_droppable(self, names: Sequence[str]) -> None:
        """Raise if SQL may not drop a name: it belongs to the service, or a rule or an interest reads it."""
        foreign = next((name for name in names if self._is_foreign(name)), None)
        if foreign is not None:
            error = InUse(f"{foreign} is not a table of SQL", hint="Drop it with drop_relation.")
            error.sqlstate = "42501"
            raise error
        self._before_drop(names)

    def require_unread(self, name: str) -> None:
        """Raise if a view of SQL reads a relation of the service, which is about to be dropped."""
        views = catalog_of(self.db).readers_of(name)
        if views:
            raise InUse(f"cannot drop {name!r}", detail=f"Read by: {', '.join(views)}.", hint="Drop those first.")

    def replan(self) -> None:
        """Let statements that were planned before relations were dropped be planned again."""
        catalog_of(self.db).version += 1

    def _is_foreign(self, name: str) -> bool:
        """Return whether a relation belongs to the service, so that SQL only reads it."""
        relation = self._catalog.relations.get(name)
        return relation is not None and not isinstance(relation, SqlRelation)

    @property
    def snapshots(self) -> OpenSnapshots:
        """The past that open transactions may read."""
        return catalog_of(self.db).snapshots

    def in_transaction(self, owner: Any) -> bool:
        """Whether the session of a client has an open transaction."""
        session = self._sessions.get(owner)
        return session is not None and session.transaction is not None

    def followed(self) -> dict[int, FollowedCursor]:
        """Return the cursors of SUBSCRIBE of all clients, by the numbers of their queries."""
        found: dict[int, FollowedCursor] = {}
        for owner, session in self._sessions.items():
            for name, cursor in session.cursors.of_changes():
                if cursor.subscription not in self._numbers:
                    self._numbers[cursor.subscription] = self._new_number()
                found[self._numbers[cursor.subscription]] = FollowedCursor(owner, name, cursor)
        return found

    def drop_owner(self, owner: Any) -> None:
        """End the session of a client; an open transaction is rolled back."""
        session = self._sessions.pop(owner, None)
        self._queues.pop(owner, None)
        if session is not None:
            session.close()

    def publish(self) -> None:
        """Make the tables and materialized views of the catalog relations of the service, and remove dropped ones."""
        sql = catalog_of(self.db)
        if sql.version == self._version:
            return
        self._version = sql.version
        tables = {name: self.db.inputs[name] for name in sql.tables}
        sources: dict[str, Any] = {name: table for name, table in tables.items() if table.keeps_rows}
        sources |= {name: view.arrangement for name, view in sql.installed.items()}
        for name, relation in tuple(self._catalog.relations.items()):
            if isinstance(relation, SqlRelation) and name not in sources:
                self._catalog.remove(name)
        for name, source in sources.items():
            self._publish(name, source)

    def _publish(self, name: str, source: Input | Arrangement) -> None:
        try:
            self._catalog.put(SqlRelation(self.db, name, source))
        except TypeMismatch:  # a type that rules do not have: the relation is there for SQL only
            self._catalog.remove(name)
