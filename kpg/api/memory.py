"""The memory limit: an error that names the limit and what grew, before the machine runs out of memory.

The limit applies to the resident memory of this process, without freed memory that is kept for reuse
(kpg.api.kept_memory). It is checked when rows are inserted, between the steps of operators, between the rounds of
recursions, before large allocations (kpg.columns.memory_budget), and after each advance. A check costs microseconds,
and is made only if there is a limit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from kpg.api.kept_memory import return_freed_memory
from kpg.errors import OverBudget

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
CHECK_SECONDS = 0.01  # between two checks of tens of microseconds: a computation fills some ten megabytes in this time
MAX_REPORT_SHARE = 200  # reports take at most one part of this many of the time
HINT = (
    "Release unused answers and arrangements, remove rows, "
    "or raise the limit: memory_limit= of kpg.open, kpg serve --max-memory BYTES."
)
SHARE_OF_WRITERS = 20  # computations leave this part of the limit to rows that are inserted, and to their indexes


def resident_bytes() -> int:
    """Return the resident memory of this process; where the system does not say, its peak."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE_BYTES
    except OSError:  # not Linux
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def exceeds(limit: int, more: int = 0) -> bool:
    """Return whether the live memory of this process, with `more` bytes, exceeds a limit."""
    if resident_bytes() + more <= limit:
        return False
    return_freed_memory()
    return resident_bytes() + more > limit


class Memory:
    """A limit in bytes, or none. `describe` returns what holds the memory, for the error."""

    def __init__(self, limit: int | None, describe: Callable[[], str] = str) -> None:
        self.limit = limit
        self.describe = describe
        self.hint = HINT
        self._spare_bytes = 0
        self._next_measurement = 0.0

    @property
    def spare_bytes(self) -> int | None:
        """The memory that the process may still use, as of a moment ago; None without a limit."""
        if self.limit is None:
            return None
        now = monotonic()
        if now >= self._next_measurement:
            self._next_measurement = now + CHECK_SECONDS
            self._spare_bytes = max(0, self.limit - resident_bytes())
        return self._spare_bytes

    @contextmanager
    def unchecked(self) -> Iterator[None]:
        """Let the block use memory above the limit."""
        limit, self.limit = self.limit, None
        try:
            yield
        finally:
            self.limit = limit

    def check(self, more: int = 0) -> None:
        """Raise if the process, with `more` bytes, would exceed the limit."""
        if self.limit is not None and exceeds(self.limit, more):
            raise self._error(more)

    def check_computation(self, more: int = 0) -> None:
        """Raise if a computation with `more` bytes would use what it leaves to writers, who must not be refused."""
        if self.limit is not None and exceeds(self.limit - self.limit // SHARE_OF_WRITERS, more):
            raise self._error(more)

    def _error(self, more: int) -> OverBudget:
        wanted = f"; asked for: {more:,} more" if more else ""
        held = f"Held: {resident_bytes():,} bytes{wanted}."
        return OverBudget(
            f"over the memory limit of {self.limit:,} bytes",
            detail=" ".join(part for part in (self.describe(), held) if part),
            hint=self.hint,
        )


class Watch:
    """Called while a worker runs: checks the memory, and reports progress if a report is due."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.report: Callable[[], None] | None = None
        self.report_seconds = 1.0
        self._next_check = 0.0
        self._next_report = 0.0

    def __call__(self, more: int = 0) -> None:
        """Check whether the process may use `more` bytes; without any, look only every few milliseconds."""
        now = monotonic()
        if more or now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            self.memory.check_computation(more)
            if self.report is not None and now >= self._next_report:
                self.report()
                done = monotonic()
                self._next_report = done + max(self.report_seconds, MAX_REPORT_SHARE * (done - now))
