"""Flow control: whether the engine may take more changes of an interest, and more bytes for a client.

    FlowControl.is_open()  ==  no message of the interest is queued, and there is credit, if the client asked for it
    SendBudget.is_full     ==  the rows on their way to the client take `waiting_bytes` or more

The engine does not take changes of an interest while its flow is closed or the budget of its client is full. It
consolidates them instead, which needs no memory per step. A client that never reads holds at most its budget and the
changes of one interest, or the rows of one query, beyond it. Other clients are not affected.
"""

from __future__ import annotations

import threading
from typing import Final

MAX_CREDIT: Final = 1_000  # as the protocol allows for one message; a client cannot accumulate more


class FlowControl:
    """The flow of changes of one interest to its client."""

    def __init__(self, credit: int | None) -> None:
        self.credit = credit
        self.queued = False

    def is_open(self) -> bool:
        """Whether changes may be taken now."""
        return not self.queued and (self.credit is None or self.credit > 0)

    def mark_queued(self, steps: int = 1) -> None:
        """Record that steps were taken and are queued for sending."""
        self.queued = True
        if self.credit is not None:
            self.credit -= steps

    def mark_sent(self) -> None:
        """Record that the queued changes were sent."""
        self.queued = False

    def add_credit(self, credit: int) -> None:
        """Allow the client more changes."""
        if self.credit is not None:
            self.credit = min(self.credit + credit, MAX_CREDIT)


class SendBudget:
    """The bytes on their way to one client. The engine's thread adds to them, the event loop's thread removes them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """The bytes taken from the engine and not sent yet."""
        return self._bytes

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be taken."""
        return self._bytes >= self._limit

    def add(self, count: int) -> None:
        """Count bytes that were taken from the engine."""
        with self._lock:
            self._bytes += count

    def remove(self, count: int) -> bool:
        """Count bytes that were sent or discarded. Return whether the budget was full, and is no longer."""
        with self._lock:
            was_full = self.is_full
            self._bytes -= count
            return was_full and not self.is_full
