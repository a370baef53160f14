"""The number of edges between each node and its nearest root.

    bfs(E, R)  =  { (v, d) : d = least number of edges of a path in E from a node of R to v }

Unreachable nodes are absent. Cost: an index of the edges by src, shared if it exists. Each edge of a reached node
passes the loop once, and the number of rounds is the largest distance. A change costs the edges of the nodes that
change their distance.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col, lit
from kpg.graphs.edges import as_nodes, indexed


def bfs(edges: Collection, roots: Collection) -> Collection:
    """Return the distances (`node`, `distance`) over `edges` (src, dst) from the nearest of `roots` (one column)."""
    edges, roots = indexed(edges), as_nodes(roots)
    with edges.db.loop("bfs") as loop:
        candidates = loop.variable(node=roots.schema.type_of("node"), distance=int)
        nearest = candidates.concat(roots.select("node", distance=lit(0))).group_by("node").min("distance")
        further = edges.join(nearest, on={"src": "node"}).select(node=col("dst"), distance=col("distance") + 1)
        candidates.set(further)
        return loop.leave(nearest)
