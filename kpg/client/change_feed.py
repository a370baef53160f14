"""The state of an answer that a client follows: steps that have arrived, and the rows that the steps read add up to.

    rows()  ==  the answer at all times below `upto`          after each step that was read

A step is the changes from one complete time to the next, however many messages it took. Each step is read once, one by
one or all together, and acknowledged when it is read; the server sends no more than `credit` steps ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kpg.columns.schema import Schema
from kpg.errors import KpgError
from kpg.protocol.error_messages import error_of
from kpg.protocol.parts import FailureSpec
from kpg.protocol.replies import ChangesMessage, EndedMessage, InterestedReply
from kpg.protocol.table_messages import schema_from, table_of

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Changes of an answer: iterate for (row, time, diff). After it the answer is exact at all times below `upto`."""

    upto: int
    changes: tuple[tuple[Row, int, int], ...]
    schema: Schema
    failed: KpgError | None = None  # why the answer has no value now; a later step may give it one again

    def __iter__(self) -> Iterator[tuple[Row, int, int]]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, with columns `_time` and `_diff`."""
        table = table_of(self.schema, [row for row, _, _ in self.changes])
        table = table.append_column("_time", pa.array([time for _, time, _ in self.changes], pa.int64()))
        return table.append_column("_diff", pa.array([diff for _, _, diff in self.changes], pa.int64()))

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame, with columns `_time` and `_diff`."""
        return self.to_arrow().to_pandas()


class ChangeFeed:
    """One interest of a client."""

    def __init__(self, reply: InterestedReply) -> None:
        self.interest = reply.interest
        self.name = reply.name
        self.schema = schema_from(reply.columns)
        self.upto = 0
        self.ended: FailureSpec | bool = False
        self.failed: KpgError | None = None
        self._counts: dict[Row, int] = {}
        self._steps: deque[Step] = deque()
        self._partial: list[tuple[Row, int, int]] = []

    def receive(self, message: ChangesMessage | EndedMessage) -> None:
        """Take in a message of this interest."""
        if isinstance(message, EndedMessage):
            self.ended = message.reason or True
            return
        self._partial += zip(message.rows, message.times, message.diffs, strict=True)
        if message.more:
            return
        failed = error_of(message.failed) if message.failed else None
        self._steps.append(Step(message.upto, tuple(self._partial), self.schema, failed))
        self._partial = []

    @property
    def waiting(self) -> int:
        """The number of unread steps."""
        return len(self._steps)

    def read(self) -> Step:
        """Remove the next step and add it to the rows."""
        step = self._steps.popleft()
        for row, _, diff in step.changes:
            count = self._counts.get(row, 0) + diff
            if count:
                self._counts[row] = count
            else:
                self._counts.pop(row, None)
        self.upto, self.failed = step.upto, step.failed
        return step

    def rows(self) -> list[Row]:
        """Return the rows of the steps that were read, each as often as its count."""
        if isinstance(self.ended, FailureSpec):
            raise error_of(self.ended)
        if self.failed is not None:
            raise self.failed
        return [row for row, count in self._counts.items() for _ in range(count)]

    def table(self) -> pa.Table:
        """Return the rows of the steps that were read as an Arrow table."""
        return table_of(self.schema, self.rows())
