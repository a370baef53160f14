"""Count, distinct and sums where times are totally ordered: no output trace, nothing pending.

    output at t  =  f(Σ diffs of k in the input at t)

In a total order every new time is after all old ones, so the sum before is one number per key, read from the input's
own trace, and the corrections are the old value out and the new value in at each new time. Refused inside loops, where
times are only partially ordered (`reduce` is for those).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.consolidate import consolidate
from kpg.columns.updates import Ints, Updates, concatenate
from kpg.dataflow.channel import Pipeline
from kpg.dataflow.graph import Dataflow, Stream
from kpg.dataflow.operator import Inputs, Operator
from kpg.errors import BadPlan
from kpg.operators.arrange import Arranged
from kpg.operators.join import Side
from kpg.operators.payload import Batches
from kpg.operators.reduce import shrink
from kpg.operators.replay import Corrections
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.gather import accumulate, distinct_keys

Sweep: TypeAlias = Callable[[Ints, Ints, Ints, Ints], Corrections]  # offsets, times, diffs, sums before


class SweepReduce(Operator):
    """Maintains a function of each key's accumulated diff, for times of one coordinate."""

    def __init__(self, name: str, arranged: Arranged, sweep: Sweep) -> None:
        super().__init__(name)
        if arranged.depth != 1:
            raise BadPlan(
                f"{name} needs totally ordered times",
                detail=f"Times here have {arranged.depth} coordinates.",
                hint="Inside a loop use reduce, count or distinct, which choose the general operator.",
            )
        self.key_lanes = arranged.key_lanes
        self.sweep = sweep
        self.input = Side(arranged, f"{name} (input)")
        self.upper = Frontier.start(1)

    def follow_frontiers(self) -> None:
        """Tie the trace's logical since to what may still be asked, once the operator is placed."""
        assert self.input.handle is not None
        self.input.handle.follow(lambda: self.frontier(0))

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            corrected = self._correct(message.payload)
            upper = message.payload[-1].upper
            if len(corrected):
                batch = Batch(corrected, self.key_lanes, Description(self.upper, upper, Frontier.start(1)))
                self.upper = upper
                self.send((batch,), message.times)
            self.input.acknowledge(upper)
        return False

    def _correct(self, batches: Batches) -> Updates:
        """What changes when these batches follow the acknowledged ones, in this order."""
        before, parts = self.input.batches(), []
        for batch in batches:
            updates = batch.updates
            keys, offsets = distinct_keys(updates, self.key_lanes)
            sums = accumulate(before, keys) if before else np.zeros((updates.width, keys.shape[1]), np.int64)
            corrections = self.sweep(offsets, updates.times, updates.diffs, sums)
            data = np.concatenate([np.take(keys, corrections.key_index, axis=1), corrections.data])
            parts.append(Updates(data, shrink(corrections.times), shrink(corrections.diffs)))
            before += (batch,)
        return parts[0] if len(parts) == 1 else consolidate(concatenate(parts))

    def tidy(self) -> None:
        if self.frontier(0) == CLOSED:
            self.input.release()

    def release(self) -> None:
        self.input.release()


def sweep_reduce(dataflow: Dataflow, name: str, arranged: Arranged, sweep: Sweep) -> Stream:
    """Add a sweep over an arrangement; its stream carries batches by the same key."""
    operator = SweepReduce(name, arranged, sweep)
    return dataflow.add(operator, [(arranged.stream, Pipeline())], depth=1)
