"""A lock that threads get in the order in which they ask for it, so that a busy thread does not starve the others.

    with lock: ...        re-entrant

A plain lock goes to the thread that runs when it is released, usually the one that released it: a loop of commands on
one thread would keep the commits of a stream waiting for ever. Cost: a microsecond.
"""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """A re-entrant lock, first come, first served."""

    def __init__(self) -> None:
        self._state = threading.Lock()  # guards the members below
        self._waiting: deque[tuple[int, threading.Lock]] = deque()
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> FairLock:
        thread = threading.get_ident()
        with self._state:
            if self._owner in (thread, None):
                self._owner, self._depth = thread, self._depth + 1
                return self
            ticket = threading.Lock()
            ticket.acquire()
            self._waiting.append((thread, ticket))
        try:
            ticket.acquire()  # released when this thread becomes the owner
        except BaseException:
            self._withdraw(thread, ticket)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._state:
            self._depth -= 1
            if not self._depth:
                self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            self._owner, ticket = self._waiting.popleft()
            self._depth = 1
            ticket.release()
        else:
            self._owner = None

    def _withdraw(self, thread: int, ticket: threading.Lock) -> None:
        """Leave the queue after an interrupt, or pass on the lock if this thread has just become its owner."""
        with self._state:
            if (thread, ticket) in self._waiting:
                self._waiting.remove((thread, ticket))
            else:
                self._depth = 0
                self._pass_on()
