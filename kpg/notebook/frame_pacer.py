"""When the next frame of a live view may be drawn: not too often, and not at the cost of other work.

    pause before a frame  =  max(interval, PAUSE_RATIO × the time that the last frame took)

So drawing takes at most a tenth of a core, however large the answer is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PAUSE_RATIO = 9.0  # of the time between frames to the time of a frame


class FramePacer:
    """The time at which one view may draw again."""

    def __init__(self, interval_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._due = clock()

    def wait_seconds(self) -> float:
        """Return the seconds until the next frame; 0 if it may be drawn now."""
        return max(0.0, self._due - self._clock())

    @contextmanager
    def frame(self) -> Iterator[None]:
        """Measure the drawing of a frame, and set the time of the next one."""
        began = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            self._due = ended + max(self._interval_seconds, PAUSE_RATIO * (ended - began))
