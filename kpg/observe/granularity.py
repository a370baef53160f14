"""Granularity: delay updates to the end of an interval, and consolidate them there.

    delayed = EpochGranularity(10)       times 1..10 become 10, 11..20 become 20; 0 stays 0
    delayed.push(updates)
    delayed.take(upto=11)                the complete updates: all at times up to 10, each (row, time) once

    delayed = ClockGranularity(1.0)      by the wall clock: updates pushed at 3.2 s are due at 4 s

At the end of each interval the updates taken sum up to those pushed, and none are taken in between: a caller gets at
most one set of updates per interval. Memory is bounded by the difference between the two ends of an interval, not by
the number of changes within it. An update exactly at an end belongs to the interval that ends there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain
from time import monotonic

import numpy as np

from kpg.columns.consolidation import consolidate_all
from kpg.columns.selection import take as take_rows
from kpg.columns.updates import Ints, Updates, constant, spread
from kpg.errors import TypeMismatch

CONSOLIDATION_ROWS = 10_000  # delayed rows of an interval above which they are consolidated


class DelayedUpdates:
    """Updates by the end of the interval that they belong to (its edge)."""

    def __init__(self) -> None:
        self._parts: dict[float, list[Updates]] = {}
        self._rows: dict[float, int] = {}
        self._limits: dict[float, int] = {}

    def add(self, edge: float, updates: Updates) -> None:
        """Add updates to an interval."""
        self._parts.setdefault(edge, []).append(updates)
        self._rows[edge] = self._rows.get(edge, 0) + len(updates)
        if self._rows[edge] > self._limits.get(edge, CONSOLIDATION_ROWS):
            consolidated = self._consolidate(edge)
            self._parts[edge], self._rows[edge] = [consolidated], len(consolidated)
            # Doubling makes the cost of consolidation linear in the number of updates.
            self._limits[edge] = max(CONSOLIDATION_ROWS, 2 * len(consolidated))

    def _consolidate(self, edge: float) -> Updates:
        """Return the updates of an interval, consolidated at the time of the last."""
        parts = self._parts[edge]
        last = constant(tuple(max(part.times.max(axis=1).tolist() for part in parts)))
        return consolidate_all([Updates(part.data, last, part.diffs) for part in parts])

    def parts(self) -> Iterator[Updates]:
        """Yield all updates."""
        return chain.from_iterable(self._parts.values())

    def pop(self, upto: float) -> list[Updates]:
        """Remove and return the updates of all intervals that end by `upto`, earlier first, each consolidated."""
        due = []
        for edge in sorted(edge for edge in self._parts if edge <= upto):
            due.append(self._consolidate(edge))
            del self._parts[edge], self._rows[edge]
            self._limits.pop(edge, None)
        return [updates for updates in due if len(updates)]

    @property
    def next(self) -> float | None:
        """The earliest end of an interval with updates."""
        return min(self._parts, default=None)

    @property
    def rows(self) -> int:
        """The number of delayed updates."""
        return sum(self._rows.values())


class EpochGranularity:
    """Delays updates to the next multiple of a number of epochs."""

    def __init__(self, interval: int) -> None:
        if isinstance(interval, bool) or not isinstance(interval, int) or interval < 1:
            raise TypeMismatch(f"{interval!r} is not a number of epochs", hint="Give an integer of at least 1.")
        self.interval = interval
        self._delayed = DelayedUpdates()

    def edge(self, epoch: int) -> int:
        """Return the end of the interval that contains an epoch."""
        return -(-epoch // self.interval) * self.interval

    def push(self, updates: Updates) -> None:
        """Add updates, at times with one coordinate."""
        if not len(updates):
            return
        edges = -(-updates.times // self.interval) * self.interval
        if edges.shape[1] == 1:
            self._delayed.add(int(edges[0, 0]), Updates(updates.data, edges, updates.diffs))
            return
        spread_out = Updates(updates.data, edges, spread(updates.diffs, len(updates)))
        for edge in sorted(set(edges[0].tolist())):
            self._delayed.add(edge, take_rows(spread_out, positions_of(edges[0], edge)))

    def take(self, upto: int | None) -> list[Updates]:
        """Return the updates of complete intervals if all epochs before `upto` are complete; None returns all."""
        return self._delayed.pop(math.inf if upto is None else upto - 1)

    def parts(self) -> Iterator[Updates]:
        """Yield the delayed updates."""
        return self._delayed.parts()

    def upto(self, upto: int) -> int:
        """Return the least time of later updates if all epochs before `upto` are complete."""
        return self.edge(upto)

    @property
    def rows(self) -> int:
        """The number of delayed updates."""
        return self._delayed.rows


class ClockGranularity:
    """Delays updates to the next multiple of some seconds on a clock, and consolidates them at the time of the last."""

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
            raise TypeMismatch(f"{seconds!r} is not a number of seconds", hint="Give a number above 0.")
        self.seconds = seconds
        self._clock = clock
        self._delayed = DelayedUpdates()

    def push(self, updates: Updates) -> None:
        """Add updates now."""
        if len(updates):
            self._delayed.add(math.ceil(self._clock() / self.seconds) * self.seconds, updates)

    def take(self) -> list[Updates]:
        """Return the updates that are due."""
        return self._delayed.pop(self._clock())

    def parts(self) -> Iterator[Updates]:
        """Yield the delayed updates."""
        return self._delayed.parts()

    def take_all(self) -> list[Updates]:
        """Return all delayed updates."""
        return self._delayed.pop(math.inf)

    @property
    def due_in(self) -> float | None:
        """The seconds until updates are due; None if there are none."""
        edge = self._delayed.next
        return None if edge is None else max(0.0, edge - self._clock())

    @property
    def rows(self) -> int:
        """The number of delayed updates."""
        return self._delayed.rows


def positions_of(times: Ints, time: int) -> Ints:
    """Return the positions of a time among times."""
    positions: Ints = np.flatnonzero(times == time)
    return positions
