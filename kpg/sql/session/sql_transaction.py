"""Transactions of several statements: BEGIN, COMMIT, ROLLBACK, and savepoints within them.

    reads     as of the start of the transaction
    writes    kept here until COMMIT makes them one epoch; UPDATE, DELETE and ON CONFLICT see those to their own table
    conflict  COMMIT fails with 40001 if a table that UPDATE, DELETE or ON CONFLICT read has changed since the start

A statement that would read a table that the transaction has written in another way is refused (0A000). UPDATE and
DELETE are linear in their table: what they do to the table as of the start, plus what they do to the transaction's own
changes, is what they do to the table with those changes. So own changes cost their own size, not the table's.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kpg.api.temporary_readers import TEMPORARY
from kpg.errors import NotSupported, ProgramError, TransactionConflict, UndefinedName
from kpg.sql.catalog.entries import TableEntry
from kpg.sql.parse.sql_statements import TransactionStatement
from kpg.sql.relational.relations import BoundRelation
from kpg.sql.session import sql_errors
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.relation_reads import scanned_names
from kpg.sql.session.row_tables import difference, key_numbers, repeat, sum_rows
from kpg.sql.session.run_query import FetchedRows, fetch_relation
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.session.table_writes import Key, TableWrite, check_keys, write_changes
from kpg.sql.session.volatile_rows import projected, split_volatile

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.columns.schema import Schema
    from kpg.sql.session.sql_session import SqlSession

_NUMBERS = count()


class SqlTransaction:
    """The writes of an open transaction, and what it has read."""

    def __init__(self, session: SqlSession, read_only: bool = False) -> None:
        self._db = session.db
        self.read_only = read_only
        if self._db.sealed is None:
            self._db.advance(wait=not self._db.answers_lag)
        self.start = self._db.epoch  # changes at this epoch or later are not visible
        self.changes: dict[str, list[TableWrite]] = {}
        self.reads: set[str] = set()  # tables whose change since the start is a conflict
        self.failed = False
        self.moment = datetime.datetime.now(datetime.UTC)  # the value of now()
        self._savepoints: list[tuple[str, dict[str, int]]] = []  # each with the number of changes of each table
        reader = f"{TEMPORARY}transaction {next(_NUMBERS)}"
        self._db.set_reader(reader, self.start - 1)
        self._snapshots = session.catalog.snapshots
        self.snapshot = self._snapshots.open(partial(self._db.drop_reader, reader))

    @property
    def as_of(self) -> int:
        """The epoch that the reads of a statement see. Raise if the db does not keep it any more."""
        self.snapshot.begin_read()
        return self.start - 1

    def end(self) -> None:
        """Let the db forget the past that the transaction could read."""
        self._snapshots.close(self.snapshot)

    def add(self, change: TableWrite) -> None:
        """Keep a change until COMMIT."""
        self.changes.setdefault(change.entry.name, []).append(change)

    def control_savepoint(self, kind: str, name: str) -> str:
        """Set, release or return to a savepoint; return the tag. What was read since then still counts as read."""
        if kind == "savepoint":
            self._savepoints.append((name, {table: len(changes) for table, changes in self.changes.items()}))
            return "SAVEPOINT"
        at = next((at for at in range(len(self._savepoints) - 1, -1, -1) if self._savepoints[at][0] == name), None)
        if at is None:
            raise sql_error(UndefinedName, "3B001", f'savepoint "{name}" does not exist')
        if kind == "release":
            del self._savepoints[at:]
            return "RELEASE"
        counts = self._savepoints[at][1]
        del self._savepoints[at + 1 :]
        self.changes = {table: self.changes[table][:count] for table, count in counts.items() if count}
        self.failed = False
        return "ROLLBACK"

    def net_change(self, entry: TableEntry) -> TableWrite:
        """Return the sum of the changes of a table."""
        changes = self.changes[entry.name]
        schema = self._schema(entry)
        inserted, removed = [change.inserted for change in changes], [change.removed for change in changes]
        table, counts = sum_rows(schema, inserted, removed, self._db.symbols)
        return TableWrite(entry, repeat(table, -counts), repeat(table, counts))

    def rows_with_keys(self, entry: TableEntry, key: Key, present: pa.Table, keys: pa.Table) -> pa.Table:
        """Return the rows with some values of a key: those present at the start, with the own changes."""
        if entry.name not in self.changes:
            return present
        own, schema, symbols = self.net_change(entry), self._schema(entry), self._db.symbols
        tables = [keys, own.inserted, own.removed]
        wanted, came, went = key_numbers(schema, tables, key, symbols)
        came_wanted = own.inserted.filter(np.isin(came, wanted))
        went_wanted = own.removed.filter(np.isin(went, wanted))
        return difference(schema, [present, came_wanted], [went_wanted], symbols)

    def check_unchanged(self, names: list[str]) -> None:
        """Raise if a table has changed since the start."""
        for name in names:
            source = self._db.inputs.get(name)
            latest = None if source is None else source.latest
            if latest is not None and latest[0] >= self.start:
                raise sql_error(
                    TransactionConflict,
                    sql_errors.SERIALIZATION_FAILURE,
                    f"{name} has changed since the transaction began",
                    hint="ROLLBACK, and begin again.",
                )

    def _schema(self, entry: TableEntry) -> Schema:
        return self._db.inputs[entry.name].schema


def control_transaction(session: SqlSession, statement: TransactionStatement) -> QueryResult:
    """Carry out BEGIN, COMMIT or ROLLBACK."""
    if statement.kind == "begin":
        session.require_outside_transaction("BEGIN")
        session.require_no_pending_rows()
        session.transaction = SqlTransaction(session, statement.read_only)
        return QueryResult("BEGIN")
    transaction = session.transaction
    if transaction is None:
        raise sql_error(
            ProgramError, sql_errors.NO_ACTIVE_TRANSACTION, "no transaction is open", hint="BEGIN opens one."
        )
    if statement.kind in ("savepoint", "release", "rollback to"):
        return QueryResult(transaction.control_savepoint(statement.kind, statement.savepoint))
    session.transaction = None
    try:
        if statement.kind == "commit" and not transaction.failed:
            commit(session, transaction)
            return QueryResult("COMMIT")
        return QueryResult("ROLLBACK")
    finally:
        transaction.end()


def commit(session: SqlSession, transaction: SqlTransaction) -> None:
    """Write all changes as one epoch, unless a table that they depend on has changed."""
    check = partial(transaction.check_unchanged, sorted(transaction.reads))
    with session.writing(transaction.changes):
        check()
        changes = [transaction.net_change(changes[0].entry) for changes in transaction.changes.values()]
        for change in changes:
            check_keys(session, change.entry, change.inserted, change.removed)
        if any(change.removed.num_rows or change.inserted.num_rows for change in changes):
            write_changes(session, changes, check)


# Rows that UPDATE and DELETE concern


def fetch_target_rows(session: SqlSession, relation: BoundRelation, entry: TableEntry) -> FetchedRows:
    """Return the rows of a relation that is linear in a table, with the own changes of the transaction to it."""
    rows, projections = split_volatile(relation)
    fetched = fetch_linear_rows(session, rows, entry)
    return FetchedRows(*projected(session.db, fetched.table, fetched.schema, projections))


def fetch_linear_rows(session: SqlSession, relation: BoundRelation, entry: TableEntry) -> FetchedRows:
    """Return the rows of a relation that is linear in a table and has no volatile functions in its lists."""
    transaction = session.transaction
    if transaction is None:
        return fetch_relation(session.catalog, relation)
    names = scanned_names(relation)
    written = [name for name in names if name in transaction.changes]
    if any(name != entry.name for name in written) or names.count(entry.name) > 1 < len(written):
        raise reads_own_writes(next(name for name in written))
    transaction.check_unchanged(names)
    transaction.reads.update(names)
    fetched = fetch_relation(session.catalog, relation)
    if entry.name not in transaction.changes:
        return fetched
    own = transaction.net_change(entry)
    schema = session.db.inputs[entry.name].schema
    parts = []
    for rows in (own.inserted, own.removed):
        with temporary_relation(session, schema, rows) as source:
            parts.append(fetch_relation(session.catalog, relation, replacing={entry.name: source}).table)
    came, went = parts
    return FetchedRows(difference(fetched.schema, [fetched.table, came], [went], session.db.symbols), fetched.schema)


@contextmanager
def temporary_relation(session: SqlSession, schema: Schema, rows: pa.Table) -> Iterator[Collection]:
    """Yield a relation with some rows, which exists only within the block."""
    source = session.db.input(f"sql rows {next(_NUMBERS)}", schema, keep_on_disk=False)
    try:
        source.insert(rows)
        session.db.advance(wait=not session.db.answers_lag)
        yield source
    finally:
        source.drop()


def reads_own_writes(name: str) -> ProgramError:
    """Return the error for a statement that reads a table that its transaction has written."""
    return sql_error(
        NotSupported,
        sql_errors.NOT_SUPPORTED,
        f"{name} was written by this transaction, and cannot be read in it",
        hint="COMMIT first. UPDATE, DELETE and ON CONFLICT see the own writes to their table.",
    )
