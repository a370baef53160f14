"""The dependencies of a rendering: the streams and arrangements that must exist before the operators of a node.

    dependencies_of(...)  =  the streams and arrangements that `Renderer` requests to render one node, in that order

The renderer renders them from an explicit stack, so only memory bounds the depth of a plan. If this module misses a
dependency, the renderer renders it on request, by a recursive call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kpg.plan import nodes
from kpg.plan.chains import chain_to
from kpg.plan.delta_queries import index_of
from kpg.plan.joins import is_broadcast
from kpg.plan.node_traversal import inputs_of
from kpg.plan.reductions import reads_index

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


class RenderDependency(NamedTuple):
    """A node that is needed as a stream (`keys` is None) or arranged by some columns."""

    node: nodes.PlanNode
    keys: tuple[str, ...] | None = None


def dependencies_of(renderer: Renderer, dependency: RenderDependency) -> list[RenderDependency]:
    """Return the direct dependencies of a dependency."""
    node, keys = dependency
    if keys is None:
        return _of_collection(renderer, node)
    if isinstance(node, nodes.ArrangeNode):
        return [] if node.is_of_relation() else [RenderDependency(node.input, keys)]
    if isinstance(node, (nodes.RelationNode, nodes.InstalledNode)) and node.owner.arranged_by(keys) is not None:
        return []
    return [RenderDependency(node)]


def _of_collection(renderer: Renderer, node: nodes.PlanNode) -> list[RenderDependency]:
    match node:
        case nodes.RelationNode() | nodes.InstalledNode() | nodes.StreamNode() | nodes.ValuesNode():
            return []
        case nodes.LeaveNode() if node.graph is not None and renderer.is_component_operator(node):
            return [RenderDependency(node.graph)]
        case nodes.LeaveNode() if (least_values := renderer.least_values_of(node)) is not None:
            return [RenderDependency(inner) for inner in least_values.inputs()]
        case nodes.LeaveNode() if (rules := renderer.rules_of(node)) is not None:
            return [RenderDependency(inner) for inner in rules.inputs()]
        case nodes.LeaveNode():
            return [RenderDependency(node.input)]
        case nodes.ConcatNode() | nodes.ConsolidateNode() | nodes.WorkerComponentsNode() | nodes.VariableNode():
            return [RenderDependency(inner) for inner in inputs_of(node)]
        case nodes.DeltaSourceNode() | nodes.SaturatedNode() | nodes.ChosenRowsNode() | nodes.NumberedRowsNode():
            return [RenderDependency(inner) for inner in inputs_of(node)]
        case nodes.JoinNode():
            return _of_join(renderer, node)
        case nodes.ExtendNode():
            extenders = (*node.extenders, *node.gates)
            return [
                RenderDependency(node.input),
                *[RenderDependency(extender.node, index_of(renderer, extender)) for extender in extenders],
            ]
        case nodes.ArrangeNode():
            return [RenderDependency(node if node.is_of_relation() else node.input, node.keys)]
        case nodes.ReduceNode():
            return [RenderDependency(node.input, node.keys if reads_index(renderer, node) else None)]
    start = inputs_of(chain_to(renderer, node)[0])[0]
    return (
        _of_join(renderer, start)
        if isinstance(start, nodes.JoinNode) and renderer.is_private(start)
        else [RenderDependency(start)]
    )


def _of_join(renderer: Renderer, node: nodes.JoinNode) -> list[RenderDependency]:
    if is_broadcast(node, renderer.is_alone):
        return [RenderDependency(node.left), RenderDependency(node.right)]
    return [RenderDependency(view.node, view.index) for pair in renderer.pairs_of(node) for view in pair]
