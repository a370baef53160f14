"""Join: pairs of rows with equal keys of two arrangements.

    output at t  =  Σ over (k, v) in left at t, (k, w) in right at t  of  project(k, v, w)

Bilinear, so each pair of batches has to meet exactly once. A new batch of one side meets the other side's trace only
*through the upper acknowledged there*; then its own upper is acknowledged. The shared traces may hold later batches
already, and no merge may blur that line, so the physical since of each handle is kept at it. The logical since of each
handle is the frontier of the *other* input: earlier times cannot be asked for any more. When the other input closes,
nothing will be asked at all and the handle is released.

A meeting is a *future*: it holds its batches and its times, and is worked off in slices, so that a huge output neither
blocks the worker nor fills its memory before those downstream have reduced it.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.updates import Ints, Updates
from kpg.dataflow.channel import LocalPact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.dataflow.operator import Inputs, Operator, Times
from kpg.operators.arrange import Arranged
from kpg.operators.futures import Futures
from kpg.operators.trace_input import TraceInput
from kpg.trace.batch import Batch
from kpg.trace.match_batches import Match
from kpg.trace.seek_batches import Seek, worth_seeking


class Join(Operator):
    """Meets batches of two arrangements."""

    def __init__(self, name: str, left: Arranged, right: Arranged, projection: Ints) -> None:
        super().__init__(name)
        assert left.key_lanes == right.key_lanes, "both sides of a join have the same key"
        self.key_lanes = left.key_lanes
        self.projection = projection
        self.sides = (TraceInput(left, f"{name} (left)"), TraceInput(right, f"{name} (right)"))
        self.futures: Futures[Match | Seek] = Futures()

    def follow_frontiers(self) -> None:
        """Tie each trace's logical since to the other input, once the operator is placed."""
        for index, side in enumerate(self.sides):
            if side.handle is not None:
                side.handle.follow(partial(self._askable, 1 - index, side.trace_depth))

    def _askable(self, other: int, depth: int) -> Frontier:
        return self.frontier(other).truncate(depth)

    def step(self, inputs: Inputs) -> bool:
        for index, messages in enumerate(inputs):
            for message in messages:
                for batch in message.payload:
                    self._meet(index, batch, message.times)
                if message.payload:
                    self.sides[index].acknowledge(message.payload[-1].upper)
        self.futures.work_off(next_pairs, self.send)
        self.hold(self.futures.times())
        return bool(self.futures)

    def _meet(self, index: int, batch: Batch, times: Times) -> None:
        if not len(batch):
            return
        others = [other for other in self.sides[1 - index].batches() if len(other)]
        if not others:
            return
        if self.key_lanes and worth_seeking(len(batch), others):
            seek = Seek(batch.updates, others, index, self.key_lanes, self.projection, self.depth)
            self.futures.append(seek, times)
            return
        for other in others:
            left, right = (batch, other) if index == 0 else (other, batch)
            match = Match(left.updates, right.updates, self.key_lanes, self.projection, self.depth)
            self.futures.append(match, times)

    def release_unneeded(self) -> None:
        for index, side in enumerate(self.sides):
            if self.frontier(1 - index) == CLOSED:
                side.release()

    def release(self) -> None:
        self.futures.clear()
        for side in self.sides:
            side.release()


def next_pairs(meeting: Match | Seek, budget: int) -> tuple[Updates | None, int]:
    """More pairs of a meeting, None at its end; and what that costs, their number."""
    updates = meeting.next(budget)
    return updates, 0 if updates is None else len(updates)


def join(dataflow: Dataflow, name: str, left: Arranged, right: Arranged, projection: list[tuple[int, int]]) -> Stream:
    """Add a join of two arrangements; `projection` names (side, lane) for each lane of the output."""
    assert left.depth == right.depth, "both sides of a join are in one scope"
    pairs = np.array(projection, np.int64).reshape(-1, 2)
    operator = Join(name, left, right, pairs)
    return dataflow.add(operator, [(left.stream, LocalPact()), (right.stream, LocalPact())], depth=left.depth)
