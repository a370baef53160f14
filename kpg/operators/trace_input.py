"""A side: one input of an operator that reads a trace while batches of it still come.

A shared trace may hold batches that an operator has not been sent yet. What it has been sent it *acknowledges*; it
reads through the upper acknowledged, and the physical since of its handle is kept there: no merge blurs the line.
"""

from __future__ import annotations

from kpg.algebra.frontier import Frontier
from kpg.operators.arrange import Arranged
from kpg.trace.batch import Batch
from kpg.trace.handle import TraceHandle


class TraceInput:
    """What an operator knows of one input: its trace, and how far it has acknowledged its batches."""

    def __init__(self, arranged: Arranged, name: str) -> None:
        self.handle: TraceHandle | None = arranged.handle.clone(name)
        self.handle.set_physical(self.handle.spine.upper)
        self.trace_depth = arranged.trace_depth
        self.acknowledged: Frontier | None = None

    def batches(self) -> tuple[Batch, ...]:
        """The acknowledged batches."""
        if self.handle is None or self.acknowledged is None:
            return ()
        return self.handle.batches(self.acknowledged)

    def acknowledge(self, upper: Frontier) -> None:
        """Count batches through `upper` as met."""
        self.acknowledged = upper
        if self.handle is not None:
            self.handle.set_physical(upper)

    def release(self) -> None:
        """Let go of the trace."""
        if self.handle is not None:
            self.handle.release()
            self.handle = None
