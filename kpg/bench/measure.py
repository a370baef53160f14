"""Stopwatches, memory, and the state in which a measurement starts.

Bulk work is measured in CPU time of this process, because other processes of the machine do not change it. Latencies
are wall time, summarised by percentiles. The machine's speed is the CPU time of `np.sort` on 10M int64 in the same run.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from kpg.api.kept_memory import return_freed_memory
from kpg.columns.helper_thread import submit

if TYPE_CHECKING:
    from kpg.api.contracts import Database
    from kpg.api.embedded_database import EmbeddedDatabase

STATM = Path("/proc/self/statm")
SORTED_ROWS = 10_000_000
USUAL_SORT_SECONDS = 0.17  # np.sort of SORTED_ROWS on the machine that limits in seconds were set for
IDLE_FUEL = 10_000_000  # updates merged by one call of `db.idle`


class StopwatchObserver(Protocol):
    """Notified when a block of a named stopwatch begins and ends. A profiler uses this to profile only such blocks."""

    def begin(self, name: str) -> None: ...

    def end(self, name: str) -> None: ...


class Stopwatch:
    """Collects the seconds of its `with` blocks by one clock, and their CPU seconds.

    Reading the CPU clock happens outside of the measured interval. Blocks of a stopwatch without a name are not
    profiled.
    """

    observer: ClassVar[StopwatchObserver | None] = None

    def __init__(self, name: str = "", now: Callable[[], float] = time.perf_counter) -> None:
        self.name = name
        self.now = now
        self.seconds: list[float] = []
        self.cpu_seconds: list[float] = []
        self._started = self._cpu_started = 0.0

    def __enter__(self) -> Stopwatch:
        if Stopwatch.observer is not None and self.name:
            Stopwatch.observer.begin(self.name)
        self._cpu_started = time.process_time()
        self._started = self.now()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.seconds.append(self.now() - self._started)
        self.cpu_seconds.append(time.process_time() - self._cpu_started)
        if Stopwatch.observer is not None and self.name:
            Stopwatch.observer.end(self.name)

    @property
    def least(self) -> float:
        """The seconds of the shortest block."""
        return min(self.seconds)

    @property
    def total(self) -> float:
        """The seconds of all blocks."""
        return sum(self.seconds)

    @property
    def mean(self) -> float:
        """The mean seconds of a block."""
        return self.total / len(self.seconds)

    @property
    def p50_ms(self) -> float:
        """The median block, in milliseconds."""
        return percentile_ms(self.seconds, 50)

    @property
    def p99_ms(self) -> float:
        """The 99th percentile of the blocks, in milliseconds."""
        return percentile_ms(self.seconds, 99)

    def percentiles(self) -> dict[str, float]:
        """Return the percentiles of a row, by this clock and in CPU time.

        Where the two differ, other processes used the core meanwhile.
        """
        return {
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "p50_cpu_ms": percentile_ms(self.cpu_seconds, 50),
            "p99_cpu_ms": percentile_ms(self.cpu_seconds, 99),
        }


def cpu_stopwatch(name: str = "") -> Stopwatch:
    """Return a stopwatch of this process's CPU time, for bulk work."""
    return Stopwatch(name, time.process_time)


def wall_stopwatch(name: str = "") -> Stopwatch:
    """Return a stopwatch of wall time, for latencies."""
    return Stopwatch(name, time.perf_counter)


def percentile_ms(seconds: Sequence[float], percent: float) -> float:
    """Return a percentile of seconds, in milliseconds."""
    return float(np.percentile(seconds, percent)) * 1e3


def latency_summary(seconds: Sequence[float]) -> dict[str, float]:
    """Return the percentiles and the maximum that the papers' tables show."""
    return {
        "p50_ms": percentile_ms(seconds, 50),
        "p99_ms": percentile_ms(seconds, 99),
        "max_ms": max(seconds) * 1e3,
    }


def least_cpu_seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the least CPU time of several calls of `work`."""
    stopwatch = cpu_stopwatch()
    for _ in range(times):
        with stopwatch:
            work()
    return stopwatch.least


def sort_seconds() -> float:
    """Return the CPU time of np.sort on 10M random int64, here and now."""
    keys = np.random.default_rng(0).integers(0, 2**62, SORTED_ROWS)
    return least_cpu_seconds(lambda: np.sort(keys), times=5)


def resident_bytes() -> int:
    """Return the resident memory of this process; where the system does not report it, its maximum so far."""
    if STATM.exists():
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    return peak_resident_bytes()


def peak_resident_bytes() -> int:
    """Return the maximum of this process's resident memory so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def collected_resident_bytes() -> int:
    """Collect garbage, return freed memory to the system, then return the resident memory of this process."""
    gc.collect()
    return_freed_memory()
    return resident_bytes()


class MemorySampler:
    """Samples the resident memory on a thread of its own while a `with` block runs."""

    def __init__(self, every_seconds: float = 0.1) -> None:
        self.every_seconds = every_seconds
        self.points: list[tuple[float, float]] = []  # seconds since the start, bytes
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._began = 0.0

    def __enter__(self) -> MemorySampler:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()
        self._sample()

    def _run(self) -> None:
        self._sample()
        while not self._end.wait(self.every_seconds):
            self._sample()

    def _sample(self) -> None:
        self.points.append((time.monotonic() - self._began, float(resident_bytes())))


def load_kernels() -> None:
    """Load all kernels into this process, so that no measured round reads one from the cache.

    Processes that an experiment starts use machine code from their first call on.
    """
    os.environ["KPG_KERNELS"] = "compiled"
    from kpg.kernels.warm import load, warm

    warm()
    for _ in load():
        pass


def settle(db: Database) -> None:
    """Merge and compact the traces of a db until no work is left, also for the helper thread, which sorts large loads.

    The epoch advances first, because only times before the current epoch can be compacted.
    """
    db.advance()
    for _ in range(2):  # what the helper thread has sorted takes the place of the load when the db is idle again
        while db.idle(IDLE_FUEL):
            pass
        submit(gc.collect).result()


def array_bytes(db: Database) -> int:
    """Return the bytes of all arrays in the traces of an embedded db."""
    return sum(spine.nbytes for spine in embedded(db).spines())


def trace_rows(db: Database) -> int:
    """Return the rows of all traces of an embedded db."""
    return sum(spine.rows for spine in embedded(db).spines())


def embedded(db: Database) -> EmbeddedDatabase:
    """Return a db as one that runs in this process, which gives access to its traces and dataflows."""
    from kpg.api.embedded_database import EmbeddedDatabase

    assert isinstance(db, EmbeddedDatabase)
    return db
