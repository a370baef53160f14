"""Statements that write one table take turns: each computes and writes its change before the next one begins.

    with turns.writing(["t"]):
        ...                     what the statement has read of t stays true until it has written

Only statements of SQL write a table, so a statement may let other requests run while it computes. Statements that write
other tables do not wait, nor do queries. The turns of several tables are taken in the order of their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from kpg.api.request_queue import RequestQueue

if TYPE_CHECKING:
    from kpg.api.contracts import Database


class TableTurns:
    """The queues of the tables of one db."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._queues: dict[str, RequestQueue] = {}

    @contextmanager
    def writing(self, names: Iterable[str]) -> Iterator[None]:
        """Wait until no other statement writes some tables, and let none begin in this block."""
        with ExitStack() as stack:
            for name in sorted(set(names)):
                queue = self._queues.setdefault(name, RequestQueue(self._db.wait_for_future))
                stack.callback(self._forget, name)
                stack.enter_context(queue.turn())
            yield

    def _forget(self, name: str) -> None:
        if name in self._queues and not self._queues[name]:
            del self._queues[name]
