"""The length of the shortest path to each node from its nearest root.

    sssp(E, R)  =  { (v, d) : d = least sum of the weights of a path in E from a node of R to v }

Weights are integers. No cycle may have a negative sum: the loop would have no fixed point (`TooManyRounds`).
Unreachable nodes are absent. Cost: on one worker, one operator visits each edge about once. On several workers it is a
loop: it needs an index of the edges by src, shared if it exists; an edge passes it each time a shorter path to its src
is found, and the number of rounds is at most the number of edges of a shortest path. A change costs the edges of the
nodes that change their shortest path.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col, lit
from kpg.graphs.edges import as_nodes, indexed


def sssp(edges: Collection, roots: Collection) -> Collection:
    """Return the distances (`node`, `distance`) over `edges` (src, dst, weight) from the nearest root (one column)."""
    edges, roots = indexed(edges), as_nodes(roots)
    with edges.db.loop("sssp") as loop:
        candidates = loop.variable(node=roots.schema.type_of("node"), distance=int)
        nearest = candidates.concat(roots.select("node", distance=lit(0))).group_by("node").min("distance")
        paths = edges.join(nearest, on={"src": "node"})
        candidates.set(paths.select(node=col("dst"), distance=col("distance") + col("weight")))
        return loop.leave(nearest)
