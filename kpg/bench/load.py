"""An open-loop load: work arrives when it is due, whether or not what came before is done.

    tick k is due at  start + k * tick_seconds,  and its latency is  (when its work was done) - (when it was due)

All ticks that are due are handed to `work` at once, so a system that falls behind gets larger pieces and no tick
waits unseen: nothing is measured from the moment the system happened to be ready. Each tick stands for equally many
updates. A system that cannot keep up is stopped after `patience` times the planned duration: it is `saturated`, and
ticks that were never served count with the time they have waited by then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

TICK_SECONDS = 0.001
SPIN_SECONDS = 0.0001


class Time(Protocol):
    """A clock that can be waited on; tests bring their own."""

    def now(self) -> float: ...

    def wait(self, seconds: float) -> None: ...


class RealTime:
    """The clock on the wall."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.perf_counter()

    def wait(self, seconds: float) -> None:
        """Sleep the most of it and spin the rest: a sleep may be a tenth of a millisecond late. No longer than that:
        workers need the core."""
        until = time.perf_counter() + seconds
        if seconds > 2 * SPIN_SECONDS:
            time.sleep(seconds - SPIN_SECONDS)
        while time.perf_counter() < until:
            pass


@dataclass(frozen=True, slots=True)
class Served:
    """What became of the ticks of a load."""

    latencies: list[float]  # seconds, a tick each
    calls: int  # of work: how many pieces the ticks were done in
    saturated: bool


def open_loop(
    work: Callable[[int, int], None],
    ticks: int,
    tick_seconds: float = TICK_SECONDS,
    patience: float = 2.0,
    time: Time | None = None,
) -> Served:
    """Offer ticks 0 .. ticks - 1; `work(first, last)` is to do those in [first, last)."""
    time = time or RealTime()
    start, done, calls, limit = time.now(), 0, 0, patience * ticks * tick_seconds
    latencies: list[float] = []
    while done < ticks:
        elapsed = time.now() - start
        if elapsed > limit:
            waiting = [elapsed - each * tick_seconds for each in range(done, ticks) if each * tick_seconds <= elapsed]
            return Served(latencies + waiting, calls, saturated=True)
        due = min(ticks, int(elapsed / tick_seconds + 1e-9) + 1)
        if due <= done:
            time.wait(done * tick_seconds - elapsed)
            continue
        work(done, due)
        finished = time.now() - start
        latencies += [finished - each * tick_seconds for each in range(done, due)]
        done, calls = due, calls + 1
    return Served(latencies, calls, saturated=time.now() - start > limit)
