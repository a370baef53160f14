"""Futures: work that an operator has begun, done in slices so that no huge output blocks the worker or fills memory.

A future holds what it reads and the times it may be sent at. The first comes first; a step ends when about `SLICE`
updates were sent, and what is left is for the next step. Small slices of the same times are sent as one message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kpg.algebra.frontier import minimal
from kpg.columns.updates import Updates, concatenate
from kpg.dataflow.operator import Times

SLICE = 1 << 20  # updates that are sent before others have their turn
LARGE = 1 << 14  # updates that a message costs less than copying them does

Work = TypeVar("Work")


@dataclass(slots=True)
class Future(Generic[Work]):
    """Some work under way, and the times its updates may be sent at."""

    work: Work
    times: Times


class Futures(Generic[Work]):
    """What an operator has still to do, in the order it was begun."""

    def __init__(self) -> None:
        self._queue: deque[Future[Work]] = deque()

    def __bool__(self) -> bool:
        return bool(self._queue)

    def append(self, work: Work, times: Times) -> None:
        """Begin some work, after all else."""
        self._queue.append(Future(work, times))

    def clear(self) -> None:
        """Let go of all of it."""
        self._queue.clear()

    def times(self) -> Times:
        """The least times at which something may still be sent."""
        return minimal(time for future in self._queue for time in future.times) if self._queue else ()

    def work_off(
        self, next_slice: Callable[[Work, int], tuple[Updates | None, int]], send: Callable[[Updates, Times], None]
    ) -> None:
        """Do and send about a slice; `next_slice(work, budget)` gives updates, or None at the end, and the cost."""
        budget = SLICE
        parts: list[Updates] = []
        times: Times = ()
        while self._queue and budget > 0:
            future = self._queue[0]
            if parts and future.times != times:
                send(concatenate(parts), times)
                parts = []
            times = future.times
            updates, cost = next_slice(future.work, budget)
            budget -= cost
            if updates is None:
                self._queue.popleft()
            elif len(updates) >= LARGE:
                send(updates, times)
            elif len(updates):
                parts.append(updates)
        if parts:
            send(concatenate(parts), times)
