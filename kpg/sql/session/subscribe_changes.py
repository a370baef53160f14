"""SUBSCRIBE: the changes of a query, as an iterator.

    for change in db.sql("SUBSCRIBE totals"):          (epoch, diff, row) for each change that is known
        ...

    the sum of all changes up to an epoch  ==  the rows of the query at that epoch

The first changes are the rows as of the last complete epoch, or as of AS OF, unless WITH (SNAPSHOT = false). Changes of
one epoch come together, rows that go before rows that come, and no row both comes and goes. With PROGRESS, a mark
without a row follows the changes of each epoch: the epoch is complete. The iterator ends where no change is ready; the
next loop continues there. UP TO ends the subscription before that epoch. While a row makes an expression of the query
fail, reading raises; once the row is corrected, it continues without a gap. DROP of a view that it reads ends it, and
reading raises from then on.

A subscription keeps no rows. Its cost is that of the changes, and of its own operators. If its reader leaves more than
`CHANGES_LIMIT` changes unread, they are summed: those of several epochs come at the last of these, and the epochs
before it get no marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from kpg.api.contracts import Releasable
from kpg.columns.building_turns import building_in_turns
from kpg.columns.consolidation import consolidate_all
from kpg.columns.pause_points import CALLS_PER_PAUSE, pause
from kpg.columns.selection import keep, take
from kpg.columns.table_rows import decode_rows
from kpg.columns.updates import Updates, spread
from kpg.errors import DataError, KpgError, NotSupported, ProgramError, TimeTooEarly, UndefinedName
from kpg.sql.bind.bind_context import Parameters
from kpg.sql.bind.bind_statements import bind_query
from kpg.sql.lower.lower_query import lower_query
from kpg.sql.parse.sql_statements import SubscribeStatement
from kpg.sql.relational.relations import without_order
from kpg.sql.session import sql_errors
from kpg.sql.session.planned_version import planning, require_planned_version
from kpg.sql.session.query_result import ResultColumn
from kpg.sql.session.relation_reads import relations_read
from kpg.sql.session.run_query import CatalogSources, failed_query
from kpg.sql.session.select_rows import epoch_of
from kpg.sql.session.sql_errors import sql_error

if TYPE_CHECKING:
    from kpg.api.contracts import Output
    from kpg.columns.schema import Schema
    from kpg.sql.session.sql_session import SqlSession

MAX_EPOCHS_MARKED: Final = 10_000  # by one read; if the clock moved further, only the last epochs get marks


class SubscribedChange(NamedTuple):
    """A change of a subscribed answer: at an epoch, copies of a row come (diff > 0) or go. A mark has no row."""

    epoch: int
    diff: int
    row: tuple[Any, ...] | None

    @property
    def is_progress(self) -> bool:
        """Whether this is a mark: all changes up to this epoch have been returned."""
        return self.row is None


@dataclass(frozen=True, slots=True)
class SubscribedEpochs:
    """What a subscription returns: epochs from `first` up to but not including `up_to`."""

    first: int  # earlier changes are added up to this epoch
    up_to: int | None
    snapshot: bool  # whether the rows at `first` are returned
    progress: bool


class SqlSubscription(Releasable):
    """The changes of a query, in the order of their epochs."""

    def __init__(
        self, output: Output, columns: tuple[ResultColumn, ...], epochs: SubscribedEpochs, names: frozenset[str]
    ) -> None:
        self.columns = columns
        self.names = names  # of the tables and views that the query mentions
        self._reason: KpgError | None = None  # why it has ended, if its reader did not end it
        self.ended = False
        self._output = output
        self._epochs = epochs
        self._unread: list[Updates] = []  # of epochs that are not complete
        self._next = epochs.first  # the first epoch whose changes were not returned
        output.db.holders.add(self)

    def unread(self) -> Iterator[tuple[Schema, Updates]]:
        """Yield the changes that were not returned yet, so that the db keeps the symbols in them."""
        yield from ((self.schema, updates) for updates in self._unread)

    def __iter__(self) -> Iterator[SubscribedChange]:
        return iter(self.take())

    @property
    def schema(self) -> Schema:
        """The engine's schema of its rows."""
        return self._output.schema

    @property
    def dataflow(self) -> str:
        """The name of the dataflow that computes its changes."""
        return self._output.name

    @property
    def unread_rows(self) -> int:
        """The number of changes that were not returned yet."""
        return sum(map(len, self._unread)) + (0 if self.ended else self._output.unread_rows)

    @property
    def has_progress(self) -> bool:
        """Whether it returns marks."""
        return self._epochs.progress

    def take(self) -> list[SubscribedChange]:
        """Return the changes since the last call, of all complete epochs."""
        self._require_working()
        if self.ended:
            return []
        received = self._received()
        self._require_working()  # it may have waited, and been ended meanwhile
        self._unread.append(received)
        complete, up_to = self._output.complete_through, self._epochs.up_to
        end = 0 if complete is None else complete + 1
        if up_to is not None:
            end = min(end, up_to)
        changes = self._changes_before(end)
        if self._epochs.progress:
            first = max(self._next, self._output.summed_through, end - MAX_EPOCHS_MARKED)
            changes = with_marks(changes, first, end)
        self._next = max(self._next, end)
        if up_to is not None and end >= up_to:
            self.close()
        return changes

    def _require_working(self) -> None:
        if self._reason is not None:
            raise self._reason

    def _received(self) -> Updates:
        """Return what the db has computed since the last call, none before the first epoch."""
        try:
            updates = self._output.take_changes().updates
        except DataError as error:
            raise failed_query(error, self._output.name) from None
        return updates.with_times(np.maximum(updates.times, self._epochs.first))

    def _changes_before(self, end: int) -> list[SubscribedChange]:
        """Take the changes before an epoch out of the unread ones."""
        updates = consolidate_all([*self._unread])  # which empties its list
        epochs = spread(updates.times, len(updates))[0]
        rest = keep(updates, epochs >= end)
        begin = self._epochs.first + (not self._epochs.snapshot)
        ready = keep(updates, (epochs >= begin) & (epochs < end))
        epochs, diffs = spread(ready.times, len(ready))[0], spread(ready.diffs, len(ready))[0]
        ready = take(ready, np.lexsort((diffs > 0, epochs)))
        changes = changes_of(ready, decode_rows(self._output.schema, ready.data, self._output.db.symbols))
        self._unread = [rest]  # after all pauses: a statement that is cancelled at one has read nothing
        return changes

    def close(self) -> None:
        """End the subscription and release what it holds; may be repeated."""
        if not self.ended:
            self.ended = True
            self._output.release()

    release = close

    def end(self, name: str) -> None:
        """End the subscription, because a view that it reads was dropped; later reads raise."""
        what, hint = f"the subscription has ended: {name} was dropped", "Create the view again, and SUBSCRIBE again."
        self.stop(sql_error(UndefinedName, sql_errors.UNDEFINED_TABLE, what, hint=hint))

    def stop(self, error: KpgError) -> None:
        """End the subscription; later reads raise the error."""
        if not self.ended:
            self._reason = error
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def changes_of(updates: Updates, rows: Sequence[tuple[Any, ...]]) -> list[SubscribedChange]:
    """Return updates of decoded rows as changes; pauses between parts of them."""
    epochs, diffs = spread(updates.times, len(rows))[0].tolist(), spread(updates.diffs, len(rows))[0].tolist()
    changes: list[SubscribedChange] = []
    for at in range(0, len(rows), CALLS_PER_PAUSE):
        part = slice(at, at + CALLS_PER_PAUSE)
        changes += map(SubscribedChange, epochs[part], diffs[part], rows[part])
        pause()
    return changes


def with_marks(changes: list[SubscribedChange], begin: int, end: int) -> list[SubscribedChange]:
    """Return changes in the order of their epochs, with a mark after those of each epoch of a range."""
    marks = [SubscribedChange(epoch, 0, None) for epoch in range(begin, end)]
    return sorted([*changes, *marks], key=lambda change: (change.epoch, change.is_progress))


def subscribe(session: SqlSession, statement: SubscribeStatement, parameters: Parameters) -> SqlSubscription:
    """Carry out SUBSCRIBE."""
    session.require_outside_transaction("SUBSCRIBE")
    return open_subscription(session, statement, parameters)


def open_subscription(session: SqlSession, statement: SubscribeStatement, parameters: Parameters) -> SqlSubscription:
    """Open a subscription, for SUBSCRIBE or a cursor. It sees what is committed, also inside a transaction."""
    session.require_no_pending_rows()
    require_first_epoch(session)
    catalog = session.catalog
    with planning(catalog):
        query = without_order(bind_query(statement.query, catalog, parameters))
        plan = lower_query(session.db, query, CatalogSources(catalog))
    pairs = zip(query.names, query.relation.columns, strict=True)
    columns = tuple(ResultColumn(name, column.type) for name, column in pairs)
    require_planned_version(catalog)
    with building_in_turns():
        output = plan.output(keep=False)
    try:
        with session.db.uninterrupted():
            require_planned_version(catalog)
            epochs = subscribed_epochs(session, statement, parameters)
            require_readable(session, output, epochs.first)
            output.begin_reading(epochs.up_to)
            subscription = SqlSubscription(output, columns, epochs, relations_read(statement.query))
            catalog.subscriptions.add(subscription)
    except BaseException:
        output.release()
        raise
    return subscription


def require_first_epoch(session: SqlSession) -> None:
    """Complete the first epoch if there is none."""
    if session.db.config.coordinates != 1:
        raise sql_error(NotSupported, sql_errors.NOT_SUPPORTED, "SUBSCRIBE on a db with several clocks")
    if session.db.sealed is None:
        session.db.advance(wait=not session.db.answers_lag)


def subscribed_epochs(session: SqlSession, statement: SubscribeStatement, parameters: Parameters) -> SubscribedEpochs:
    """Return the epochs that SUBSCRIBE names; by default it begins with the last complete one."""
    first, up_to = session.db.epoch - 1, None
    if statement.as_of is not None:
        first = epoch_of(session, statement.as_of, parameters)
    if statement.up_to is not None:
        up_to = epoch_of(session, statement.up_to, parameters)
        if up_to < first:
            raise sql_error(
                ProgramError,
                sql_errors.INVALID_PARAMETER,
                f"SUBSCRIBE ends before it begins: UP TO {up_to}, and it begins at {first}",
                hint="UP TO names the first epoch that is left out.",
            )
    return SubscribedEpochs(first, up_to, statement.snapshot, statement.progress)


def require_readable(session: SqlSession, output: Output, first: int) -> None:
    """Raise if the db does not keep the rows of an epoch any more."""
    db = session.db
    kept = db.horizon(output.reads).beyond((first,))
    if db.config.history is not None:  # workers keep their horizon to themselves
        oldest = [db.epoch - 1 - db.config.history, *(reader.time[0] for reader in db.readers.values())]
        kept = kept and first >= min(oldest)
    if first < 0 or not kept:
        raise sql_error(
            TimeTooEarly,
            sql_errors.INVALID_PARAMETER,
            f"the db does not keep epoch {first} any more",
            hint="kpg.open(history=N) keeps the last N epochs.",
        )
