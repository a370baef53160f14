"""The k-core: what is left when nodes with fewer than k neighbours are taken away again and again.

    k_core(E, k)  =  the largest X with  | { u in X : u a neighbour of v } | ≥ k  for every v in X

Neighbours are counted once, whatever the number and direction of the edges between, and nobody is its own. Cost: the
edges both ways, each once, and an index of them; then each edge passes the loop when its start is taken away, in as
many rounds as the taking away needs. A change costs the edges of those nodes that are taken away in another round.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col
from kpg.errors import BadPlan
from kpg.graphs.edges import both_ways, type_of_nodes


def k_core(edges: Collection, k: int) -> Collection:
    """The nodes (`node`) of the k-core of `edges` (src, dst), taken as undirected."""
    type_of_nodes(edges)
    if k < 1:
        raise BadPlan(f"no {k}-core: a core has at least one neighbour for each node")
    neighbours = both_ways(edges)
    with edges.db.loop("k-core") as loop:
        # All that have a neighbour stay in round 0, and what stays only shrinks, so no node has to ask for itself.
        staying = loop.variable(neighbours.select(node=col("src")).distinct())
        enough = neighbours.join(staying, on={"src": "node"}).select(node=col("dst")).threshold(k)
        staying.set(enough)
        return loop.leave(enough)
