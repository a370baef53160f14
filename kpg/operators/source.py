"""Where updates enter: a source passes on what it is fed from outside its dataflow.

    output  =  what was fed, at the times it was fed at
"""

from __future__ import annotations

from kpg.dataflow.operator import Inputs, Operator


class Source(Operator):
    """The input operator of a relation, and the head of an imported arrangement."""

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            self.send(message.payload, message.times)
        return False
