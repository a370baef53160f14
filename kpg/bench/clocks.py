"""Clocks and memory: CPU time for bulk work, wall time for latencies, the resident set as it goes up and down."""

from __future__ import annotations

import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

STATM = Path("/proc/self/statm")


class Clock:
    """Collects the seconds that `with` blocks take."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.now = now
        self.seconds: list[float] = []
        self._started = 0.0

    def __enter__(self) -> Clock:
        self._started = self.now()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.seconds.append(self.now() - self._started)

    @property
    def total(self) -> float:
        """All blocks together."""
        return sum(self.seconds)

    @property
    def last(self) -> float:
        """The block that ended last."""
        return self.seconds[-1]


def cpu_clock() -> Clock:
    """A clock of the CPU time of this process."""
    return Clock(time.process_time)


def percentile_ms(seconds: Sequence[float], percent: float) -> float:
    """The milliseconds that this share did not exceed."""
    return float(np.percentile(seconds, percent)) * 1e3


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """The percentiles that tables show."""
    return {
        "p50_ms": percentile_ms(seconds, 50),
        "p99_ms": percentile_ms(seconds, 99),
        "max_ms": max(seconds) * 1e3,
    }


def resident_bytes() -> int:
    """What the process holds of the machine's memory now; where the system does not say, the most it ever held."""
    if STATM.exists():
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


class Watch:
    """Looks at the resident set now and then, on a thread of its own, while a `with` block runs."""

    def __init__(self, every_seconds: float = 0.1) -> None:
        self.every_seconds = every_seconds
        self.points: list[tuple[float, float]] = []  # seconds since the start, bytes
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._began = 0.0

    def __enter__(self) -> Watch:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()
        self._note()

    def _look(self) -> None:
        self._note()
        while not self._end.wait(self.every_seconds):
            self._note()

    def _note(self) -> None:
        self.points.append((time.monotonic() - self._began, float(resident_bytes())))
