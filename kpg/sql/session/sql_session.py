"""A session: executes statements on a db, one after the other, with at most one open transaction.

    session = SqlSession(db)
    result = session.execute("SELECT * FROM t WHERE a > :least", {"least": 5})

`db.sql` has one session; a server has one for each client. Sessions of one db share its catalog. A statement outside
BEGIN is one epoch: all of it takes effect, or nothing. Texts that were parsed before are not parsed again.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kpg.errors import InUse, ProgramError
from kpg.query.lower.unit_input import UNIT_INPUT, unit_input
from kpg.sql.catalog.database_catalog import catalog_of
from kpg.sql.functions.sql_sequences import sequence_numbers
from kpg.sql.functions.transaction_clock import fixed_moment
from kpg.sql.lower.plan_settings import DEFAULT_SETTINGS, using_settings
from kpg.sql.parse import sql_statements as statements
from kpg.sql.parse.sql_failures import bounded_depth
from kpg.sql.parse.statement_parser import parse_statements
from kpg.sql.session import sql_errors
from kpg.sql.session.client_settings import ClientSettings
from kpg.sql.session.copy_files import copy
from kpg.sql.session.define_names import define
from kpg.sql.session.delete_rows import delete, truncate
from kpg.sql.session.describe_statements import StatementShape, describe
from kpg.sql.session.drop_names import drop
from kpg.sql.session.explain_sql import explain
from kpg.sql.session.insert_rows import insert
from kpg.sql.session.planned_version import run_at_one_version
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.relation_reads import scanned_names
from kpg.sql.session.select_rows import select
from kpg.sql.session.sequence_numbers import SequenceNumbers
from kpg.sql.session.session_cursors import SessionCursors, close_cursor, declare, fetch
from kpg.sql.session.show_settings import change_setting, show
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.session.sql_transaction import SqlTransaction, control_transaction, reads_own_writes
from kpg.sql.session.subscribe_changes import SqlSubscription, subscribe
from kpg.sql.session.update_rows import update

if TYPE_CHECKING:
    from kpg.api.contracts import Database
    from kpg.sql.catalog.entries import TableEntry
    from kpg.sql.relational.relations import BoundRelation
    from kpg.sql.sql_types import SqlType

Parameters = Mapping[str, Any]
Result = TypeVar("Result")
Handler = Callable[["SqlSession", Any, Parameters], "QueryResult | SqlSubscription"]

CACHED_TEXTS = 256  # parsed texts that are kept; applications repeat theirs

HANDLERS: Final[dict[type[statements.SqlStatement], Handler]] = {
    statements.QueryStatement: select,
    statements.CreateTable: lambda session, statement, _: define(session, statement),
    statements.CreateView: lambda session, statement, _: define(session, statement),
    statements.CreateIndex: lambda session, statement, _: define(session, statement),
    statements.CreateSequence: lambda session, statement, _: define(session, statement),
    statements.DropStatement: lambda session, statement, _: drop(session, statement),
    statements.InsertStatement: insert,
    statements.UpdateStatement: update,
    statements.DeleteStatement: delete,
    statements.TruncateStatement: lambda session, statement, _: truncate(session, statement),
    statements.TransactionStatement: lambda session, statement, _: control_transaction(session, statement),
    statements.ExplainStatement: explain,
    statements.ShowStatement: lambda session, statement, _: show(session, statement),
    statements.SetStatement: lambda session, statement, _: change_setting(session, statement),
    statements.SubscribeStatement: subscribe,
    statements.CopyStatement: copy,
    statements.DeclareCursor: declare,
    statements.FetchStatement: lambda session, statement, _: fetch(session, statement),
    statements.CloseCursor: lambda session, statement, _: close_cursor(session, statement),
    statements.DiscardStatement: lambda session, statement, _: discard(session, statement),
}

parse_cached = lru_cache(maxsize=CACHED_TEXTS)(parse_statements)


class SqlSession:
    """Executes statements on a db."""

    def __init__(
        self,
        db: Database,
        has_files: bool = True,
        is_foreign: Callable[[str], bool] = lambda name: False,
        before_drop: Callable[[Sequence[str]], None] = lambda names: None,
        parse: Callable[[str, str], tuple[statements.AnyStatement, ...]] = parse_cached,
        advances_pending: bool = False,
        takes_turns: bool = False,
    ) -> None:
        self.db = db
        self.has_files = has_files  # whether COPY may read and write files of this process
        self.is_foreign = is_foreign  # whether a relation belongs to something else, and is only read here
        self.before_drop = before_drop  # raises if something outside SQL needs one of the names to drop
        self._parse = parse
        self._advances_pending = advances_pending  # whether pending rows get an epoch before that of a statement
        self.takes_turns = takes_turns  # whether statements let other requests run; the session runs one at a time
        unit_input(db)  # constants are computed from its one row
        self.catalog = catalog_of(db)
        self.numbers = SequenceNumbers(self.catalog)
        self.transaction: SqlTransaction | None = None
        self.settings = DEFAULT_SETTINGS
        self.client_settings = ClientSettings()
        self.cursors = SessionCursors()

    def parse(self, text: str) -> tuple[statements.AnyStatement, ...]:
        """Return the statements of a text."""
        return self._parse(text, "query")

    def execute(self, text: str, parameters: Parameters | None = None) -> QueryResult | SqlSubscription:
        """Execute all statements of a text; return the result of the last one."""
        result: QueryResult | SqlSubscription = QueryResult("")
        for statement in self.parse(text):
            result = self.execute_one(statement, parameters or {})
        return result

    def execute_one(self, statement: statements.SqlStatement, parameters: Parameters) -> QueryResult | SqlSubscription:
        """Execute one statement. In a transaction, a failure makes all later statements fail until ROLLBACK."""
        return self.checked(statement, lambda: HANDLERS[type(statement)](self, statement, parameters))

    def describe(self, statement: statements.SqlStatement, types: Sequence[SqlType | None]) -> StatementShape:
        """Return what a statement takes and returns, without carrying it out."""
        self._require_working(statement)
        return describe(self, statement, types)

    def checked(self, statement: statements.SqlStatement, work: Callable[[], Result]) -> Result:
        """Do the work of a statement, as part of the open transaction if there is one."""
        self._require_working(statement)
        transaction = self.transaction
        try:
            moment = datetime.datetime.now(datetime.UTC) if transaction is None else transaction.moment
            with (
                bounded_depth(statement.span),
                fixed_moment(moment),
                sequence_numbers(self.numbers),
                using_settings(self.settings),
                self._interruption(statement),
            ):
                result = run_at_one_version(self.catalog, work) if self.takes_turns else work()
            if transaction is not None and self.transaction is not transaction:
                self.cursors.end_transaction(transaction)
            if self.transaction is None and self.catalog.store.has_unwritten_numbers:
                self.write(lambda: None)  # numbers that only a SELECT has drawn
            return result
        except BaseException:
            if transaction is not None and self.transaction is transaction:
                transaction.failed = True
            raise
        finally:
            if transaction is not None:
                transaction.snapshot.end_statement()

    def _interruption(self, statement: statements.SqlStatement) -> AbstractContextManager[None]:
        """Return the block of a statement: one that may not be left, or one whose reads include all writes."""
        if isinstance(statement, statements.QueryStatement) and (self.transaction is None or self.takes_turns):
            return nullcontext()
        if self.takes_turns and isinstance(statement, PLANNED_IN_TURNS):
            return nullcontext()
        if self.takes_turns and isinstance(statement, IN_TURNS):
            return self.db.including_writes()
        return self.db.uninterrupted()

    def writing(self, names: Iterable[str]) -> AbstractContextManager[None]:
        """Return a block in which no other statement writes some tables; in a transaction, COMMIT takes care."""
        free = self.transaction is not None or not self.takes_turns
        return nullcontext() if free else self.catalog.turns.writing(names)

    def _require_working(self, statement: statements.SqlStatement) -> None:
        """Raise if the open transaction has failed, unless the statement ends it."""
        ends = isinstance(statement, statements.TransactionStatement) and statement.ends_failure
        if self.transaction is not None and self.transaction.failed and not ends:
            raise sql_error(
                ProgramError,
                sql_errors.FAILED_TRANSACTION,
                "the transaction has failed; statements are ignored until its end",
                hint="ROLLBACK, and begin again.",
            )
        if self.transaction is not None and self.transaction.read_only and is_write(statement):
            what = "cannot write in a read-only transaction"
            raise sql_error(ProgramError, sql_errors.READ_ONLY_TRANSACTION, what, hint="BEGIN without READ ONLY.")

    def close(self) -> None:
        """End the open transaction, and close all cursors."""
        if self.transaction is not None:
            self.execute("ROLLBACK")
        self.cursors.close_all()

    # Epochs

    def write(self, fill: Callable[[], None]) -> None:
        """Make the rows that a function inserts one epoch; nothing takes effect if it fails."""
        self.require_no_pending_rows()

        def fill_all(_: Database) -> None:
            fill()
            self.catalog.store.write_identities()

        self.db.transact(fill_all)

    def take_numbers(self, counter: str, amount: int) -> int:
        """Return the first of some new numbers of an identity column. Numbers are never given out again."""
        identities = self.catalog.store.identities
        first = identities.get(counter, 0) + 1
        if amount:
            self.catalog.store.count_to(counter, first + amount - 1)
        return first

    def restart_numbers(self, entry: TableEntry) -> None:
        """Let the identity columns of a table begin at 1 again."""
        for column in entry.columns:
            if column.identity is not None:
                self.catalog.store.count_to(f"{entry.name}.{column.name}", 0)

    # What statements may do now

    def check_reads(self, relation: BoundRelation) -> None:
        """Raise if a relation reads a table that the open transaction has written."""
        if self.transaction is not None:
            for name in scanned_names(relation):
                if name in self.transaction.changes:
                    raise reads_own_writes(name)

    def note_read(self, name: str) -> None:
        """Note that the open transaction depends on a table: it must not have changed, now and at COMMIT."""
        if self.transaction is not None:
            self.transaction.check_unchanged([name])
            self.transaction.reads.add(name)

    def require_no_pending_rows(self) -> None:
        """Raise if Python code has inserted rows that no advance has included yet; in a service, advance."""
        names = sorted(name for name in self.db.pending if name != UNIT_INPUT)
        if names and not self._advances_pending:
            raise sql_error(
                InUse,
                sql_errors.NOT_READY,
                "rows that were inserted from Python are pending",
                detail=f"Inputs: {', '.join(names)}.",
                hint="Call db.advance() first: a statement is an epoch of its own.",
            )
        if len(self.db.pending):
            self.db.advance(wait=not self.db.answers_lag)

    def require_outside_transaction(self, what: str) -> None:
        """Raise if a transaction is open."""
        if self.transaction is not None:
            raise sql_error(
                ProgramError,
                sql_errors.ACTIVE_TRANSACTION,
                f"{what} cannot run inside a transaction",
                hint="COMMIT or ROLLBACK first.",
            )


def discard(session: SqlSession, statement: statements.DiscardStatement) -> QueryResult:
    """Carry out DISCARD; DEALLOCATE and UNLISTEN have nothing to end here."""
    if statement.what == ("discard", "all"):
        session.require_outside_transaction("DISCARD ALL")
        session.cursors.close_all()
        session.settings = DEFAULT_SETTINGS
        session.client_settings.reset()
    return QueryResult(" ".join(statement.what).upper())


def session_of(db: Database) -> SqlSession:
    """Return the session that `db.sql` uses."""
    session: SqlSession | None = db.__dict__.get("_sql_session")
    if session is None:
        session = db.__dict__["_sql_session"] = SqlSession(db)
    return session


PLANNED_IN_TURNS: Final = (  # write at most at their end, in a block of their own that may not be left
    statements.CreateView, statements.ExplainStatement, statements.SubscribeStatement, statements.DeclareCursor,
    statements.FetchStatement,
)  # fmt: skip

IN_TURNS: Final = (  # write only at their end, and only if what they have read is still true
    statements.InsertStatement, statements.UpdateStatement, statements.DeleteStatement, statements.TruncateStatement,
    statements.CopyStatement, statements.TransactionStatement,
)  # fmt: skip

WRITES: Final = (
    statements.CreateTable, statements.CreateView, statements.CreateIndex, statements.CreateSequence,
    statements.DropStatement, statements.InsertStatement, statements.UpdateStatement, statements.DeleteStatement,
    statements.TruncateStatement,
)  # fmt: skip


def is_write(statement: statements.SqlStatement) -> bool:
    """Return whether a statement changes the db."""
    return isinstance(statement, WRITES) or (
        isinstance(statement, statements.CopyStatement) and statement.direction == "from"
    )
