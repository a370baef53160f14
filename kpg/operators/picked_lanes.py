"""Put the lanes of messages into the order of an arrangement, within the step of the operator that reads them.

    pick(messages)  =  the same updates, the lanes of each in the given order

A pick of lanes as an operator of its own would do the same, but a step costs more than few rows.
Cost: one copy of the rows, with pauses between slices of a large message.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.memory_budget import reserve
from kpg.columns.pause_points import pause
from kpg.columns.updates import Ints
from kpg.dataflow.operator import Message
from kpg.operators.payload import updates_of

SLICE_ROWS = 1 << 16  # that are copied between two pauses


class PickedLanes:
    """The position in the input of each lane of the output."""

    __slots__ = ("_lanes",)

    def __init__(self, lanes: tuple[int, ...]) -> None:
        self._lanes = np.array(lanes, np.intp)

    def pick(self, messages: list[Message]) -> list[Message]:
        """Return messages of updates with the lanes in order."""
        return [
            Message(message.times, updates.with_data(self._copy(updates.data)))
            for message in messages
            for updates in updates_of(message.payload)
        ]

    def _copy(self, data: Ints) -> Ints:
        n = data.shape[1]
        if n <= SLICE_ROWS:
            return data.take(self._lanes, axis=0)
        reserve(data.nbytes)
        out = np.empty((len(self._lanes), n), np.int64)
        for start in range(0, n, SLICE_ROWS):
            end = min(start + SLICE_ROWS, n)
            out[:, start:end] = data[self._lanes, start:end]
            pause()
        return out
