"""Maintain components: the strongly connected components of a graph as one operator.

    output at t  =  the component (node, component) of each end of the edges at t

The input has the edges (source, target), as a multiset of numbers (`kpg.seminaive.maintained_components`).
"""

from __future__ import annotations

from collections.abc import Iterator

from kpg.columns.updates import Updates, constant
from kpg.dataflow.graph import Dataflow, Stream
from kpg.operators.complete_times import CompleteInput, CompleteTimes
from kpg.operators.maintain_least_values import graph_change
from kpg.seminaive.maintained_components import MaintainedComponents
from kpg.trace.batcher import Batcher


class MaintainComponents(CompleteTimes):
    """Keep a graph and its components."""

    def __init__(self, name: str, batcher: Batcher) -> None:
        super().__init__(f"components of {name}", [batcher])
        self.components = MaintainedComponents()

    def process(self, time: int, parts: list[Updates]) -> None:
        data, diffs, is_sorted = self.components.change(graph_change(parts[0]))
        if data.shape[1]:
            self.send(Updates(data, constant((time,)), diffs, is_sorted), ((time,),))

    def state_size(self) -> tuple[int, int]:
        rows, nbytes = super().state_size()
        return rows + self.components.row_count(), nbytes + self.components.nbytes

    def relation_sizes(self) -> Iterator[tuple[str, int, int]]:
        if self.relations:
            yield self.relations[0], self.components.row_count(), self.components.nbytes + self.batchers[0].nbytes

    def release(self) -> None:
        super().release()
        self.components = MaintainedComponents()


def maintain_components(dataflow: Dataflow, name: str, edges: CompleteInput) -> Stream:
    """Add the operator. Return the stream of components."""
    return dataflow.add(MaintainComponents(name, edges.batcher), [(edges.stream, edges.pact)], depth=1)
