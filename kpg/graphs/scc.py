"""The strongly connected components: the sets of nodes that can reach each other.

    scc(E).nodes  =  { (v, c) : v an end of an edge, c = least node that reaches v and is reached from it }
    scc(E).edges  =  { (u, v) in E : u and v in one component },  with the multiplicity of E

On one worker, outside other loops, one operator maintains the components (`kpg.seminaive.maintained_components`).
Otherwise the algorithm has two nested loops. The inner loop labels each node with the least node that reaches
it over the remaining edges. The ends of an edge within a component have the same label, so the outer loop drops the
edges with different labels at their ends. It then does the same against the direction of edges, and repeats both until
no edge is dropped. Then the least node of each connected part reaches all of the part and is reached from all of it, so
the remaining edges are the answer.

Nodes are integers. Cost: one operator keeps lists of all edges in both directions; a change costs the edges near it,
and the nodes whose component changes. The loops keep about five indexes of the edges. Each edge passes the loop twice,
and the edges that later rounds drop a few times more. `edges` joins the edges with `nodes`. Installing `nodes` and
`edges` as two answers computes both twice; use one if you can.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.api.collection import Collection
from kpg.columns.functions import col
from kpg.graphs.edges import indexed, nodes_of
from kpg.graphs.spread import spread, without


@dataclass(frozen=True, slots=True)
class Components:
    """The component of each node, and the edges within components."""

    nodes: Collection
    edges: Collection


def scc(edges: Collection) -> Components:
    """Return the component (`node`, `component`) of each end of `edges` (src, dst), and the edges within components."""
    edges = indexed(edges).select("src", "dst")
    with edges.db.loop("scc") as loop:
        nodes = loop.enter(nodes_of(edges))
        remaining = loop.variable(edges)
        forward = remaining.arrange("src")
        ahead = label(nodes, forward, "src", "dst")
        backward = same_label(forward, ahead, "src", "dst").arrange("dst")
        behind = label(nodes, backward, "dst", "src")
        within = same_label(backward, behind, "dst", "src")
        remaining.set(within)
        components = loop.leave(ahead, components_of=edges)
    return Components(components, same_label(edges, components, "src", "dst").select("src", "dst"))


def label(nodes: Collection, edges: Collection, start: str, end: str) -> Collection:
    """Label each node with the least node that reaches it. Only nodes without an edge from a smaller node start one."""
    has_smaller = edges.filter(col(start) < col(end)).select(node=col(end))
    return spread(without(nodes, has_smaller), (edges, start, end)).arrange("node")


def same_label(edges: Collection, labels: Collection, start: str, end: str) -> Collection:
    """Return the edges with equal labels at both ends, read from the index by `start` that `label` uses."""
    labelled = edges.join(labels, on={start: "node"}).select(end, "component", start)
    pairs = labels.select("node", "component")  # the rows of the index itself, consolidated and sorted
    return labelled.join(pairs, on={end: "node", "component": "component"}).select(end, start)
