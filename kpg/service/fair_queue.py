"""A queue that several users share fairly: the one that has used the least time is served next.

    queue.put(user, client, item)
    user, client, item = queue.get()           waits for an item
    queue.charge(user, client, seconds)        what serving it took

The clients of a user take turns in the same way, so more connections of a user do not get it more turns. A user or
client that had nothing queued starts from the least time of those that wait. So a flood of one user delays another by
one item, and waiting earns no credit. The queue forgets a user when it has nothing queued and others have used as much,
and all when nothing is queued.
Thread-safe. Cost: the number of users, and of clients of one user, with queued items, for each `get`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable
from threading import Condition
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairTurns:
    """Users, or the clients of one, that wait for a turn, and the time that each has used."""

    def __init__(self) -> None:
        self.used: dict[Hashable, float] = {}
        self._waiting: dict[Hashable, None] = {}  # in the order in which they began to wait
        self._least = 0.0  # the time of the one that was served last

    def wait(self, name: Hashable) -> None:
        """Let one wait, unless it does already."""
        if name not in self._waiting:
            self._waiting[name] = None
            self.used[name] = max(self._least, self.used.get(name, 0.0))

    def choose(self) -> Hashable:
        """Return the one that has used the least time; forget those that have used no more and do not wait."""
        name = min(self._waiting, key=self.used.__getitem__)
        self._least = max(self._least, self.used[name])
        self.used = {each: used for each, used in self.used.items() if used > self._least or each in self._waiting}
        return name

    def leave(self, name: Hashable) -> None:
        """Let one wait no more."""
        del self._waiting[name]

    def charge(self, name: Hashable, seconds: float) -> None:
        """Add to the time that one has used; forget all if none waits."""
        self.used[name] = self.used.get(name, self._least) + seconds
        if not self._waiting:
            self.used.clear()

    def __bool__(self) -> bool:
        return bool(self._waiting)


class FairQueue(Generic[Item]):
    """Items by user and client, and the time that each has used."""

    def __init__(self) -> None:
        self._users = FairTurns()
        self._clients: defaultdict[Hashable, FairTurns] = defaultdict(FairTurns)  # by user
        self._items: defaultdict[tuple[Hashable, Hashable], deque[Item]] = defaultdict(deque)
        self._changed = Condition()

    def put(self, user: Hashable, client: Hashable, item: Item) -> None:
        """Add an item of a client of a user."""
        with self._changed:
            self._users.wait(user)
            self._clients[user].wait(client)
            self._items[user, client].append(item)
            self._changed.notify()

    def get(self) -> tuple[Hashable, Hashable, Item]:
        """Remove and return the first item of the client whose turn it is; wait if there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self._users)
            user = self._users.choose()
            clients = self._clients[user]
            client = clients.choose()
            items = self._items[user, client]
            item = items.popleft()
            if not items:
                del self._items[user, client]
                clients.leave(client)
            if not clients:
                self._users.leave(user)
            for forgotten in self._clients.keys() - self._users.used.keys():
                del self._clients[forgotten]
            return user, client, item

    def charge(self, user: Hashable, client: Hashable, seconds: float) -> None:
        """Add to the time that a client of a user has used."""
        with self._changed:
            self._users.charge(user, seconds)
            self._clients[user].charge(client, seconds)
