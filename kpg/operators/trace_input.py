"""TraceInput: an input of an operator that receives the batches of a trace and also reads the trace.

A shared trace may hold batches that the operator has not received yet. The operator *acknowledges* the batches that it
has processed and reads the trace through the acknowledged upper. The physical frontier of its handle stays there, so
no merge crosses it.
"""

from __future__ import annotations

from kpg.algebra.frontier import Frontier
from kpg.operators.arrange import Arranged
from kpg.trace.batch import Batch
from kpg.trace.handle import TraceHandle
from kpg.trace.search_table import SearchTable


class TraceInput:
    """The trace of one input, and the upper through which its batches are acknowledged."""

    def __init__(self, arranged: Arranged, name: str) -> None:
        self.handle: TraceHandle | None = arranged.handle.clone(name)
        self.trace_depth, self.trace_width = arranged.trace_depth, arranged.width
        self.acknowledged: Frontier | None = None

    def batches(self) -> tuple[Batch, ...]:
        """Return the acknowledged batches."""
        if self.handle is None or self.acknowledged is None:
            return ()
        return self.handle.batches(self.acknowledged)

    def search_table(self, keys: int, sort: bool = True) -> tuple[SearchTable, int] | None:
        """Return the table to search some keys and the number of acknowledged batches, if these are nearly all.

        Unless it may `sort`, there is none while a load is unsorted.
        """
        if self.handle is None or self.acknowledged is None:
            return None
        return self.handle.spine.search_table(self.acknowledged, keys, sort)

    def acknowledge(self, upper: Frontier) -> None:
        """Acknowledge the batches through `upper`."""
        self.acknowledged = upper
        if self.handle is not None:
            self.handle.acknowledge(upper)

    def release(self) -> None:
        """Release the trace."""
        if self.handle is not None:
            self.handle.release()
            self.handle = None
