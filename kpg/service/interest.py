"""An interest: one client's subscription to an answer, and the changes that wait for it.

    interest.take()     all changes since it was last asked, up to the time that is closed

Changes arrive as blocks that all who are interested share. If nobody takes them, and they grow over a limit, they are
summed up: what came and went in between is gone, and the rest has the time of the last. So what waits is bounded by the
answer itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kpg.columns.consolidate import consolidate
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates, concatenate, constant, no_updates
from kpg.errors import Closed
from kpg.query.ir.program import Column
from kpg.service.changes import Changes

if TYPE_CHECKING:
    from kpg.api.database import Database


class Interest:
    """A subscription; made by `Service.interest`."""

    def __init__(
        self, db: Database, number: int, name: str, columns: tuple[Column, ...], schema: Schema, owner: Any, most: int
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
        self._most = most
        self._limit = most
        self._waiting: list[Updates] = []
        self._rows = 0

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

    def push(self, updates: Updates) -> None:
        """Changes have come."""
        if not len(updates):
            return
        self._waiting.append(updates)
        self._rows += len(updates)
        if self._rows > self._limit and len(self._waiting) > 1:
            self._sum_up()

    def _sum_up(self) -> None:
        last = constant((max(int(part.times.max()) for part in self._waiting),))
        parts = [Updates(part.data, last, part.diffs) for part in self._waiting]
        summed = consolidate(concatenate(parts))
        self._waiting, self._rows = [summed], len(summed)
        self._limit = max(self._most, 2 * self._rows)  # each row is summed up a few times only

    def take(self) -> Changes:
        """All changes since this was last called, each (row, time) once, earlier times first."""
        if self.ended:
            raise Closed(f"the interest in {self.name} has ended")
        self.before_take()
        failure = self.failure()
        if failure is not None:
            raise failure
        waiting, self._waiting, self._rows, self._limit = self._waiting, [], 0, self._most
        found = concatenate(waiting) if waiting else no_updates(max(1, len(self._schema)), 1)
        return Changes(found, self._schema, self._db, self.upto)

    def end(self) -> None:
        """Nothing more will come."""
        self.ended = True
        self._waiting, self._rows = [], 0

    def __repr__(self) -> str:
        return f"Interest({self.id}, {self.name!r}, owner={self.owner!r})"
