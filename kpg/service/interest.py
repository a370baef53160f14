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
from kpg.columns.updates import Updates, concatenate, constant, no_updates, spread
from kpg.errors import Closed, OverLimit
from kpg.query.ir.program import Column
from kpg.service.changes import Changes
from kpg.service.limits import Limits

if TYPE_CHECKING:
    from kpg.api.database import Database


class Interest:
    """A subscription; made by `Service.interest`."""

    def __init__(
        self,
        db: Database,
        number: int,
        name: str,
        columns: tuple[Column, ...],
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
        self._waiting: list[Updates] = []
        self._rows = 0
        self._size = 0  # of the answer, as far as it came here
        self._refused: OverLimit | None = None

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
        if not len(updates) or self._refused is not None:
            return
        self._size += int(spread(updates.diffs, len(updates)).sum())
        try:
            self._limits.check_rows(self.name, self._size)
        except OverLimit as error:
            self._refused = error
            self._waiting, self._rows = [], 0
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
        self._limit = max(self._limits.waiting_rows, 2 * self._rows)  # each row is summed up a few times only

    def take(self) -> Changes:
        """All changes since this was last called, each (row, time) once, earlier times first."""
        if self.ended:
            raise Closed(f"the interest in {self.name} has ended")
        self.before_take()
        failure = self._refused or self.failure()
        if failure is not None:
            raise failure
        waiting, self._waiting, self._rows, self._limit = self._waiting, [], 0, self._limits.waiting_rows
        found = concatenate(waiting) if waiting else no_updates(max(1, len(self._schema)), 1)
        return Changes(found, self._schema, self._db, self.upto)

    def end(self) -> None:
        """Nothing more will come."""
        self.ended = True
        self._waiting, self._rows = [], 0

    def __repr__(self) -> str:
        return f"Interest({self.id}, {self.name!r}, owner={self.owner!r})"
