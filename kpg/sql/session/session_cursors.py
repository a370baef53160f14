"""Cursors of a session: the rows of a query, or the changes of a subscription, fetched some at a time.

    DECLARE c CURSOR FOR SUBSCRIBE totals;   FETCH 100 FROM c;   CLOSE c

A cursor of a query holds its rows as of its declaration. A cursor of SUBSCRIBE has the columns `epoch` and `diff`
before those of its query, with PROGRESS also `progressed`; FETCH returns the changes that are ready. A cursor that was
declared in a transaction ends with it, unless WITH HOLD. One declared outside a transaction stays until CLOSE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kpg.columns.schema import BOOL, INT64, Schema
from kpg.columns.table_rows import decode, encode
from kpg.errors import OverLimit, ProgramError, UndefinedName
from kpg.sql.bind.bind_context import Parameters
from kpg.sql.parse.sql_statements import CloseCursor, DeclareCursor, FetchStatement, QueryStatement
from kpg.sql.session.query_result import QueryResult, ResultColumn
from kpg.sql.session.select_rows import select
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.session.subscribe_changes import SqlSubscription, SubscribedChange, open_subscription
from kpg.sql.sql_types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from kpg.sql.session.sql_session import SqlSession
    from kpg.sql.session.sql_transaction import SqlTransaction

MAX_CURSORS: Final = 100  # of one session
MAX_CURSOR_BYTES: Final = 256 << 20  # of the rows that the cursors of one session hold
UNDEFINED_CURSOR: Final = "34000"
DUPLICATE_CURSOR: Final = "42P03"


@dataclass(slots=True)
class RowCursor:
    """The rows of a query, and how many of them were fetched."""

    result: QueryResult
    transaction: SqlTransaction | None  # with which it ends
    at: int = 0

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The columns of its rows."""
        return self.result.columns

    @property
    def nbytes(self) -> int:
        """The bytes of its rows."""
        return int(self.result.table.nbytes)

    def take(self, count: int | None) -> QueryResult:
        """Return the next rows."""
        table = self.result.table.slice(self.at, count)
        self.at += table.num_rows
        return QueryResult(f"FETCH {table.num_rows}", self.result.columns, table, self.result.schema)

    def close(self) -> None:
        """Hold nothing any more."""


@dataclass(slots=True)
class ChangeCursor:
    """The changes of a subscription, those included that are ready and were not fetched."""

    session: SqlSession
    subscription: SqlSubscription
    transaction: SqlTransaction | None
    unread: list[SubscribedChange] = field(default_factory=list)
    nbytes: int = 0

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The columns of its changes."""
        marks = (ResultColumn("progressed", BOOLEAN),) if self.subscription.has_progress else ()
        head = (ResultColumn("epoch", BIGINT), ResultColumn("diff", BIGINT), *marks)
        return (*head, *self.subscription.columns)

    def take(self, count: int | None) -> QueryResult:
        """Return the next changes that are ready."""
        if count is None or len(self.unread) < count:
            self.unread += self.subscription.take()
        changes = self.unread[:count]
        schema, table = self._table(changes)
        self.unread = self.unread[len(changes) :]  # after all pauses: a FETCH that is cancelled has read nothing
        return QueryResult(f"FETCH {len(changes)}", self.columns, table, schema)

    def _table(self, changes: list[SubscribedChange]) -> tuple[Schema, pa.Table]:
        progress, answer = self.subscription.has_progress, self.subscription.schema
        types = [INT64, INT64, *([BOOL] if progress else []), *(type_.optional() for type_ in answer.types)]
        schema = Schema(tuple(f"column {at}" for at in range(len(types))), tuple(types))
        nulls = (None,) * len(answer.types)
        rows = [
            (change.epoch, change.diff, *([change.is_progress] if progress else []), *(change.row or nulls))
            for change in changes
        ]
        symbols = self.session.db.symbols
        return schema, decode(schema, encode(schema, rows, symbols), symbols)

    @property
    def unread_rows(self) -> int:
        """The number of changes that it holds."""
        return len(self.unread) + self.subscription.unread_rows

    def close(self) -> None:
        """End the subscription."""
        self.subscription.close()


class SessionCursors:
    """The cursors of one session, by name."""

    def __init__(self) -> None:
        self._cursors: dict[str, RowCursor | ChangeCursor] = {}

    def add(self, name: str, cursor: RowCursor | ChangeCursor) -> None:
        """Add a cursor, within the limits of a session."""
        nbytes = cursor.nbytes + sum(other.nbytes for other in self._cursors.values())
        if len(self._cursors) >= MAX_CURSORS or nbytes > MAX_CURSOR_BYTES:
            cursor.close()
            what = "too many cursors" if len(self._cursors) >= MAX_CURSORS else "the rows of cursors are too large"
            detail = f"A session has at most {MAX_CURSORS} cursors, with {MAX_CURSOR_BYTES >> 20} MB of rows."
            raise sql_error(OverLimit, "54000", what, detail=detail, hint="CLOSE cursors that are no longer read.")
        self._cursors[name] = cursor

    def find(self, name: str) -> RowCursor | ChangeCursor:
        """Return a cursor."""
        if name not in self._cursors:
            raise sql_error(UndefinedName, UNDEFINED_CURSOR, f'cursor "{name}" does not exist')
        return self._cursors[name]

    def has(self, name: str) -> bool:
        """Return whether there is a cursor of this name."""
        return name in self._cursors

    def columns(self, name: str) -> tuple[ResultColumn, ...]:
        """Return the columns of a cursor."""
        return self.find(name).columns

    def of_changes(self) -> Iterator[tuple[str, ChangeCursor]]:
        """Yield the cursors of SUBSCRIBE that have not ended, with their names."""
        for name, cursor in self._cursors.items():
            if isinstance(cursor, ChangeCursor) and not cursor.subscription.ended:
                yield name, cursor

    def close(self, name: str) -> None:
        """Close a cursor."""
        self.find(name).close()
        del self._cursors[name]

    def close_all(self) -> None:
        """Close all cursors."""
        for name in [*self._cursors]:
            self.close(name)

    def end_transaction(self, transaction: SqlTransaction) -> None:
        """Close the cursors that end with a transaction."""
        for name in [name for name, cursor in self._cursors.items() if cursor.transaction is transaction]:
            self.close(name)


def declare(session: SqlSession, statement: DeclareCursor, parameters: Parameters) -> QueryResult:
    """Carry out DECLARE."""
    name = str(statement.name)
    if session.cursors.has(name):
        raise sql_error(ProgramError, DUPLICATE_CURSOR, f'cursor "{name}" already exists')
    transaction = None if statement.held else session.transaction
    if isinstance(statement.statement, QueryStatement):
        cursor: RowCursor | ChangeCursor = RowCursor(select(session, statement.statement, parameters), transaction)
    else:
        subscription = open_subscription(session, statement.statement, parameters)
        cursor = ChangeCursor(session, subscription, transaction)
    session.cursors.add(name, cursor)
    return QueryResult("DECLARE CURSOR")


def fetch(session: SqlSession, statement: FetchStatement) -> QueryResult:
    """Carry out FETCH and MOVE, without waiting."""
    result = session.cursors.find(str(statement.cursor)).take(statement.count)
    return QueryResult(f"MOVE {len(result)}") if statement.moves else result


def close_cursor(session: SqlSession, statement: CloseCursor) -> QueryResult:
    """Carry out CLOSE."""
    if statement.name is None:
        session.cursors.close_all()
        return QueryResult("CLOSE CURSOR ALL")
    session.cursors.close(str(statement.name))
    return QueryResult("CLOSE CURSOR")
