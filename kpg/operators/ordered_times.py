"""Operators that depend on the order of times: they process complete times one after the other, earlier epochs first.

A time (epoch, round) comes after all rounds of earlier epochs, although the partial order of times does not say so. So
an operator can keep decisions of earlier epochs, and its output at a time may depend on them. A subclass returns the
changes at one time from `process`, and may ask to be called at later rounds of the same epoch with `schedule`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from kpg.algebra.frontier import Frontier, minimal
from kpg.algebra.order import Time
from kpg.columns.updates import Updates, constant, spread
from kpg.dataflow.operator import Inputs, Operator
from kpg.errors import BadPlan
from kpg.operators.sealed_input import push
from kpg.trace.batcher import Batcher

Row: TypeAlias = tuple[int, ...]
Change: TypeAlias = tuple[Row, int]  # a row, and how often it is inserted (or removed)


class OrderedTimes(Operator):
    """Process the updates of each time, when all earlier times are complete."""

    waits_for_frontier = True

    def __init__(self, name: str, lanes: int, depth: int) -> None:
        super().__init__(name)
        if depth > 2:
            hint = "Use it outside of other loops, in a db whose times have one coordinate."
            raise BadPlan(
                f"{name} depends on the order of changes", detail=f"Times have {depth} parts here.", hint=hint
            )
        self.batcher = Batcher(lanes, depth)
        self.later_rows: dict[Time, set[Row]] = {}

    @abstractmethod
    def process(self, time: Time, changes: list[Change], scheduled: set[Row]) -> list[Change]:
        """Return the changes of the output at a time, given those of the input and the rows scheduled for it."""

    @abstractmethod
    def kept(self) -> Sequence[Row]:
        """Return the rows that it remembers."""

    def schedule(self, time: Time, row: Row) -> None:
        """Process a row again at a later round of the present epoch."""
        self.later_rows.setdefault(time, set()).add(row)

    def step(self, inputs: Inputs) -> bool:
        messages = inputs[0]
        arrived = bool(messages)
        while messages:
            push(self.batcher, messages.pop(0).payload)
        if arrived:
            self._hold_pending()  # before reading the frontier: in a loop, what is sent may come back to this input
        earliest = self._earliest_incomplete()
        sealed = self.batcher.seal(Frontier(later_times(earliest)))
        by_time = changes_by_time(sealed)
        while due := [time for time in (*by_time, *self.later_rows) if earliest is None or time < earliest]:
            time = min(due)
            changes = self.process(time, by_time.pop(time, []), self.later_rows.pop(time, set()))
            if changes:
                self._send(changes, time)
        self._hold_pending()
        return False

    def is_due(self) -> bool:
        earliest = self._earliest_incomplete()
        return any(earliest is None or time < earliest for time in self.held)

    def _earliest_incomplete(self) -> Time | None:
        """Return the first time, by epoch and then round, at which updates may still arrive; None if there is none."""
        return min(self.frontier(0).elements, default=None)

    def _hold_pending(self) -> None:
        self.hold(minimal((*self.batcher.pending().elements, *self.later_rows)))

    def _send(self, changes: list[Change], time: Time) -> None:
        lanes = len(changes[0][0])
        data = np.array([row for row, _ in changes], np.int64).reshape(len(changes), lanes).T.copy()
        diffs = np.array([[diff for _, diff in changes]], np.int64)
        self.send(Updates(data, constant(time), diffs), (time,))

    def state(self) -> Iterator[Updates]:
        yield from self.batcher.parts()
        rows = self.kept()
        if rows:
            data = np.array(rows, np.int64).reshape(len(rows), -1).T.copy()
            yield Updates(data, constant((0,) * self.batcher.depth), constant((1,)))

    def release(self) -> None:
        self.batcher = Batcher(self.batcher.lanes, self.batcher.depth)
        self.later_rows = {}


def later_times(time: Time | None) -> list[Time]:
    """Return a frontier that exactly the times at or after a given one are beyond, by epoch and then round."""
    if time is None:
        return []
    return [time] if len(time) == 1 else [time, (time[0] + 1, 0)]


def changes_by_time(updates: Updates) -> dict[Time, list[Change]]:
    """Return the changes at each time, sorted by row."""
    by_time: dict[Time, list[Change]] = {}
    n = len(updates)
    rows = zip(*updates.data.tolist(), strict=True) if updates.lanes else iter([()] * n)
    times = zip(*spread(updates.times, n).tolist(), strict=True)
    for row, time, diff in zip(rows, times, spread(updates.diffs, n)[0].tolist(), strict=True):
        by_time.setdefault(time, []).append((row, diff))
    return by_time
