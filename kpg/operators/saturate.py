"""Saturate: a recursion over collections that only grow, as one operator.

    output i, accumulated to t  =  the least relation i that the rules derive from the inputs, accumulated to t

Input i are rows of relation i from outside; each derived relation has an output. A time is worked off once all inputs
have passed it, in order of time, from the rows that are new at it. It holds no updates but those that wait: the
relations are sets of row numbers (`kpg.growth`). A retraction is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.updates import Ints, Updates, constant
from kpg.dataflow.channel import Pipeline
from kpg.dataflow.graph import Dataflow, Stream
from kpg.dataflow.operator import Inputs, Operator
from kpg.errors import InsertOnly
from kpg.growth.growth import Growth
from kpg.growth.rules import System
from kpg.operators.sealing import push
from kpg.trace.batcher import Batcher


class Saturate(Operator):
    """Keeps the least relations that some rules derive."""

    waits = True

    def __init__(self, system: System) -> None:
        super().__init__(f"saturate {system.name}")
        self.growth = Growth(system)
        self.batchers = [Batcher(arity, 1) for arity in system.arities]

    def passed(self) -> Frontier:
        """What may still arrive at any input."""
        upper = CLOSED
        for index in range(len(self.batchers)):
            upper = upper.meet(self.frontier(index))
        return upper

    def due(self) -> bool:
        passed = self.passed()
        return any(not passed.beyond(time) for time in self.held)

    def step(self, inputs: Inputs) -> bool:
        for batcher, messages in zip(self.batchers, inputs, strict=True):
            for message in messages:
                push(batcher, message.payload)
        passed = self.passed()
        if any(not passed.beyond(time) for time in self.usable):
            sealed = [batcher.seal(passed) for batcher in self.batchers]
            for time in sorted({int(time) for each in sealed if len(each) for time in np.unique(each.times)}):
                self._grow([rows_at(each, time) for each in sealed], time)
        pending = CLOSED
        for batcher in self.batchers:
            pending = pending.meet(batcher.pending())
        self.hold(pending.elements)
        return False

    def _grow(self, rows: list[Ints | None], time: int) -> None:
        """Send what follows from the rows of one time."""
        for port, grown in enumerate(self.growth.take(rows)):
            if grown.rows.shape[1]:
                self.send(Updates(grown.rows, constant((time,)), constant((1,)), grown.tidy), ((time,),), port)

    def state(self) -> Iterator[Updates]:
        for batcher in self.batchers:
            yield from batcher.parts()

    def release(self) -> None:
        self.growth = Growth(self.growth.system)
        self.batchers = [Batcher(arity, 1) for arity in self.growth.system.arities]


def rows_at(updates: Updates, time: int) -> Ints | None:
    """The rows that are there from a time on; None if there are none."""
    if not len(updates):
        return None
    if (updates.diffs < 0).any():
        raise InsertOnly("a row was taken away from an insert-only program", hint=HINT)
    if updates.times.shape[1] == 1:
        return updates.data if int(updates.times[0, 0]) == time else None
    found = updates.times[0] == time
    return np.ascontiguousarray(updates.data[:, found]) if found.any() else None


HINT = "Run the program without insert-only, if rows are to be removed."


def saturate(dataflow: Dataflow, system: System, streams: list[Stream]) -> list[Stream]:
    """Add a recursion over growing collections; the streams of its derived relations."""
    operator = Saturate(system)
    dataflow.add(operator, [(stream, Pipeline()) for stream in streams], depth=1, ports=system.derived)
    return [Stream(((operator, port),), 1) for port in range(system.derived)]
