"""The weakly connected components: which nodes hang together when edges may be followed both ways.

    wcc(E)  =  { (v, c) : v an end of an edge, c = least node with a path to v in E and its reverse }

Nodes are whole numbers. Cost: indexes of the edges by src and by dst, shared if there are such; then about one passage
of each edge in each direction. A change costs the edges of those nodes whose way to the least node of their component
changes; on a graph without bridges that is few.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col
from kpg.graphs.edges import indexed
from kpg.graphs.spread import spread


def wcc(edges: Collection) -> Collection:
    """The component (`node`, `component`) of each end of `edges` (src, dst), named by its least node."""
    edges = indexed(edges)
    return spread(least_around(edges), (edges, "src", "dst"), (edges, "dst", "src"))


def least_around(edges: Collection) -> Collection:
    """The nodes (`node`) without a smaller neighbour: one look at each node of both indexes, which are in order."""
    ahead = edges.group_by("src").min("dst").select(node=col("src"), nearest=col("dst"))
    behind = edges.group_by("dst").min("src").select(node=col("dst"), nearest=col("src"))
    least = ahead.concat(behind).group_by("node").min("nearest")
    return least.filter(col("nearest") >= col("node")).select("node")
