"""Loops. A variable is the sum of its source and its feedback; rendering connects the feedback last.

    variable  =  source + feedback(definition − source)

Updates that cancel must be consolidated before they enter the next round, or they would circulate forever. An
arrangement consolidates; a cycle without an arrangement therefore gets a consolidation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kpg.operators import iterate, linear
from kpg.plan import nodes
from kpg.plan.node_traversal import inputs_of
from kpg.plan.placement import common_placement
from kpg.plan.rendered import Rendered
from kpg.progress import summary

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def render_variable(renderer: Renderer, node: nodes.VariableNode) -> tuple[Rendered, iterate.Feedback]:
    """Return the stream of a variable, and its feedback operator, which has no input yet."""
    loop = node.loop
    depth = renderer.context.depth + loop.depth()
    feedback = iterate.Feedback(loop.name, loop.max_rounds, loop.stops)
    stream = renderer.dataflow.add(feedback, depth=depth)
    renderer.dataflow.add_input(feedback, depth, summary.step_round(depth))
    if node.source is not None:
        source = renderer.reorder(renderer.collection_in(node.source, loop), node.schema)
        stream = source.stream.concat(stream)
    return Rendered(stream, node.schema, loop), feedback


def close_variable(renderer: Renderer, node: nodes.VariableNode, feedback: iterate.Feedback) -> None:
    """Connect the feedback of a variable: its definition minus its source."""
    loop, definition = node.loop, node.loop.definition(node)
    result = renderer.reorder(renderer.collection_in(definition, loop), node.schema)
    parts = [result]
    if node.source is not None:
        source = renderer.reorder(renderer.collection_in(node.source, loop), node.schema)
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
