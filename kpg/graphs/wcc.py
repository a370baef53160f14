"""The weakly connected components: which nodes hang together when edges may be followed both ways.

    wcc(E)  =  { (v, c) : v an end of an edge, c = least node with a path to v in E and its reverse }

Nodes are whole numbers. Cost: indexes of the edges by src and by dst, shared if there are such; then about one passage
of each edge in each direction. A change costs the edges of those nodes whose way to the least node of their component
changes; on a graph without bridges that is few.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.columns.functions import col, max_of, min_of
from kpg.graphs.edges import indexed
from kpg.graphs.spread import spread, without


def wcc(edges: Collection) -> Collection:
    """The component (`node`, `component`) of each end of `edges` (src, dst), named by its least node."""
    edges = indexed(edges)
    smaller = edges.select(node=min_of(col("src"), col("dst")))
    larger = edges.filter(col("src") != col("dst")).select(node=max_of(col("src"), col("dst")))
    return spread(without(smaller, larger), (edges, "src", "dst"), (edges, "dst", "src"))
