"""A clock that stands still until a test advances it, so that no test has to sleep."""

from __future__ import annotations


class ManualClock:
    """Seconds that pass only when a test advances them; usable wherever a `now() -> float` is expected.

    >>> clock = ManualClock()
    >>> clock.advance(1.5)
    >>> clock.now()
    1.5
    """

    __slots__ = ("_now",)

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """Return the seconds since the clock's start."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass; like a frontier, a clock never goes back."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} seconds")
        self._now += seconds
