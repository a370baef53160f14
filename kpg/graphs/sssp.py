"""The length of the shortest path to each node from the nearest root.

    sssp(E, R)  =  { (v, d) : d = least sum of the weights of a path in E from a node of R to v }

Weights are whole numbers, and no cycle may have a negative sum (the loop would not settle: `TooManyRounds`). Nodes that
cannot be reached are not there. Cost: an index of the edges by src, shared if there is one; an edge passes the loop
each time a shorter path to its src is found, in at most as many rounds as a shortest path has edges. A change costs the
edges of those nodes whose path changes.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col, lit
from kpg.graphs.edges import as_nodes, indexed


def sssp(edges: Collection, roots: Collection) -> Collection:
    """Distances (`node`, `distance`) over `edges` (src, dst, weight) from the nearest of `roots` (one column)."""
    edges, roots = indexed(edges), as_nodes(roots)
    with edges.db.loop("sssp") as loop:
        found = loop.variable(node=roots.schema.type_of("node"), distance=int)
        nearest = found.concat(roots.select("node", distance=lit(0))).group_by("node").min("distance")
        paths = edges.join(nearest, on={"src": "node"})
        found.set(paths.select(node=col("dst"), distance=col("distance") + col("weight")))
        return loop.leave(nearest)
