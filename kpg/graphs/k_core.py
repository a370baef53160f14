"""The k-core: the nodes that remain when nodes with fewer than k neighbours are removed repeatedly.

    k_core(E, k)  =  the largest X with  | { u in X : u a neighbour of v } | ≥ k  for every v in X

A neighbour counts once, regardless of the number and direction of edges, and no node is its own neighbour. Cost: the
distinct edges in both directions and an index of them. An edge passes the loop when its start is removed, and the
number of rounds is the number of removal steps. A change costs the edges of the nodes that it moves to another round.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col
from kpg.errors import BadPlan
from kpg.graphs.edges import both_ways, type_of_nodes


def k_core(edges: Collection, k: int) -> Collection:
    """Return the nodes (`node`) of the k-core of `edges` (src, dst), taken as undirected."""
    type_of_nodes(edges)
    if k < 1:
        raise BadPlan(f"k_core() needs k of at least 1, not {k}")
    neighbours = both_ways(edges)
    with edges.db.loop("k-core") as loop:
        # Round 0 keeps all nodes with a neighbour. The set only shrinks, so the step need not intersect with it.
        remaining = loop.variable(neighbours.select(node=col("src")).distinct())
        enough = neighbours.join(remaining, on={"src": "node"}).select(node=col("dst")).threshold(k)
        remaining.set(enough)
        return loop.leave(enough)
