"""The pauses between attempts to connect again: short at first, then longer, random, and limited in total.

    pauses = Backoff(60.0)
    pauses.after(error)            the seconds to sleep before the next attempt; raises the error if there is none

Both connections, the blocking one and the asyncio one, differ only in how they try and sleep.
Pauses are random so that the clients of a server that restarts do not all come back at the same moment.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from kpg.client.end_reasons import Refused
from kpg.errors import Unreachable

FIRST_PAUSE_SECONDS: Final = 0.05
MAX_PAUSE_SECONDS: Final = 2.0


class Backoff:
    """The pauses of one loss of the connection."""

    def __init__(self, total_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + total_seconds
        self._pause = FIRST_PAUSE_SECONDS

    def after(self, error: Unreachable) -> float:
        """Return the seconds to wait after an attempt that failed; raise its error if there is no further attempt."""
        pause = None if isinstance(error, Refused) else self.next_pause()
        if pause is None:
            raise error
        return pause

    def next_pause(self) -> float | None:
        """Return the seconds to wait before the next attempt; None if the time is over."""
        remaining = self._end - self._clock()
        if remaining <= 0:
            return None
        pause = min(remaining, self._pause * random.uniform(0.5, 1.0))
        self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)
        return pause
