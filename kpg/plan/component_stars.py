"""Render the components of the edges of each worker: the first part of connected components on several workers.

    components(E)  =  components(stars of all workers)    a star: edges from the nodes of a component to its least one

Each worker keeps the components of its own edges in one operator (`kpg.seminaive.least_values`), without rows of
others. A loop over the stars of all workers then has at most one edge for each node and worker, instead of all edges. A
change that leaves the components of its worker as they are ends there. All updates of an edge must be on one worker:
edges that are not placed are sent by their source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.dataflow.channel import LocalPact
from kpg.operators import linear
from kpg.operators.complete_times import CompleteInput
from kpg.operators.maintain_least_values import KeySchemas, maintain_least_values
from kpg.plan import nodes
from kpg.plan.rendered import Rendered
from kpg.seminaive.least_values import LeastValueSpec
from kpg.trace.batcher import Batcher

if TYPE_CHECKING:
    from kpg.plan.render import Renderer

MAX_ROUNDS = 1 << 62  # components are merged without rounds


def render_worker_components(renderer: Renderer, node: nodes.WorkerComponentsNode) -> Rendered:
    """Return the stars of the edges of this worker."""
    edges = renderer.collection(node.input)
    if not isinstance(edges.placed, tuple) or not edges.placed:
        edges = renderer.place(edges, edges.schema.lanes_of(("src",)))
    lanes = edges.schema.lanes_of(("src", "dst"))
    picked = [] if lanes == tuple(range(edges.schema.width)) else [linear.PickStage(lanes)]
    part = renderer.add_stages(edges, picked, "edges", node.schema)
    given = CompleteInput(part.stream, LocalPact(), Batcher(2, part.stream.depth))
    spec = LeastValueSpec("the components of a worker", MAX_ROUNDS, both_ways=True, own_starts=True, deferred=True)
    keys, failures = KeySchemas(node.schema.select(["src"])), renderer.context.failures
    stars, _ = maintain_least_values(renderer.dataflow, spec, [given], keys, failures)
    return Rendered(stars, node.schema, None)
