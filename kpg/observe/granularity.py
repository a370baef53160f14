"""Granularity: changes held back to the next full interval, and consolidated there.

    held = EpochGranularity(10)          times 1..10 become 10, 11..20 become 20; 0 stays 0
    held.push(updates)
    held.take(upto=11)                   what is complete: all at times up to 10, each (row, time) once

    held = ClockGranularity(1.0)         by the clock on the wall: what comes at 3.2 s is given at 4 s or later

At every edge of an interval what was given sums up to what had come, and nothing is given in between: who asks gets at
most one set of changes for each interval. What waits is bounded by what differs between two edges, not by how often it
changed. A change exactly at an edge belongs to the interval that ends there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic

import numpy as np

from kpg.columns.consolidation import consolidate_all
from kpg.columns.selection import take as rows_of
from kpg.columns.updates import Ints, Updates, constant, spread
from kpg.errors import TypeMismatch

FEW = 10_000  # rows that may wait before those of an interval are summed up


class HeldUpdates:
    """Updates of some intervals, each by the edge at which it ends."""

    def __init__(self) -> None:
        self._parts: dict[float, list[Updates]] = {}
        self._rows: dict[float, int] = {}
        self._limits: dict[float, int] = {}

    def add(self, edge: float, updates: Updates) -> None:
        """More updates for an edge."""
        self._parts.setdefault(edge, []).append(updates)
        self._rows[edge] = self._rows.get(edge, 0) + len(updates)
        if self._rows[edge] > self._limits.get(edge, FEW):
            summed = self._sum(edge)
            self._parts[edge], self._rows[edge] = [summed], len(summed)
            self._limits[edge] = max(FEW, 2 * len(summed))  # each row is summed up a few times only

    def _sum(self, edge: float) -> Updates:
        """All updates of an edge at the time of the last."""
        parts = self._parts[edge]
        last = constant(tuple(max(part.times.max(axis=1).tolist() for part in parts)))
        return consolidate_all([Updates(part.data, last, part.diffs) for part in parts])

    def pop(self, upto: float) -> list[Updates]:
        """The updates of all edges at or before one, earlier first, each summed up."""
        found = []
        for edge in sorted(edge for edge in self._parts if edge <= upto):
            found.append(self._sum(edge))
            del self._parts[edge], self._rows[edge]
            self._limits.pop(edge, None)
        return [updates for updates in found if len(updates)]

    @property
    def next(self) -> float | None:
        """The first edge that something waits for."""
        return min(self._parts, default=None)

    @property
    def rows(self) -> int:
        """How many updates wait."""
        return sum(self._rows.values())


class EpochGranularity:
    """Delays updates to the next multiple of an interval of epochs."""

    def __init__(self, interval: int) -> None:
        if isinstance(interval, bool) or not isinstance(interval, int) or interval < 1:
            raise TypeMismatch(f"{interval!r} is not a number of epochs", hint="Say at least 1.")
        self.interval = interval
        self._held = HeldUpdates()

    def edge(self, epoch: int) -> int:
        """The end of the interval that an epoch is in."""
        return -(-epoch // self.interval) * self.interval

    def push(self, updates: Updates) -> None:
        """Updates have come, at times with one coordinate."""
        if not len(updates):
            return
        edges = -(-updates.times // self.interval) * self.interval
        if edges.shape[1] == 1:
            self._held.add(int(edges[0, 0]), Updates(updates.data, edges, updates.diffs))
            return
        spread_out = Updates(updates.data, edges, spread(updates.diffs, len(updates)))
        for edge in sorted(set(edges[0].tolist())):
            self._held.add(edge, rows_of(spread_out, places(edges[0], edge)))

    def take(self, upto: int | None) -> list[Updates]:
        """What is complete when all epochs before `upto` are; all if it is None: nothing comes any more."""
        return self._held.pop(math.inf if upto is None else upto - 1)

    def upto(self, upto: int) -> int:
        """All that comes later has this time or a later one, if all epochs before `upto` are complete."""
        return self.edge(upto)

    @property
    def rows(self) -> int:
        """How many updates wait."""
        return self._held.rows


class ClockGranularity:
    """Delays updates to the next full interval of a clock, in seconds; they are given at the time of the last."""

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
            raise TypeMismatch(f"{seconds!r} is not a number of seconds", hint="Say more than 0.")
        self.seconds = seconds
        self._clock = clock
        self._held = HeldUpdates()

    def push(self, updates: Updates) -> None:
        """Updates have come now."""
        if len(updates):
            self._held.add(math.ceil(self._clock() / self.seconds) * self.seconds, updates)

    def take(self) -> list[Updates]:
        """What is due."""
        return self._held.pop(self._clock())

    def take_all(self) -> list[Updates]:
        """All that waits: nothing comes any more."""
        return self._held.pop(math.inf)

    @property
    def due_in(self) -> float | None:
        """In how many seconds something is due; None if nothing waits."""
        edge = self._held.next
        return None if edge is None else max(0.0, edge - self._clock())

    @property
    def rows(self) -> int:
        """How many updates wait."""
        return self._held.rows


def places(times: Ints, time: int) -> Ints:
    """Where some times are this one."""
    found: Ints = np.flatnonzero(times == time)
    return found
