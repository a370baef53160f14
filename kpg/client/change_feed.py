"""The state of an answer that a client follows: steps that have arrived, and the rows that the steps read add up to.

    rows()  ==  the answer at all times below `upto`          after each step that was read

A step is the changes from one complete time to the next, however many messages it took. Each step is read once, one by
one or all together, and acknowledged when it is read; the server sends no more than `credit` steps ahead.

Steps are numbered. When the connection is lost, half a step that has arrived is void, and the request on the new
connection (`resumption`) names the last whole one. The server continues after it, or sends the whole answer as a
`reset`. So each step is received once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from kpg.columns.schema import Schema
from kpg.errors import KpgError
from kpg.protocol.error_messages import error_of
from kpg.protocol.parts import FailureSpec
from kpg.protocol.replies import ChangesMessage, EndedMessage, InterestedReply
from kpg.protocol.requests import InterestRequest
from kpg.protocol.table_messages import schema_from, table_of

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Changes of an answer: iterate for (row, time, diff). After it the answer is exact at all times below `upto`."""

    upto: int
    changes: tuple[tuple[Row, int, int], ...]
    schema: Schema
    failed: KpgError | None = None  # why the answer has no value now; a later step may give it one again
    reset: bool = False  # whether the changes are the whole answer, and all rows before are void

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

    def __init__(self, reply: InterestedReply, request: InterestRequest | None = None) -> None:
        self.interest = reply.interest
        self.request = request  # the request that began it
        self.received = 0  # the number of the last step that has arrived whole
        self.arguments = None if request is None or request.arguments is None else list(request.arguments)
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
        if 0 < message.step <= self.received:
            return  # sent over a connection that was lost, and received before
        self._partial += zip(message.rows, message.times, message.diffs, strict=True)
        if message.more:
            return
        failed = error_of(message.failed) if message.failed else None
        self._steps.append(Step(message.upto, tuple(self._partial), self.schema, failed, message.reset))
        self._partial = []
        self.received = message.step

    def resumption(self, number: int) -> InterestRequest:
        """Return the request that continues after the last step received, on a new connection."""
        assert self.request is not None
        self._partial = []
        credit = None if self.request.credit is None else max(0, self.request.credit - self.waiting)
        arguments = None if self.arguments is None else tuple(self.arguments)
        return replace(self.request, id=number, credit=credit, arguments=arguments, step=self.received)

    def resume(self, reply: InterestedReply) -> None:
        """Take in the reply to `resumption`; unless it continues the interest, a reset follows."""
        self.interest = reply.interest
        if not reply.resumed:
            self.received = 0

    def add_arguments(self, arguments: Iterable[dict[str, Any]]) -> None:
        """Record arguments that the server has added."""
        if self.arguments is not None:
            self.arguments += [argument for argument in arguments if argument not in self.arguments]

    def remove_arguments(self, arguments: Iterable[dict[str, Any]]) -> None:
        """Record arguments that the server has removed."""
        if self.arguments is not None:
            removed = list(arguments)
            self.arguments = [argument for argument in self.arguments if argument not in removed]

    @property
    def waiting(self) -> int:
        """The number of unread steps."""
        return len(self._steps)

    def read(self) -> Step:
        """Remove the next step and add it to the rows."""
        step = self._steps.popleft()
        if step.reset:
            self._counts.clear()
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
        return [row for row, count in self.counts().items() for _ in range(count)]

    def counts(self) -> dict[Row, int]:
        """Return the rows of the steps that were read, each with its count."""
        if isinstance(self.ended, FailureSpec):
            raise error_of(self.ended)
        if self.failed is not None:
            raise self.failed
        return self._counts

    def table(self) -> pa.Table:
        """Return the rows of the steps that were read as an Arrow table."""
        return table_of(self.schema, self.rows())
