"""Loops. A variable is the sum of its source and its feedback; rendering connects the feedback last.

    variable  =  source + feedback(definition − source)

Updates that cancel must be consolidated before they enter the next round, or they would circulate forever. An
arrangement consolidates; a cycle without an arrangement therefore gets a consolidation.

On several workers, a variable that a reduction defines is placed by the keys of that reduction: its source is placed
alike when it enters, once, and the rows that come back are there already. So an arrangement of the variable by these
keys needs no exchange, and a round of the loop waits for other workers once instead of twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kpg.operators import iterate, linear
from kpg.plan import nodes
from kpg.plan.node_traversal import inputs_of
from kpg.plan.placement import Placed, common_placement
from kpg.plan.rendered import Rendered
from kpg.progress import summary

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


class OpenVariable(NamedTuple):
    """A variable whose feedback has no input yet."""

    node: nodes.VariableNode
    feedback: iterate.Feedback
    source: Rendered | None
    placed: Placed


def render_variable(renderer: Renderer, node: nodes.VariableNode) -> tuple[Rendered, OpenVariable]:
    """Return the stream of a variable, and what is left to close."""
    loop = node.loop
    depth = renderer.context.depth + loop.depth()
    feedback = iterate.Feedback(loop.name, loop.max_rounds, loop.stops)
    stream = renderer.dataflow.add(feedback, depth=depth)
    renderer.dataflow.add_input(feedback, depth, summary.step_round(depth))
    source, placed = None, None if renderer.is_alone else placement_of_variable(node)
    if node.source is not None:
        source = renderer.reorder(renderer.collection_in(node.source, loop), node.schema)
        source = renderer.place(source, placed)
        stream = source.stream.concat(stream)
    return Rendered(stream, node.schema, loop, placed=placed), OpenVariable(node, feedback, source, placed)


def placement_of_variable(node: nodes.VariableNode) -> Placed:
    """Return the lanes by which to place a variable: the keys of the reduction that defines it, if one does."""
    definition = node.loop.definition(node)
    if not isinstance(definition, nodes.ReduceNode) or not definition.keys:
        return None
    return node.schema.lanes_of(definition.keys)


def close_variable(renderer: Renderer, variable: OpenVariable) -> None:
    """Connect the feedback of a variable: its definition minus its source."""
    node, feedback, source, placed = variable
    loop, definition = node.loop, node.loop.definition(node)
    result = renderer.place(renderer.reorder(renderer.collection_in(definition, loop), node.schema), placed)
    parts = [result]
    if source is not None:
        parts.append(renderer.add_stages(source, [linear.NegateStage()], "negate", node.schema))
    stream = result.stream.concat(*[part.stream for part in parts[1:]])
    feedback_input = replace(
        result, stream=stream, consolidated=False, placed=common_placement(part.placed for part in parts)
    )
    if has_linear_cycle(definition, loop):
        feedback_input = renderer.consolidate(feedback_input)
    renderer.dataflow.connect(feedback_input.stream, feedback, 0)


def has_linear_cycle(node: nodes.PlanNode, loop: nodes.Loop) -> bool:
    """Return whether updates can go round a loop without passing an arrangement, which would consolidate them.

    The cycle may pass through inner loops: updates of different inner rounds get equal times when they leave.
    """
    stack, seen = [node], set[nodes.PlanNode]()
    while stack:
        current = stack.pop()
        if isinstance(current, nodes.VariableNode) and current.loop is loop:
            return True
        if current in seen:
            continue
        seen.add(current)
        if isinstance(current, nodes.VariableNode) and loop in current.loop.surrounding():
            stack += [*inputs_of(current), current.loop.definition(current)]
        elif isinstance(current, (*nodes.LINEAR, nodes.ConcatNode, nodes.EnterNode, nodes.LeaveNode)):
            stack += inputs_of(current)
    return False
