"""The nodes that can be reached from some roots.

    reach(E, R)  =  the least X with  X ⊇ R  and  { v : (u, v) in E, u in X } ⊆ X

Each root counts as reached, even if no edge touches it. Cost: an index of the edges by src, shared if there is one;
then each edge of a reached node passes the loop once, in as many rounds as the farthest node is away. A change costs
the edges of those nodes whose distance from the roots changes. Roots are data: adding one is a small change.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col
from kpg.graphs.edges import as_nodes, indexed


def reach(edges: Collection, roots: Collection) -> Collection:
    """The nodes (`node`) that a path of `edges` (src, dst) leads to from one of `roots` (one column)."""
    edges, roots = indexed(edges), as_nodes(roots)
    with edges.db.loop("reach") as loop:
        found = loop.variable(node=roots.schema.type_of("node"))
        reached = found.concat(roots).distinct()
        # The distinct nodes are an index by node already, and the join makes only the column that is fed back.
        found.set(edges.join(reached, on={"src": "node"}).select(node=col("dst")))
        return loop.leave(reached)
