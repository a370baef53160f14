"""A queue of requests that enter a block one at a time, in the order of their arrival.

    with queue.turn():
        ...                     no other request is in a block of this queue; it may wait and pause

A request that waits for its turn lets others run, and can be cancelled there. A request that takes turns of several
queues takes them in one order everywhere, so that no two wait for each other. One that may not be left
(`db.uninterrupted()`) must not take a turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager


class RequestQueue:
    """The requests that are in a block, or wait to enter it."""

    def __init__(self, wait: Callable[[Future[None]], object]) -> None:
        self._wait = wait
        self._turns: deque[Future[None]] = deque()  # the first is that of the request in the block

    def __bool__(self) -> bool:
        """Return whether a request is in the block."""
        return bool(self._turns)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until all earlier requests have left the block; this one leaves it at the end of `with`."""
        turn: Future[None] = Future()
        self._turns.append(turn)
        try:
            if self._turns[0] is not turn:
                self._wait(turn)
            yield
        finally:
            was_first = self._turns[0] is turn
            self._turns.remove(turn)
            if was_first and self._turns:
                self._turns[0].set_result(None)
