"""Deferred work: output that an operator has begun to produce and sends in slices over several steps.

A huge output neither blocks the worker nor fills memory, because a step ends after about `SLICE_UPDATES` updates and
the operators downstream reduce these first. An item holds the batches it reads and the times it may send at. Items are
processed in the order in which they were added. Small slices at the same times are sent as one message.
A worker that runs in slices of time gets smaller slices of output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kpg.algebra.frontier import minimal
from kpg.columns.pause_points import can_pause, check_interrupt
from kpg.columns.updates import Updates, concatenate
from kpg.dataflow.operator import Times

SLICE_UPDATES = 1 << 20  # updates sent in one step, before other operators run
SHORT_SLICE_UPDATES = 1 << 15  # the same where the worker runs in slices of time: about a millisecond of work
MAX_MESSAGE_UPDATES = 1 << 18  # updates computed at once: Ctrl-C ends the work between two messages
LARGE_SLICE_UPDATES = 1 << 14  # from this size on, a message of its own is cheaper than a copy into a larger one

Work = TypeVar("Work")


def updates_per_step() -> int:
    """Return the number of updates to send in one step."""
    return SHORT_SLICE_UPDATES if can_pause() else SLICE_UPDATES


def updates_per_call() -> int:
    """Return the number of updates to compute at once."""
    return min(updates_per_step(), MAX_MESSAGE_UPDATES)


@dataclass(slots=True)
class DeferredItem(Generic[Work]):
    """Some work in progress, and the times its updates may be sent at."""

    work: Work
    times: Times


class DeferredWork(Generic[Work]):
    """A queue of the work that an operator has begun."""

    def __init__(self) -> None:
        self.queue: deque[DeferredItem[Work]] = deque()

    def __bool__(self) -> bool:
        return bool(self.queue)

    def append(self, work: Work, times: Times) -> None:
        """Add some work at the end."""
        self.queue.append(DeferredItem(work, times))

    def clear(self) -> None:
        """Drop all work."""
        self.queue.clear()

    def times(self) -> Times:
        """Return the minimal times at which deferred updates may still be sent."""
        return minimal(time for item in self.queue for time in item.times) if self.queue else ()

    @property
    def first_times(self) -> Times:
        """The times of the work in progress."""
        return self.queue[0].times

    def send_slice(
        self, next_slice: Callable[[Work, int], tuple[Updates | None, int]], send: Callable[[Updates, Times], None]
    ) -> None:
        """Do and send about one slice. `next_slice(work, budget)` returns updates, or None at the end, and the cost."""
        budget = updates_per_step()
        parts: list[Updates] = []
        times: Times = ()
        while self.queue and budget > 0:
            item = self.queue[0]
            if parts and item.times != times:
                send(concatenate(parts), times)
                parts = []
            times = item.times
            check_interrupt()
            updates, cost = next_slice(item.work, min(budget, MAX_MESSAGE_UPDATES))
            budget -= cost
            if updates is None:
                self.queue.popleft()
            elif len(updates) >= LARGE_SLICE_UPDATES:
                send(updates, times)
            elif len(updates):
                parts.append(updates)
        if parts:
            send(concatenate(parts), times)
