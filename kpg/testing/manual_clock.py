"""A clock that stands still until a test advances it, so that nothing has to sleep."""

from __future__ import annotations


class ManualClock:
    """Seconds that pass only when told to; fits wherever a `now() -> float` is wanted.

    >>> clock = ManualClock()
    >>> clock.advance(1.5)
    >>> clock.now()
    1.5
    """

    __slots__ = ("_now",)

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """Seconds since the clock's own beginning."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass; like frontiers, clocks never go back."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} seconds")
        self._now += seconds
