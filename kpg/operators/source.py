"""Source: the operator through which updates enter a dataflow.

    output  =  the updates that were fed, at their times

`Dataflow.feed` sends directly to the readers of the source, so a source is never stepped.
"""

from __future__ import annotations

from kpg.dataflow.operator import Inputs, Operator


class Source(Operator):
    """The input operator of a relation, and the head of an imported arrangement."""

    publisher: Operator | None = None  # of an imported arrangement

    def step(self, inputs: Inputs) -> bool:
        raise AssertionError("a source is never stepped")
