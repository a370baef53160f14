"""Requests and changes of the last ten minutes, in intervals of two seconds: how many, and how long they took.

    history.add_request(0.004, failed=False)
    history.rows()     [(start, requests, failed, change rows, p50 and p99 of requests, p50 and p99 of changes), ...]

An interval without events has no row. Cost: a binary search for each event, and 300 intervals of some hundred bytes.
Events are added on the event loop's thread; any thread may read.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kpg.server.duration_histogram import DurationHistogram

INTERVAL_SECONDS: Final = 2.0
MAX_INTERVALS: Final = 300  # ten minutes
COLUMNS: Final = {
    "start": "float64", "seconds": "float64", "requests": "int64", "failed": "int64", "change_rows": "int64",
    "request_p50": "float64?", "request_p99": "float64?", "change_p50": "float64?", "change_p99": "float64?",
}  # fmt: skip


@dataclass(slots=True)
class ThroughputInterval:
    """The events of one interval."""

    start: float  # seconds since 1970
    failed: int = 0
    change_rows: int = 0
    requests: DurationHistogram = field(default_factory=DurationHistogram)
    changes: DurationHistogram = field(default_factory=DurationHistogram)


class ThroughputHistory:
    """The last intervals, the oldest first."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._intervals: deque[ThroughputInterval] = deque(maxlen=MAX_INTERVALS)

    def _current(self) -> ThroughputInterval:
        start = self._clock() // INTERVAL_SECONDS * INTERVAL_SECONDS
        if not self._intervals or self._intervals[-1].start != start:
            self._intervals.append(ThroughputInterval(start))
        return self._intervals[-1]

    def add_request(self, seconds: float, failed: bool) -> None:
        """Count a finished request."""
        interval = self._current()
        interval.requests.add(seconds)
        interval.failed += failed

    def add_change_rows(self, rows: int) -> None:
        """Count rows of changes that are sent."""
        self._current().change_rows += rows

    def add_change(self, seconds: float) -> None:
        """Count a step of changes that was sent."""
        self._current().changes.add(seconds)

    def rows(self) -> list[tuple[float | int | None, ...]]:
        """Return one row for each interval of the last ten minutes that has events."""
        oldest = self._clock() - MAX_INTERVALS * INTERVAL_SECONDS
        return [
            (
                one.start, INTERVAL_SECONDS, one.requests.count, one.failed, one.change_rows,
                one.requests.quantile(0.5), one.requests.quantile(0.99),
                one.changes.quantile(0.5), one.changes.quantile(0.99),
            )
            for one in tuple(self._intervals) if one.start >= oldest
        ]  # fmt: skip
