"""Consolidate: sum the updates of each time before they are sent.

    output  =  input, with diffs of equal (data, time) added and zeros dropped, sent when its times are complete

It works like an arrangement without a trace. Loops without an arrangement need it, and users can ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpg.columns.updates import Updates
from kpg.dataflow.operator import Inputs, Operator
from kpg.operators.sealed_input import hold_pending, seal
from kpg.trace.batcher import Batcher


class Consolidate(Operator):
    """Hold updates until the frontier passes them, then send their sum."""

    waits_for_frontier = True

    def __init__(self, name: str, lanes: int, depth: int, width: int) -> None:
        super().__init__(name)
        self.batcher = Batcher(lanes, depth, width)

    def step(self, inputs: Inputs) -> bool:
        sealed = seal(self, self.batcher, inputs[0])
        if sealed is not None:
            self.send(sealed.updates, sealed.times)
        hold_pending(self, self.batcher)
        return False

    def state(self) -> Iterator[Updates]:
        return iter(self.batcher.parts())

    def release(self) -> None:
        self.batcher = Batcher(self.batcher.lanes, self.batcher.depth, self.batcher.width)
