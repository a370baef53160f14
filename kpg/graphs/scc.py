"""The strongly connected components: which nodes can reach each other.

    scc(E).nodes  =  { (v, c) : v an end of an edge, c = least node that reaches v and is reached from it }
    scc(E).edges  =  { (u, v) in E : u and v in one component },  as often as in E

Two loops, one in the other. Label each node with the least that reaches it over the edges kept so far; ends of an edge
in one component have the same label, so an edge whose ends differ can go. Then the same against the edges' direction,
and again until nothing goes: a round that drops nothing finds one node, the least, that reaches and is reached by all
it is connected with, so what is left then is the answer.

Nodes are whole numbers. Cost: about five indexes of the edges; two passages of each edge, and few more for those that
later rounds find out. Installing `nodes` and `edges` as two answers computes both twice: use them in one, if you can.
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
    """The component (`node`, `component`) of each end of `edges` (src, dst), and the edges within components."""
    edges = indexed(edges).select("src", "dst")
    with edges.db.loop("scc") as loop:
        nodes = loop.enter(nodes_of(edges))
        kept = loop.variable(edges)
        forward = kept.arrange("src")
        ahead = label(nodes, forward, "src", "dst")
        backward = alike(forward, ahead, "src", "dst").arrange("dst")
        back = label(nodes, backward, "dst", "src")
        left = alike(backward, back, "dst", "src")
        kept.set(left)
        return Components(loop.leave(ahead), loop.leave(left))


def label(nodes: Collection, edges: Collection, start: str, end: str) -> Collection:
    """For each node the least that reaches it, indexed; only those that no smaller one leads to need to start."""
    led_to = edges.filter(col(start) < col(end)).select(node=col(end))
    return spread(without(nodes, led_to), (edges, start, end)).arrange("node")


def alike(edges: Collection, labels: Collection, start: str, end: str) -> Collection:
    """The edges whose ends have the same label; found from the index by `start` that `label` uses."""
    labelled = edges.join(labels, on={start: "node"}).select(end, "component", start)
    pairs = labels.select("node", "component")  # the rows of their index as they come, settled and in order
    return labelled.join(pairs, on={end: "node", "component": "component"}).select(end, start)
