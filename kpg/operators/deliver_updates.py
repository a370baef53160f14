"""DeliverUpdates: pass the updates of a stream to a function of the program. A dataflow ends in it.

    output  =  nothing

Contract:
- The function receives each non-empty `Updates` object of the stream once, in the order of arrival. [trusted]
- Times that the input frontier has passed are complete. `Output` and `Probe` read this frontier. [trusted]

Cost: one call for each `Updates` object. The operator keeps no state and copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from kpg.columns.updates import Updates
from kpg.dataflow.operator import Inputs, Operator
from kpg.operators.payload import updates_of


class DeliverUpdates(Operator):
    """Pass the updates of a stream to a function and send nothing."""

    def __init__(self, name: str, receive: Callable[[Updates], None]) -> None:
        super().__init__(name)
        self.receive = receive

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            for updates in updates_of(message.payload):
                if updates.data.shape[1]:
                    self.receive(updates)
        return False
