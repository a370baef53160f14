"""How often changes of an interest are taken, if its client asked for a granularity: at full intervals, after a first
word at once. What happens in between is consolidated."""

from __future__ import annotations

import math


class Pace:
    """The intervals of one interest."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.due = -math.inf

    def took(self, now: float) -> None:
        """Changes were taken; the next ones not before the next full interval."""
        self.due = (math.floor(now / self.seconds) + 1) * self.seconds
