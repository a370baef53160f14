"""Changes: the head of a delta query. Each update of a relation becomes a tuple that knows its initial time.

    (data, (e, r, …), diff)  →  ((data, r, …), (e, r, …), diff)         times joined with the floor

The epoch need not be written down: it stays what it is in all that a tuple is extended to. See kpg.operators.half_join.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Updates, constant, spread
from kpg.dataflow.operator import Inputs, Operator
from kpg.operators.half_join import Floor
from kpg.operators.payload import updates_of


class DeltaSource(Operator):
    """Writes the rounds of each update into lanes of its own, after the others."""

    def __init__(self, name: str, floor: Floor) -> None:
        super().__init__(name)
        self.floor = floor

    def step(self, inputs: Inputs) -> bool:
        floor = constant(self.floor.at(self.depth))
        for message in inputs[0]:
            for updates in updates_of(message.payload):
                if len(updates):
                    times = np.maximum(updates.times, floor)
                    data = updates.data
                    if self.depth > 1:
                        data = np.concatenate([data, spread(times[1:], len(updates))])
                    self.send(Updates(data, times, updates.diffs), message.times)
        return False
