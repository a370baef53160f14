"""An open-loop load: work is due at fixed times, independently of whether earlier work is done.

    tick k is due at  start + k * tick_seconds,  and its latency is  (when its work was done) - (when it was due)

All due ticks are given to `work` in one call, so a slow system gets larger pieces and the wait of every tick counts:
no latency starts when the system happens to be ready (no coordinated omission). Each tick stands for equally many
updates. A system that cannot keep up is stopped after `patience` times the planned duration: it is `saturated`, and
ticks that were never served count with the time they have waited by then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

TICK_SECONDS = 0.001
SPIN_SECONDS = 0.0001  # a sleep may end this much late


class TickClock(Protocol):
    """A clock that can wait; tests provide their own."""

    def now(self) -> float: ...

    def wait(self, seconds: float) -> None: ...


class WallTime:
    """The system's clock."""

    def now(self) -> float:
        """Return the seconds since some fixed moment."""
        return time.perf_counter()

    def wait(self, seconds: float) -> None:
        """Sleep for most of the time and spin for the rest, because a sleep ends late.

        The spin is short, because workers need the core.
        """
        until = time.perf_counter() + seconds
        if seconds > 2 * SPIN_SECONDS:
            time.sleep(seconds - SPIN_SECONDS)
        while time.perf_counter() < until:
            pass


@dataclass(frozen=True, slots=True)
class ServedLoad:
    """The latencies of a load's ticks."""

    latencies: list[float]  # seconds of each tick
    calls: int  # of `work`
    saturated: bool


def open_loop(
    work: Callable[[int, int], None],
    ticks: int,
    tick_seconds: float = TICK_SECONDS,
    patience: float = 2.0,
    time: TickClock | None = None,
) -> ServedLoad:
    """Offer ticks 0 .. ticks - 1; `work(first, last)` must do those in [first, last)."""
    time = time or WallTime()
    start, done, calls, limit = time.now(), 0, 0, patience * ticks * tick_seconds
    latencies: list[float] = []
    while done < ticks:
        elapsed = time.now() - start
        if elapsed > limit:
            waiting = [elapsed - tick * tick_seconds for tick in range(done, ticks) if tick * tick_seconds <= elapsed]
            return ServedLoad(latencies + waiting, calls, saturated=True)
        due = min(ticks, int(elapsed / tick_seconds + 1e-9) + 1)
        if due <= done:
            time.wait(done * tick_seconds - elapsed)
            continue
        work(done, due)
        finished = time.now() - start
        latencies += [finished - tick * tick_seconds for tick in range(done, due)]
        done, calls = due, calls + 1
    return ServedLoad(latencies, calls, saturated=time.now() - start > limit)
