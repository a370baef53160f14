"""The queue of messages to one client, in order. Messages are encoded only when they are sent.

    wait_for_room()     return when fewer than `max_groups` groups are queued, and the client's budget is not full

The reader of a client's requests waits for room; changes of interests do not. There is at most one group of changes per
interest (see `kpg.server.flow_control`), so the queue is bounded by `max_groups` + the number of interests.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kpg.protocol.replies import AnyReply
from kpg.server.flow_control import SendBudget


@dataclass(frozen=True, slots=True)
class QueuedMessages:
    """A group of messages, and a function to call when they are sent."""

    messages: Iterable[AnyReply]
    on_sent: Callable[[], None] | None = None


class Outbox:
    """A queue with one reader, used on the event loop's thread only."""

    def __init__(self, max_groups: int, budget: SendBudget) -> None:
        self._max_groups = max_groups
        self._budget = budget
        self._groups: deque[QueuedMessages] = deque()
        self._not_empty = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    def __len__(self) -> int:
        return len(self._groups)

    def put(self, group: QueuedMessages) -> None:
        """Append a group of messages."""
        self._groups.append(group)
        self._not_empty.set()
        self.update_room()

    def update_room(self) -> None:
        """Note that groups were added or bytes were sent."""
        if len(self._groups) < self._max_groups and not self._budget.is_full:
            self._has_room.set()
        else:
            self._has_room.clear()

    async def wait_for_room(self) -> None:
        """Wait until fewer than `max_groups` groups are queued, and the budget of the client is not full."""
        await self._has_room.wait()

    async def next(self) -> tuple[Iterator[AnyReply], Callable[[], None] | None]:
        """Wait for the next group of messages, and return it with its callback."""
        while not self._groups:
            self._not_empty.clear()
            await self._not_empty.wait()
        group = self._groups.popleft()
        self.update_room()
        return iter(group.messages), group.on_sent
