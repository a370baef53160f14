"""How many edges each node is away from the nearest root.

    bfs(E, R)  =  { (v, d) : d = least number of edges of a path in E from a node of R to v }

Nodes that cannot be reached are not there. Cost: an index of the edges by src, shared if there is one; each edge of a
reached node passes the loop once, in as many rounds as the largest distance. A change costs the edges of those nodes
whose distance changes.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col, lit
from kpg.graphs.edges import as_nodes, indexed


def bfs(edges: Collection, roots: Collection) -> Collection:
    """Distances (`node`, `distance`) over `edges` (src, dst) from the nearest of `roots` (one column)."""
    edges, roots = indexed(edges), as_nodes(roots)
    with edges.db.loop("bfs") as loop:
        found = loop.variable(node=roots.schema.type_of("node"), distance=int)
        nearest = found.concat(roots.select("node", distance=lit(0))).group_by("node").min("distance")
        further = edges.join(nearest, on={"src": "node"}).select(node=col("dst"), distance=col("distance") + 1)
        found.set(further)
        return loop.leave(nearest)
