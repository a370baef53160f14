"""What a rendering asks for: the streams and arrangements that must be there before a node's own operators.

    needs_of(...)  =  what `Renderer` asks of itself while it renders that one node, in the order it asks

The renderer works these off with a list of its own, so a plan may be as deep as memory allows. Whatever is missing here
is rendered when asked for, which costs a frame of Python's stack, no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kpg.plan import nodes
from kpg.plan.chains import chain_to
from kpg.plan.delta_queries import index_of
from kpg.plan.joins import keys_of, pairs_of
from kpg.plan.reductions import reads_index

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


class Dependency(NamedTuple):
    """A node, to be had as a stream, or arranged by some columns."""

    node: nodes.PlanNode
    keys: tuple[str, ...] | None = None


def needs_of(renderer: Renderer, need: Dependency) -> list[Dependency]:
    """What is needed for something that is needed."""
    node, keys = need
    if keys is None:
        return _of_collection(renderer, node)
    if isinstance(node, nodes.ArrangeNode):
        return [Dependency(node.input, keys)]
    if isinstance(node, (nodes.RelationNode, nodes.InstalledNode)) and node.owner.arranged_by(keys) is not None:
        return []
    return [Dependency(node)]


def _of_collection(renderer: Renderer, node: nodes.PlanNode) -> list[Dependency]:
    match node:
        case nodes.RelationNode() | nodes.InstalledNode():
            return []
        case nodes.ConcatNode() | nodes.ConsolidateNode() | nodes.VariableNode() | nodes.LeaveNode():
            return [Dependency(inner) for inner in nodes.inputs_of(node)]
        case nodes.DeltaSourceNode() | nodes.SaturatedNode():
            return [Dependency(inner) for inner in nodes.inputs_of(node)]
        case nodes.JoinNode():
            return _of_join(node)
        case nodes.ExtendNode():
            said = (*node.extenders, *node.gates)
            return [Dependency(node.input), *[Dependency(each.node, index_of(renderer, each)) for each in said]]
        case nodes.ArrangeNode():
            return [Dependency(node.input, node.keys)]
        case nodes.ReduceNode():
            return [Dependency(node.input, node.keys if reads_index(node) else None)]
    start = nodes.inputs_of(chain_to(renderer, node)[0])[0]
    return _of_join(start) if isinstance(start, nodes.JoinNode) and renderer.is_private(start) else [Dependency(start)]


def _of_join(node: nodes.JoinNode) -> list[Dependency]:
    keys = keys_of(node)
    return [Dependency(view.node, by) for pair in pairs_of(node) for view, by in zip(pair, keys, strict=True)]
