"""Flow control of one interest: whether the engine may take more of its changes.

    is_open()  ==  no message of the interest is queued, and there is credit (or the client did not ask for credit)

The engine does not take changes of an interest while its flow is closed. It consolidates them instead, which needs no
memory per step: a client that never reads holds at most one message group per interest.
"""

from __future__ import annotations

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

    def mark_queued(self) -> None:
        """Record that changes were taken and are queued for sending."""
        self.queued = True
        if self.credit is not None:
            self.credit -= 1

    def mark_sent(self) -> None:
        """Record that the queued changes were sent."""
        self.queued = False

    def add_credit(self, credit: int) -> None:
        """Allow the client more changes."""
        if self.credit is not None:
            self.credit = min(self.credit + credit, MAX_CREDIT)
