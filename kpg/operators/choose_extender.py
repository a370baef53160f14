"""Weigh: which of several extenders has the fewest rows for each tuple, where no worker has all of them.

    (data)  →  (least, chosen, data)        the first to weigh puts these lanes in front
    (least, chosen, data)  →  the same, changed where this extender has fewer rows

Each extender weighs on the worker that has the tuple's key. Weights need not be exact: they tell who proposes, and what
is proposed is validated by the others in any case. So nothing waits here, and rows count whatever their time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.algebra.frontier import CLOSED
from kpg.columns.selection import keep
from kpg.columns.updates import Updates
from kpg.dataflow.operator import Inputs, Operator
from kpg.operators.half_join import ExtenderIndex
from kpg.operators.linear import ErrorReport, InfallibleStage
from kpg.operators.payload import updates_of
from kpg.trace.extension import keys_of
from kpg.trace.locate_batches import locate

WEIGHED = 2  # lanes in front


class ChooseExtender(Operator):
    """Lets one extender weigh; `number` is its place among all. Its key is named by lanes as they come in."""

    def __init__(self, name: str, index: ExtenderIndex, number: int) -> None:
        super().__init__(name)
        self.looked = index
        self.number = number

    def follow_frontiers(self) -> None:
        """Weights may be of any time: let the trace be compacted as far as others let it."""
        if self.looked.handle is not None:
            self.looked.handle.follow(lambda: CLOSED)

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            for updates in updates_of(message.payload):
                if len(updates):
                    self.send(self._weighed(updates), message.times)
        return False

    def _weighed(self, updates: Updates) -> Updates:
        weights = self._weights(updates)
        if self.number == 0:
            front = np.stack([weights, np.zeros_like(weights)])
            return Updates(np.concatenate([front, updates.data]), updates.times, updates.diffs)
        data = updates.data.copy()
        fewer = weights < data[0]
        data[0][fewer] = weights[fewer]
        data[1][fewer] = self.number
        return Updates(data, updates.times, updates.diffs)

    def _weights(self, updates: Updates) -> np.typing.NDArray[np.int64]:
        _, ranges, _ = locate(self.looked.batches(), keys_of(updates.data, self.looked.extender))
        weights: np.typing.NDArray[np.int64] = (ranges[1::2] - ranges[::2]).sum(axis=0)
        return weights

    def release_unneeded(self) -> None:
        if self.frontier(0) == CLOSED:
            self.looked.release()

    def release(self) -> None:
        self.looked.release()


@dataclass(frozen=True, slots=True)
class ChosenStage(InfallibleStage):
    """The tuples that one extender proposes for, without what was weighed."""

    number: int

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        mine = updates.data[1] == self.number
        kept = updates if mine.all() else keep(updates, mine)
        return Updates(np.ascontiguousarray(kept.data[WEIGHED:]), kept.times, kept.diffs)
