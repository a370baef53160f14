"""Render the nodes with results that depend on history: choices and numbers. All their rows are on one worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.operators.choose_rows import choose_rows
from kpg.operators.number_rows import number_rows
from kpg.plan import nodes
from kpg.plan.rendered import Rendered

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def render_history(renderer: Renderer, node: nodes.ChosenRowsNode | nodes.NumberedRowsNode) -> Rendered:
    """Render a choice or a numbering."""
    inner = renderer.reorder(renderer.collection(node.input), node.input.schema)
    schema = inner.schema
    pact = renderer.to_one_worker(schema)
    if isinstance(node, nodes.ChosenRowsNode):
        domains = tuple(schema.lanes_of(domain) for domain in node.domains)
        stream = choose_rows(renderer.dataflow, inner.stream, pact, schema, domains)
        return renderer.rendered(stream, schema, inner.loop)
    stream = number_rows(renderer.dataflow, inner.stream, pact, schema, node.start, node.step)
    return renderer.rendered(stream, node.schema, inner.loop)
