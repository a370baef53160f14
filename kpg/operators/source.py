"""Where updates enter: the place in a dataflow for what is fed to it from outside.

    output  =  what was fed, at the times it was fed at

`Dataflow.feed` sends on the source's behalf, so a source is never stepped.
"""

from __future__ import annotations

from kpg.dataflow.operator import Inputs, Operator


class Source(Operator):
    """The input operator of a relation, and the head of an imported arrangement."""

    def step(self, inputs: Inputs) -> bool:
        raise AssertionError("a source has nothing to do")
