"""ChooseExtender: find, for each tuple, the extender with the fewest candidate rows.

    (data)  →  (fewest, chosen, data)        the first extender adds these two lanes in front
    (fewest, chosen, data)  →  the same, changed where this extender has fewer rows

Used when extenders are partitioned across workers. A chain of these operators has one for each extender, and each runs
on the worker that owns the tuple's key. Counts need not be exact: they only choose which extender proposes rows, and
all others validate the proposal. So the operator does not wait for frontiers, and it counts rows at all times.
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

COUNT_LANES = 2  # added in front: the fewest rows, and the number of the extender that has them


class ChooseExtender(Operator):
    """Compare the row counts of extender `number` with the fewest so far. Its key consists of input lanes."""

    def __init__(self, name: str, index: ExtenderIndex, number: int) -> None:
        super().__init__(name)
        self.extender_index = index
        self.number = number

    def follow_frontiers(self) -> None:
        """Allow the trace to compact: counts may be of any time."""
        if self.extender_index.handle is not None:
            self.extender_index.handle.follow(lambda: CLOSED)

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            for updates in updates_of(message.payload):
                if len(updates):
                    self.send(self._compare(updates), message.times)
        return False

    def _compare(self, updates: Updates) -> Updates:
        counts = self._counts(updates)
        if self.number == 0:
            front = np.stack([counts, np.zeros_like(counts)])
            return updates.with_data(np.concatenate([front, updates.data]))
        data = updates.data.copy()
        fewer = counts < data[0]
        data[0][fewer] = counts[fewer]
        data[1][fewer] = self.number
        return updates.with_data(data)

    def _counts(self, updates: Updates) -> np.typing.NDArray[np.int64]:
        _, ranges, _ = locate(self.extender_index.batches(), keys_of(updates.data, self.extender_index.extender))
        counts: np.typing.NDArray[np.int64] = (ranges[1::2] - ranges[::2]).sum(axis=0)
        return counts

    def release_unneeded(self) -> None:
        if self.frontier(0) == CLOSED:
            self.extender_index.release()

    def release(self) -> None:
        self.extender_index.release()


@dataclass(frozen=True, slots=True)
class ChosenStage(InfallibleStage):
    """Keep the tuples that one extender was chosen for, and drop the count lanes."""

    number: int

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        mine = updates.data[1] == self.number
        kept = updates if mine.all() else keep(updates, mine)
        return Updates(np.ascontiguousarray(kept.data[COUNT_LANES:]), kept.times, kept.diffs)
