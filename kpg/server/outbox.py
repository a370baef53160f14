"""What waits to be sent to one client: in order, made into text only when its turn comes.

    room()     True while fewer than `most` parcels wait; whoever feeds it from the client's own requests waits for it

Changes of interests come past the bound, at most one message group for each (see `kpg.server.flow_control`), so what waits is
bounded by `most` + the number of interests, whatever the client does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kpg.protocol.replies import AnyReply


@dataclass(frozen=True, slots=True)
class QueuedMessages:
    """Messages that belong together, and what to do when they are on their way."""

    messages: Iterable[AnyReply]
    sent: Callable[[], None] | None = None


class Outbox:
    """A queue with one reader; used on the event loop's thread only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[QueuedMessages] = deque()
        self._something = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, batch: QueuedMessages) -> None:
        """Add messages."""
        self._waiting.append(batch)
        self._something.set()
        if len(self._waiting) >= self._most:
            self._room.clear()

    async def room(self) -> None:
        """Wait until there is room for more."""
        await self._room.wait()

    async def next(self) -> tuple[Iterator[AnyReply], Callable[[], None] | None]:
        """The messages to send next; wait for them."""
        while not self._waiting:
            self._something.clear()
            await self._something.wait()
        batch = self._waiting.popleft()
        if len(self._waiting) < self._most:
            self._room.set()
        return iter(batch.messages), batch.sent
