"""What the algorithms ask of their inputs: edges with columns src and dst, nodes in one column.

    nodes_of(edges)  =  { v : v is src or dst of an edge },  each once
    both_ways(edges) =  { (u, v) : u ≠ v, (u, v) or (v, u) is an edge },  each once

Cost: looking at a schema; the collections cost one index of their rows each.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.api.input import Input
from kpg.columns.functions import col
from kpg.columns.schema import Type
from kpg.errors import TypeMismatch


def type_of_nodes(edges: Collection) -> Type:
    """What src and dst both are."""
    src, dst = edges.schema.type_of("src"), edges.schema.type_of("dst")
    if not src.same(dst):
        raise TypeMismatch("src and dst of the edges differ", detail=f"src is {src}, dst is {dst}.")
    return src


def indexed(edges: Collection) -> Collection:
    """The edges; a relation that keeps no index yet keeps one by src, so that a join by src needs no other."""
    type_of_nodes(edges)
    if isinstance(edges, Input):
        edges.keep_by("src")
    return edges


def as_nodes(roots: Collection) -> Collection:
    """A collection of one column, whatever its name, with that column called node."""
    if len(roots.schema) != 1:
        raise TypeMismatch("roots have one column, the node", detail=f"Found {roots.schema!r}.")
    return roots.select(node=col(roots.schema.names[0]))


def nodes_of(edges: Collection) -> Collection:
    """Each node that is an end of an edge, once."""
    return edges.select(node=col("src")).concat(edges.select(node=col("dst"))).distinct()


def both_ways(edges: Collection) -> Collection:
    """The simple undirected graph: each pair of different neighbours once in each direction."""
    proper = edges.filter(col("src") != col("dst"))
    return proper.select("src", "dst").concat(proper.select(src=col("dst"), dst=col("src"))).distinct()
