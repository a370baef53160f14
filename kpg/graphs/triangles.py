"""The triangles: three nodes, each a neighbour of the others.

    triangles(E).list   =  { (a, b, c) : a < b < c, any two of them neighbours },  each once
    triangles(E).count  =  { (n) : n = |list| > 0 }

The direction of edges does not matter, parallel edges count once, and self-loops are ignored. Nodes are integers. Cost:
two indexes of the edges, an index of all pairs of edges (a, b), (a, c) with a < b < c, and a lookup for each pair. A
change of one edge costs the pairs that contain it.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.api.collection import Collection
from kpg.columns.functions import col, max_of, min_of
from kpg.graphs.edges import type_of_nodes


@dataclass(frozen=True, slots=True)
class Triangles:
    """All triangles, and their number."""

    list: Collection
    count: Collection


def triangles(edges: Collection) -> Triangles:
    """Return the triangles (`a`, `b`, `c`) of `edges` (src, dst), taken as undirected, and their number (`count`)."""
    type_of_nodes(edges)
    ends = min_of(col("src"), col("dst")), max_of(col("src"), col("dst"))
    upward = edges.select(a=ends[0], b=ends[1]).filter(col("a") < col("b")).distinct()
    pairs = upward.join(upward.rename(b="c"), on="a").filter(col("b") < col("c"))
    closed = pairs.join(upward.rename(a="b", b="c"), on=["b", "c"]).select("a", "b", "c")
    return Triangles(closed, closed.count())
