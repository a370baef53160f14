"""A queue that several clients share fairly: the one that has used the least time is served next.

    queue.put(client, item)
    client, item = queue.get()          waits for an item
    queue.charge(client, seconds)       what serving it took

A client that had nothing queued starts from the least time of those that wait. So a flood of one client delays another
by one item, and waiting earns no credit. The queue forgets a client when it has nothing queued and others have used as
much. Thread-safe. Cost: the number of clients with queued items, for each `get`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from threading import Condition
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items by client, and the time that each client has used."""

    def __init__(self) -> None:
        self._items: dict[Hashable, deque[Item]] = {}  # in the order in which clients began to wait
        self._used: dict[Hashable, float] = {}
        self._least = 0.0  # the time of the client that was served last
        self._changed = Condition()

    def put(self, client: Hashable, item: Item) -> None:
        """Add an item of a client."""
        with self._changed:
            if client not in self._items:
                self._items[client] = deque()
                self._used[client] = max(self._least, self._used.get(client, 0.0))
            self._items[client].append(item)
            self._changed.notify()

    def get(self) -> tuple[Hashable, Item]:
        """Remove and return the first item of the client that has used the least time; wait if there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self._items)
            client = min(self._items, key=lambda waiting: self._used[waiting])
            self._least = max(self._least, self._used[client])
            item = self._items[client].popleft()
            if not self._items[client]:
                del self._items[client]
            self._used = {name: used for name, used in self._used.items() if used > self._least or name in self._items}
            self._used.setdefault(client, self._least)
            return client, item

    def charge(self, client: Hashable, seconds: float) -> None:
        """Add to the time that a client has used."""
        with self._changed:
            self._used[client] = self._used.get(client, self._least) + seconds
