"""DeltaSource: the start of a pipeline. It turns each update of a relation into a tuple with its initial time.

    (data, (e, r, …), diff)  →  ((data, r, …), (e, r, …), diff)         times joined with the floor

The initial time's rounds become lanes. Its epoch needs no lane: all extensions of a tuple keep the epoch of its time.
kpg.operators.half_join explains initial times and the floor.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Updates, constant, spread
from kpg.dataflow.operator import Inputs, Operator
from kpg.operators.half_join import Floor
from kpg.operators.payload import joined_updates


class DeltaSource(Operator):
    """Append the rounds of each update's time to its data, as lanes."""

    def __init__(self, name: str, floor: Floor) -> None:
        super().__init__(name)
        self.floor = floor

    def step(self, inputs: Inputs) -> bool:
        for updates, times in joined_updates(inputs[0]):
            times_of = updates.times
            first = times_of[0, 0] if times_of.shape[1] == 1 else times_of[0].min()
            if self.depth == 1 and int(first) >= self.floor.time[0]:
                self.send(updates, times)  # as all updates after the first
            else:
                self.send(self._initial(updates), times)
        return False

    def _initial(self, updates: Updates) -> Updates:
        times, data = np.maximum(updates.times, constant(self.floor.at(self.depth))), updates.data
        if self.depth > 1:
            data = np.concatenate([data, spread(times[1:], len(updates))])
        return Updates(data, times, updates.diffs)
