"""An interest: one client's subscription to an answer, and the changes that wait for it.

    interest.take()     all changes since it was last asked, up to the time that is closed

Changes arrive as blocks that all who are interested share, as a place in one, so that telling costs a microsecond. If
nobody takes them, they are copied out after some blocks, and once they grow over a limit they are summed up: what came
and went in between is gone, and the rest has the time of the last. So what waits is bounded by the answer itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kpg.columns.consolidation import consolidate
from kpg.columns.schema import Schema
from kpg.columns.selection import cut
from kpg.columns.updates import Updates, concatenate, constant, no_updates, spread
from kpg.errors import Closed, OverLimit
from kpg.query.ir.program import RelationColumn
from kpg.service.changes import Changes
from kpg.service.limits import Limits

if TYPE_CHECKING:
    from kpg.api.database import Database

MOST_BLOCKS = 64  # of others that a subscriber who does not take holds in memory


class Interest:
    """A subscription; made by `Service.interest`."""

    def __init__(
        self,
        db: Database,
        number: int,
        name: str,
        columns: tuple[RelationColumn, ...],
        schema: Schema,
        owner: Any,
        limits: Limits,
    ) -> None:
        self.id = number
        self.name = name
        self.owner = owner
        self.ended = False
        self.sharing = ""
        self.failure: Callable[[], Exception | None] = lambda: None
        self.before_take: Callable[[], None] = lambda: None
        self._db = db
        self._columns = columns
        self._schema = schema
        self._limits = limits
        self._limit = limits.waiting_rows
        self._lanes = max(1, len(schema))
        self._most = sys.maxsize if limits.rows is None else limits.rows
        self._waiting: list[tuple[Updates, int, int]] = []
        self._rows = 0
        self._size = 0  # of the answer, as far as it came here
        self._refused: OverLimit | None = None
        db.holders.add(self)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The names and kinds of the columns."""
        return tuple((column.name, column.kind) for column in self._columns)

    @property
    def upto(self) -> int:
        """All changes at times before this one have arrived."""
        return self._db.epoch

    @property
    def waiting(self) -> int:
        """How many changes wait to be taken."""
        return self._rows

    @property
    def due_in(self) -> float | None:
        """In how many seconds changes that are held back can be taken; None if there are none."""
        return None

    @property
    def trouble(self) -> Exception | None:
        """Why nothing can be taken now, if so."""
        return self._refused or self.failure()

    def release_all(self) -> None:
        """Hold nothing back any more: nothing will come."""

    def push(self, updates: Updates, start: int, end: int, more: int) -> None:
        """Changes have come: those from start to end of a block, by which the answer grows by so many rows."""
        if self._refused is not None:
            return
        self._size += more
        if self._size > self._most:
            self._refuse()
            return
        self._waiting.append((updates, start, end))
        self._rows += end - start
        if len(self._waiting) > MOST_BLOCKS or self._rows > self._limit:
            self._gather()

    def push_all(self, updates: Updates) -> None:
        """Changes have come, all of a block."""
        if len(updates):
            self.push(updates, 0, len(updates), int(spread(updates.diffs, len(updates)).sum()))

    def _refuse(self) -> None:
        try:
            self._limits.check_rows(self.name, self._size)
        except OverLimit as error:
            self._refused = error
            self._waiting, self._rows = [], 0

    def _gather(self) -> None:
        """Copy what waits out of the blocks of others, and sum it up if it is too much."""
        found = self._own()
        if self._rows > self._limit:
            found = consolidate(Updates(found.data, constant((int(found.times.max()),)), found.diffs))
            self._limit = max(self._limits.waiting_rows, 2 * len(found))  # each row is summed up a few times only
        self._waiting, self._rows = [(found, 0, len(found))] if len(found) else [], len(found)

    def _own(self) -> Updates:
        """What waits, as updates of its own; blocks with more lanes than columns have others' marks in front."""
        if not self._waiting:
            return no_updates(self._lanes, 1)
        return concatenate([part(updates, start, end, self._lanes) for updates, start, end in self._waiting])

    def take(self) -> Changes:
        """All changes since this was last called, each (row, time) once, earlier times first."""
        if self.ended:
            raise Closed(f"the interest in {self.name} has ended")
        self.before_take()
        if (trouble := self.trouble) is not None:
            raise trouble
        found = self._own()
        self._waiting, self._rows, self._limit = [], 0, self._limits.waiting_rows
        return Changes(found, self._schema, self._db, self.upto)

    def unread(self) -> Iterator[tuple[Schema, Updates]]:
        """What waits: its symbols are in use."""
        if self._waiting and len(self._schema):
            yield self._schema, self._own()

    def end(self) -> None:
        """Nothing more will come."""
        self.ended = True
        self._waiting, self._rows = [], 0

    def __repr__(self) -> str:
        return f"Interest({self.id}, {self.name!r}, owner={self.owner!r})"


def part(updates: Updates, start: int, end: int, lanes: int) -> Updates:
    """Some of a block's updates, and only their last lanes."""
    if lanes != updates.lanes:
        updates = Updates(updates.data[updates.lanes - lanes :], updates.times, updates.diffs)
    return cut(updates, start, end)
