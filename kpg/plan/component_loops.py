"""Render loops that compute the strongly connected components of a graph as one operator.

The author of such a loop names the edges when the result leaves it (`LeaveNode.graph`): two nested loops are too many
shapes to recognise. The operator needs all edges on one worker, and times of one coordinate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.columns.schema import Schema
from kpg.operators import linear
from kpg.operators.maintain_components import maintain_components
from kpg.plan import nodes
from kpg.plan.rendered import Rendered

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def why_components_loop(renderer: Renderer, leave: nodes.LeaveNode) -> str | None:
    """Return why the components cannot be one operator here; None if they can."""
    if not renderer.is_alone:
        return "it runs on several workers"
    if renderer.context.depth != 1:
        return "times have several coordinates"
    if leave.loop.surrounding() or leave.loops:
        return "it is inside another loop"
    return None


def render_components(renderer: Renderer, leave: nodes.LeaveNode) -> Rendered:
    """Render the components of a graph as one operator."""
    assert leave.graph is not None
    rendered = renderer.collection(leave.graph)
    lanes = tuple(rendered.schema.lane_of(name) for name in ("src", "dst"))
    node = rendered.schema.type_of("src")
    edges = rendered
    if lanes != tuple(range(rendered.schema.width)):
        ends = Schema.of({"src": node, "dst": node})
        edges = renderer.add_stages(rendered, [linear.PickStage(lanes)], "edges", ends)
    stream = maintain_components(renderer.dataflow, leave.loop.name, renderer.gather([edges]))
    components = Rendered(stream, Schema.of({"node": node, "component": node}), None)
    return renderer.reorder(components, leave.schema)
