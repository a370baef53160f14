"""Loops: a variable is its source and what comes round, which is fed back when the rest of the loop is known.

    variable  =  source + feedback(definition − source)

Updates that cancel must meet before they go round again, or they would for ever: a way round without an arrangement on
it is consolidated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kpg.operators import iterate, linear
from kpg.plan import nodes
from kpg.plan.placement import common
from kpg.plan.rendered import Rendered
from kpg.progress import summary

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def render_variable(renderer: Renderer, node: nodes.VariableNode) -> tuple[Rendered, iterate.Feedback]:
    """The stream of a variable, and the operator that waits for what comes round."""
    loop = node.loop
    depth = renderer.context.depth + loop.depth()
    feedback = iterate.Feedback(loop.name, loop.max_rounds)
    stream = renderer.dataflow.add(feedback, depth=depth)
    renderer.dataflow.add_input(feedback, depth, summary.step_round(depth))
    if node.source is not None:
        source = renderer.reorder(renderer.collection_in(node.source, loop), node.schema)
        stream = source.stream.concat(stream)
    return Rendered(stream, node.schema, loop), feedback


def close_variable(renderer: Renderer, node: nodes.VariableNode, feedback: iterate.Feedback) -> None:
    """Feed back what the variable is defined to be, less what it started from."""
    loop, definition = node.loop, node.loop.definition(node)
    result = renderer.reorder(renderer.collection_in(definition, loop), node.schema)
    parts = [result]
    if node.source is not None:
        source = renderer.reorder(renderer.collection_in(node.source, loop), node.schema)
        parts.append(renderer.add_stages(source, [linear.NegateStage()], "negate", node.schema))
    stream = result.stream.concat(*[part.stream for part in parts[1:]])
    back = replace(result, stream=stream, tidy=False, placed=common(part.placed for part in parts))
    if reaches_linearly(definition, loop):
        back = renderer.consolidate(back)
    renderer.dataflow.connect(back.stream, feedback, 0)


def reaches_linearly(node: nodes.PlanNode, loop: nodes.Loop) -> bool:
    """Whether updates can go round a loop without passing an arrangement, which would let cancelling ones meet.

    They may pass through loops inside it, whose rounds fall together when they leave.
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
            stack += [*nodes.inputs_of(current), current.loop.definition(current)]
        elif isinstance(current, (*nodes.LINEAR, nodes.ConcatNode, nodes.EnterNode, nodes.LeaveNode)):
            stack += nodes.inputs_of(current)
    return False
