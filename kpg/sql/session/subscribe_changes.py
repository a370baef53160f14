"""SUBSCRIBE: the changes of a query, as an iterator.

    for change in db.sql("SUBSCRIBE totals"):          (epoch, diff, row…) as they become known
        ...

The first changes are the rows that are there already, unless WITH (SNAPSHOT = false). With PROGRESS, a row without
values says that an epoch is complete. The iterator ends where no change is ready: `wait()` of a server, or the next
`for` loop after an advance, continues. UP TO ends it for good. A subscription keeps no rows of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kpg.sql.bind.bind_context import Parameters
from kpg.sql.bind.bind_statements import bind_query
from kpg.sql.lower.lower_query import lower_query
from kpg.sql.parse.sql_statements import SubscribeStatement
from kpg.sql.relational.relations import without_order
from kpg.sql.session.query_result import ResultColumn
from kpg.sql.session.run_query import CatalogSources
from kpg.sql.session.select_rows import epoch_of

if TYPE_CHECKING:
    from kpg.api.contracts import Output
    from kpg.sql.session.sql_session import SqlSession


class SubscribedChange(NamedTuple):
    """A change of a subscribed answer: at an epoch, a row comes (diff > 0) or goes. Progress has no row."""

    epoch: int
    diff: int
    row: tuple[Any, ...] | None

    @property
    def is_progress(self) -> bool:
        """Whether this only says that no earlier change will follow."""
        return self.row is None


class SqlSubscription:
    """The changes of a query, in the order of their epochs."""

    def __init__(
        self, output: Output, columns: tuple[ResultColumn, ...], first: int | None, up_to: int | None, progress: bool
    ) -> None:
        self.columns = columns
        self._output = output
        self._first = first  # changes at earlier epochs are added up to this one; None: they are left out
        self._up_to = up_to
        self._progress = progress
        self._skip_before: int | None = None
        self._last = -1
        self.ended = False

    def __iter__(self) -> Iterator[SubscribedChange]:
        return iter(self.take())

    def take(self) -> list[SubscribedChange]:
        """Return the changes since the last call, which are complete up to the last epoch."""
        if self.ended:
            return []
        db = self._output.db
        changes = []
        for row, time, diff in self._output.changes():
            epoch = time if isinstance(time, int) else time[0]
            if self._first is not None:
                epoch = max(epoch, self._first)
            if self._up_to is None or epoch < self._up_to:
                changes.append(SubscribedChange(epoch, diff, row))
        if self._skip_before is not None:
            changes = [change for change in changes if change.epoch >= self._skip_before]
        changes.sort(key=lambda change: (change.epoch, change.diff > 0))
        complete = db.epoch - 1
        if self._progress and complete > self._last:
            changes.append(SubscribedChange(complete + 1, 0, None))
        self._last = complete
        if self._up_to is not None and complete + 1 >= self._up_to:
            self.close()
        return changes

    def skip_before(self, epoch: int) -> None:
        """Leave out the changes before an epoch: the rows that were there when the subscription began."""
        self._skip_before = epoch

    def close(self) -> None:
        """End the subscription and release what it holds; may be repeated."""
        if not self.ended:
            self.ended = True
            self._output.release()

    def __enter__(self) -> SqlSubscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def subscribe(session: SqlSession, statement: SubscribeStatement, parameters: Parameters) -> SqlSubscription:
    """Carry out SUBSCRIBE."""
    session.require_outside_transaction("SUBSCRIBE")
    query = without_order(bind_query(statement.query, session.catalog, parameters))
    first = None if statement.as_of is None else epoch_of(session, statement.as_of, parameters)
    up_to = None if statement.up_to is None else epoch_of(session, statement.up_to, parameters)
    output = lower_query(session.db, query, CatalogSources(session.catalog)).output(keep=False)
    pairs = zip(query.names, query.relation.columns, strict=True)
    columns = tuple(ResultColumn(name, column.type) for name, column in pairs)
    subscription = SqlSubscription(output, columns, first, up_to, statement.progress)
    if not statement.snapshot:
        subscription.skip_before(session.db.epoch if first is None else first + 1)
    return subscription
