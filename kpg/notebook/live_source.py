"""The answers that a live view can follow, and how each kind tells of changes.

    an answer of this thread's db     a function that each advance calls, on this thread
    an answer of another thread       the same function, which wakes a thread of the view
    a subscription of a connection    a thread of the view asks for new steps

All have `preview`, `table` and `time`. Nothing here takes changes that the program itself would read from an output; of
a subscription, the view reads the steps.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from kpg.api.answer_preview import AnswerPreview
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.ordered_read import OrderedRead
from kpg.client.connection import Subscription
from kpg.errors import Closed, TimeNotReached, TimeTooEarly


class LiveSource(ABC):
    """An answer that a view follows."""

    name: str
    columns: tuple[str, ...]
    reads_on_own_thread: bool  # only the thread that made the view may read the answer
    must_be_polled: bool = False  # changes are found only by `poll`

    def catch_up(self) -> None:
        """Read all changes up to now, if the answer is one of which changes are read."""

    def poll(self) -> bool:
        """Return whether the answer has changed since the last call."""
        return False

    @abstractmethod
    def follow(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call a function, on any thread, when the answer may have changed; return a function that ends this."""

    @abstractmethod
    def preview(self, size: int) -> AnswerPreview:
        """Return the first rows."""

    @abstractmethod
    def table(self) -> tuple[int, pa.Table]:
        """Return the last complete time, and all rows as of it."""


class OutputSource(LiveSource):
    """An output of a db, or an ordered read of one."""

    def __init__(self, answer: Any, read: Any) -> None:
        self._answer, self._read = answer, read
        self._db = answer.db
        self.name = answer.name
        self.columns = answer.schema.names
        self.reads_on_own_thread = isinstance(self._db, EmbeddedDatabase)

    def follow(self, changed: Callable[[], None]) -> Callable[[], None]:
        followers: list[Callable[[], None]] = self._db.followers
        followers.append(changed)

        def stop() -> None:
            if changed in followers:
                followers.remove(changed)

        return stop

    def preview(self, size: int) -> AnswerPreview:
        preview: AnswerPreview = self._read.preview(size)
        return preview

    def table(self) -> tuple[int, pa.Table]:
        while True:
            time = self._answer.complete_through
            try:
                return time or 0, self._read.snapshot(time)
            except TimeTooEarly:  # another thread has advanced the db between the two calls
                continue


class SubscriptionSource(LiveSource):
    """An answer that a connection follows."""

    reads_on_own_thread = False
    must_be_polled = True

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self.name = subscription.name
        self.columns = subscription.columns

    def catch_up(self) -> None:
        self._subscription.rows()

    def poll(self) -> bool:
        steps = 0
        try:
            while True:
                self._subscription.next(0.0)
                steps += 1
        except TimeNotReached:
            return steps > 0

    def follow(self, changed: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def preview(self, size: int) -> AnswerPreview:
        counts = self._subscription.counted_rows()
        rows = heapq.nsmallest(size, counts, key=lambda row: [(value is not None, value) for value in row])
        time = str(self._subscription.upto - 1)
        return AnswerPreview(self.columns, rows, [counts[row] for row in rows], len(counts), time)

    def table(self) -> tuple[int, pa.Table]:
        return self._subscription.upto - 1, self._subscription.read_table()


def source_of(answer: Any) -> LiveSource:
    """Return an answer as views follow it."""
    if isinstance(answer, Subscription):
        return SubscriptionSource(answer)
    target = getattr(answer, "_target", answer)  # behind the proxy of a db on another thread
    output = answer.output if isinstance(target, OrderedRead) else answer
    if output.ended:
        raise Closed(f"output {output.name} was released")
    return OutputSource(output, answer)
