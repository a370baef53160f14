"""DeltaSource: the start of a pipeline. It turns each update of a relation into a tuple with its initial time.

    (data, (e, r, …), diff)  →  ((data, r, …), (e, r, …), diff)         times joined with the floor

The initial time's rounds become lanes. Its epoch needs no lane: all extensions of a tuple keep the epoch of its time.
kpg.operators.half_join explains initial times and the floor.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints, Updates, constant, spread
from kpg.dataflow.operator import Inputs, Operator
from kpg.operators.half_join import Floor
from kpg.operators.payload import updates_of


class DeltaSource(Operator):
    """Append the rounds of each update's time to its data, as lanes."""

    def __init__(self, name: str, floor: Floor) -> None:
        super().__init__(name)
        self.floor = floor

    def step(self, inputs: Inputs) -> bool:
        floor: Ints | None = None
        for message in inputs[0]:
            for updates in updates_of(message.payload):
                if updates.data.shape[1]:
                    if self.depth == 1 == updates.times.shape[1] and int(updates.times[0, 0]) >= self.floor.time[0]:
                        self.send(updates, message.times)  # as all updates after the first
                        continue
                    if floor is None:
                        floor = constant(self.floor.at(self.depth))
                    times = np.maximum(updates.times, floor)
                    data = updates.data
                    if self.depth > 1:
                        data = np.concatenate([data, spread(times[1:], len(updates))])
                    self.send(Updates(data, times, updates.diffs), message.times)
        return False
