"""Checks and preparation of inputs: edges with columns src and dst, nodes in one column.

    nodes_of(edges)  =  { v : v is src or dst of an edge },  each once
    both_ways(edges) =  { (u, v) : u ≠ v, (u, v) or (v, u) is an edge },  each once

Cost: the checks read only the schema; each of the two collections costs one index of its rows.
"""

from __future__ import annotations

from kpg.api.collection import Collection
from kpg.api.contracts import Input
from kpg.columns.functions import col
from kpg.columns.schema import Type
from kpg.errors import TypeMismatch


def type_of_nodes(edges: Collection) -> Type:
    """Return the type of src and dst, which must be equal."""
    src, dst = edges.schema.type_of("src"), edges.schema.type_of("dst")
    if not src.same(dst):
        raise TypeMismatch("src and dst of the edges have different types", detail=f"src is {src}, dst is {dst}.")
    return src


def indexed(edges: Collection) -> Collection:
    """Return the edges; give a relation without an index one by src, so that a join by src needs no other."""
    type_of_nodes(edges)
    if isinstance(edges, Input):
        edges.keep_by("src")
    return edges


def as_nodes(roots: Collection) -> Collection:
    """Return a collection of one column with that column renamed to node."""
    if len(roots.schema) != 1:
        raise TypeMismatch("roots must have exactly one column, the node", detail=f"Found {roots.schema!r}.")
    return roots.select(node=col(roots.schema.names[0]))


def nodes_of(edges: Collection) -> Collection:
    """Return the distinct end points of edges."""
    return edges.select(node=col("src")).concat(edges.select(node=col("dst"))).distinct()


def both_ways(edges: Collection) -> Collection:
    """Return the simple undirected graph: each pair of distinct neighbours once in each direction."""
    proper = edges.filter(col("src") != col("dst"))
    return proper.select("src", "dst").concat(proper.select(src=col("dst"), dst=col("src"))).distinct()
