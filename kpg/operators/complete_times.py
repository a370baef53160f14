"""Operators that process complete times one after the other: all updates of a time at once, earlier times first.

    process(time, parts)     called once for each time with updates; `parts` has those of each input, consolidated

Times have one coordinate. Updates wait in batchers until all inputs have passed their time. In a direct run all
messages of the time have arrived, and need not wait.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Updates, concatenate, constant, no_updates
from kpg.dataflow.channel import Pact
from kpg.dataflow.direct_run import MAX_DIRECT_ROWS
from kpg.dataflow.graph import Stream
from kpg.dataflow.operator import Inputs, Message, Operator
from kpg.operators.payload import updates_of
from kpg.operators.sealed_input import push
from kpg.trace.batcher import Batcher


class CompleteInput(NamedTuple):
    """An input of such an operator: a stream, how its rows arrive, and the batcher in which they wait."""

    stream: Stream
    pact: Pact
    batcher: Batcher


class CompleteTimes(Operator):
    """Process the updates of each time, when all inputs have passed it."""

    waits_for_frontier = True
    may_take_long = True

    def __init__(self, name: str, batchers: Sequence[Batcher]) -> None:
        super().__init__(name)
        self.batchers = list(batchers)

    @abstractmethod
    def process(self, time: int, parts: list[Updates]) -> None:
        """Send the changes of the output at a time, given those of the inputs."""

    def input_frontier(self) -> Frontier:
        """Return the meet of the frontiers of all inputs."""
        upper = CLOSED
        for index in range(len(self.batchers)):
            upper = upper.meet(self.frontier(index))
        return upper

    def is_due(self) -> bool:
        frontier = self.input_frontier()
        return any(not frontier.beyond(time) for time in self.held)

    def step(self, inputs: Inputs) -> bool:
        if self.dataflow.worker.direct.active and self._process_directly(inputs):
            return False
        for batcher, messages in zip(self.batchers, inputs, strict=True):
            messages.reverse()
            while messages:
                push(batcher, messages.pop().payload)
        frontier = self.input_frontier()
        if any(not frontier.beyond(time) for time in self.usable):
            sealed = [batcher.seal(frontier) for batcher in self.batchers]
            for time in sorted({int(time) for part in sealed if len(part) for time in np.unique(part.times)}):
                self.process(time, [updates_at(part, time) for part in sealed])
        pending = CLOSED
        for batcher in self.batchers:
            pending = pending.meet(batcher.pending())
        self.hold(pending.elements)
        return False

    def _process_directly(self, inputs: Inputs) -> bool:
        """Process the messages of a direct run, if they are few and nothing else waits."""
        ((time,),) = self.usable  # a direct run has one time
        parts = []
        for batcher, messages in zip(self.batchers, inputs, strict=True):
            part = complete_part(messages, time, batcher.lanes) if batcher.is_empty else None
            if part is None:
                return False
            parts.append(part)
        if any(map(len, parts)):
            self.process(time, parts)
        return True

    def state(self) -> Iterator[Updates]:
        for batcher in self.batchers:
            yield from batcher.parts()

    def release(self) -> None:
        self.batchers = [Batcher(batcher.lanes, 1) for batcher in self.batchers]


def complete_part(messages: list[Message], time: int, lanes: int) -> Updates | None:
    """Return the updates of the messages of an epoch, consolidated; None if they are many, or not all at its time."""
    parts = [updates for message in messages for updates in updates_of(message.payload) if len(updates)]
    if not parts:
        return no_updates(lanes, 1)
    if sum(map(len, parts)) > MAX_DIRECT_ROWS or any((part.times != time).any() for part in parts):
        return None
    return parts[0] if len(parts) == 1 and parts[0].consolidated else consolidate(concatenate(parts))


def updates_at(updates: Updates, time: int) -> Updates:
    """Return the updates at a time."""
    if not len(updates) or updates.times.shape[1] == 1:
        return updates if len(updates) and int(updates.times[0, 0]) == time else no_updates(updates.lanes, 1)
    at = updates.times[0] == time
    if at.all():
        return updates
    diffs = updates.diffs if updates.diffs.shape[1] == 1 else np.ascontiguousarray(updates.diffs[:, at])
    return Updates(np.ascontiguousarray(updates.data[:, at]), constant((time,)), diffs, updates.consolidated)
