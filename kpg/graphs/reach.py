"""The nodes that can be reached from some roots.

    reach(E, R)  =  the least X with  X ⊇ R  and  { v : (u, v) in E, u in X } ⊆ X

Each root counts as reached, even if no edge touches it. Cost: an index of the edges by src, shared if it exists. Each
edge of a reached node passes the loop once, and the number of rounds is the distance of the farthest node. A change
costs the edges of the nodes that change their distance from the roots. Roots are data: adding one is a small change.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col
from kpg.graphs.edges import as_nodes, indexed


def reach(edges: Collection, roots: Collection) -> Collection:
    """Return the nodes (`node`) that a path of `edges` (src, dst) reaches from one of `roots` (one column)."""
    edges, roots = indexed(edges), as_nodes(roots)
    with edges.db.loop("reach") as loop:
        successors = loop.variable(node=roots.schema.type_of("node"))
        reached = successors.concat(roots).distinct()
        # The distinct nodes are already indexed by node, and the join produces only the column that is fed back.
        successors.set(edges.join(reached, on={"src": "node"}).select(node=col("dst")))
        return loop.leave(reached)
