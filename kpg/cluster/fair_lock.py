"""A lock that is given in the order it is asked for, so that a busy thread does not starve the others.

    with turns: ...        may be nested by the thread that has it

A plain lock goes to whoever runs when it is let go, and that is the thread that let it go: a loop of requests on one
thread would keep the commits of a stream waiting for ever. Cost: a microsecond.
"""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """A re-entrant lock, first come, first served."""

    def __init__(self) -> None:
        self._inside = threading.Lock()
        self._waiting: deque[tuple[int, threading.Lock]] = deque()
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> FairLock:
        me = threading.get_ident()
        with self._inside:
            if self._owner in (me, None):
                self._owner, self._depth = me, self._depth + 1
                return self
            ticket = threading.Lock()
            ticket.acquire()
            self._waiting.append((me, ticket))
        try:
            ticket.acquire()  # whoever goes before lets us in
        except BaseException:
            self._give_up(me, ticket)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._inside:
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

    def _give_up(self, me: int, ticket: threading.Lock) -> None:
        """Interrupted while waiting: leave the queue, or pass on what was just given."""
        with self._inside:
            if (me, ticket) in self._waiting:
                self._waiting.remove((me, ticket))
            else:
                self._depth = 0
                self._pass_on()
