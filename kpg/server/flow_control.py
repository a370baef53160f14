"""Whether more changes of an interest may be taken from the engine.

    open()  ==  no message of it waits to be sent, and there is credit (or the client did not ask for credit)

While a flow is closed its interest is not taken, so what happens meanwhile is consolidated by the engine and costs no
memory per step: a client that never reads holds at most one message for each interest.
"""

from __future__ import annotations


class FlowControl:
    """The output of one interest to its client."""

    def __init__(self, credit: int | None) -> None:
        self.credit = credit
        self.waiting = False

    def open(self) -> bool:
        """Whether changes may be taken now."""
        return not self.waiting and (self.credit is None or self.credit > 0)

    def queue(self) -> None:
        """Changes were taken and wait to be sent."""
        self.waiting = True
        if self.credit is not None:
            self.credit -= 1

    def sent(self) -> None:
        """They are on their way."""
        self.waiting = False

    def acknowledge(self, credit: int) -> None:
        """The client wants more."""
        if self.credit is not None:
            self.credit = min(self.credit + credit, 1_000)
