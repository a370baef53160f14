"""Consolidate: each time's updates summed before they go on.

    output  =  input, with equal (data, time) added and zeros dropped, sent once its times are complete

An arrangement without a trace: for loops without one, and where a user wants to see net changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpg.columns.updates import Updates
from kpg.dataflow.operator import Inputs, Operator
from kpg.operators.payload import Payload
from kpg.trace.batcher import Batcher


class Consolidate(Operator):
    """Holds updates until the frontier passes them, then sends their sum."""

    waits = True

    def __init__(self, name: str, lanes: int, depth: int, width: int) -> None:
        super().__init__(name)
        self.batcher = Batcher(lanes, depth, width)

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            push(self.batcher, message.payload)
        if inputs[0] and self.cyclic:
            # Held before the frontier is asked for: what is sent here may come round to this very input.
            self.hold(self.batcher.pending().elements)
        frontier = self.frontier(0)
        # In a loop only times that were held when the frontier was asked for: it may have passed those of messages.
        usable = self.held if self.cyclic else self.usable
        ready = tuple([time for time in usable if not frontier.beyond(time)])
        if ready:
            updates = self.batcher.seal(frontier)
            if len(updates):
                self.send(updates, ready)
        self.hold(self.batcher.pending().elements)
        return False

    def state(self) -> Iterator[Updates]:
        return iter(self.batcher.parts())

    def release(self) -> None:
        self.batcher = Batcher(self.batcher.lanes, self.batcher.depth, self.batcher.width)


def push(batcher: Batcher, payload: Payload) -> None:
    """Give the updates of a message to a batcher, saying when they are sorted already."""
    if isinstance(payload, Updates):
        if len(payload):
            batcher.push(payload)
    else:
        for batch in payload:
            if len(batch):
                batcher.push(batch.updates, tidy=True)
