"""Clocks, memory and the machine.

Bulk figures are CPU time of this process, the least of several; latencies are wall time, by percentile. The machine is
described by what `np.sort` of 10M int64 takes on it in the same run: bars in seconds are stretched by that.
"""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
import psutil

if TYPE_CHECKING:
    import kpg

ROOT = Path(__file__).parent.parent
SORTED_ROWS = 10_000_000
USUAL_SORT_SECONDS = 0.17  # what the bars in seconds were written for
IDLE_TURNS = 100


class Observer(Protocol):
    """Told when a block of a named clock begins and ends: a profiler that looks at nothing else."""

    def begin(self, name: str) -> None: ...

    def end(self, name: str) -> None: ...


class Clock:
    """Collects the seconds that `with` blocks take, by some clock; CPU time beside it."""

    observer: ClassVar[Observer | None] = None

    def __init__(self, now: Callable[[], float], name: str) -> None:
        self.now = now
        self.name = name
        self.seconds: list[float] = []
        self.cpu_seconds: list[float] = []
        self._started = self._cpu_started = 0.0

    def __enter__(self) -> Clock:
        if Clock.observer is not None and self.name:
            Clock.observer.begin(self.name)
        self._cpu_started = time.process_time()
        self._started = self.now()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.seconds.append(self.now() - self._started)
        self.cpu_seconds.append(time.process_time() - self._cpu_started)
        if Clock.observer is not None and self.name:
            Clock.observer.end(self.name)

    @property
    def least(self) -> float:
        """The quickest block."""
        return min(self.seconds)

    @property
    def total(self) -> float:
        """All blocks together."""
        return sum(self.seconds)

    @property
    def p50_ms(self) -> float:
        """The median block."""
        return percentile_ms(self.seconds, 50)

    @property
    def p99_ms(self) -> float:
        """What one block of a hundred exceeds."""
        return percentile_ms(self.seconds, 99)

    def latencies(self) -> dict[str, float]:
        """The percentiles, by this clock and in CPU time: if these differ, the machine had something else to do."""
        return {
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "p50_cpu_ms": percentile_ms(self.cpu_seconds, 50),
            "p99_cpu_ms": percentile_ms(self.cpu_seconds, 99),
        }


def percentile_ms(seconds: list[float], percent: float) -> float:
    """The milliseconds that this share did not exceed."""
    return float(np.percentile(seconds, percent)) * 1e3


def cpu_clock(name: str = "") -> Clock:
    """A clock of the CPU time of this process: for bulk work. Blocks of a clock without a name are not profiled."""
    return Clock(time.process_time, name)


def wall_clock(name: str = "") -> Clock:
    """A clock of real time: for latencies."""
    return Clock(time.perf_counter, name)


def least_cpu_seconds(work: Callable[[], object], times: int = 3) -> float:
    """The least CPU time of doing some work several times."""
    clock = cpu_clock()
    for _ in range(times):
        with clock:
            work()
    return clock.least


def sort_seconds() -> float:
    """What np.sort of 10M random int64 takes here and now."""
    keys = np.random.default_rng(0).integers(0, 2**62, SORTED_ROWS)
    return least_cpu_seconds(lambda: np.sort(keys), times=5)


def machine(sorting: float) -> dict[str, object]:
    """Where this runs."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "np_sort_10m_seconds": round(sorting, 4),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def cpu_name() -> str:
    """The processor, as the system calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit() -> str:
    """The commit that is measured; a plus if files differ from it."""
    try:
        name = _git("rev-parse", "--short=10", "HEAD")
        return name + ("+" if _git("status", "--porcelain", "--untracked-files=no", "--", "kpg") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def resident_bytes() -> int:
    """What the process holds of the machine's memory, garbage collected first."""
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def load_kernels() -> None:
    """Have all kernels in this process, so that no round waits for one to be read from the cache."""
    from kpg.kernels.warm import load, warm

    warm()
    for _ in load():
        pass


def settle(db: kpg.Database) -> None:
    """Merge and compact until nothing is left to do; an epoch must pass first, for times up to it to be compacted."""
    db.advance()
    for _ in range(IDLE_TURNS):
        if not db.idle(10_000_000):
            return
