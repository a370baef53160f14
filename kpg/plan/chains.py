"""Chains of linear nodes: one operator for a whole chain, and joins that produce only the columns that the chain reads.

A selection of columns right after a join becomes the projection of the join. If conditions or computed columns follow a
join, the join produces only the columns that they name. A node with several readers is rendered once, and the chain
starts after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kpg.columns.bind import bind
from kpg.columns.schema import Schema
from kpg.dataflow.channel import LocalPact
from kpg.errors import BadPlan
from kpg.operators import linear
from kpg.operators.inspect import Inspect
from kpg.plan import nodes
from kpg.plan.node_traversal import inputs_of
from kpg.plan.rendered import Rendered

if TYPE_CHECKING:
    from kpg.plan.render import Renderer

# The names of linear nodes in operator names, as `explain` and the event log show them.
LABELS: dict[type[nodes.PlanNode], str] = {
    nodes.SelectNode: "select",
    nodes.FilterNode: "filter",
    nodes.FlatMapNode: "flatmap",
    nodes.NegateNode: "negate",
    nodes.ExplodeNode: "explode",
    nodes.DelayNode: "delay",
    nodes.EnterNode: "enter",
    nodes.InspectNode: "inspect",
}


def render_chain(renderer: Renderer, node: nodes.PlanNode) -> Rendered:
    """Render the chain that ends with a linear node."""
    chain = chain_to(renderer, node)
    start = inputs_of(chain[0])[0]
    if isinstance(start, nodes.JoinNode) and renderer.is_private(start):
        rendered, chain = join_for(renderer, start, chain)
        rendered = renderer.scopes.enter(rendered, node.scope())
    else:
        rendered = renderer.collection_in(start, node.scope())
    label = "+".join(dict.fromkeys(LABELS[type(link)] for link in chain))
    stages: list[linear.LinearStage] = []
    meanings: list[Schema] = []
    schema = rendered.schema
    for link in chain:
        if isinstance(link, nodes.InspectNode):
            rendered = inspect(renderer, renderer.add_stages(rendered, stages, label, schema, meanings), link)
            stages, meanings = [], []
        else:
            stage = stage_of(renderer, link, schema)
            if stage is not None:
                stages.append(stage)
                meanings.append(schema)
            schema = (
                schema
                if isinstance(link, (nodes.FilterNode, nodes.NegateNode, nodes.DelayNode, nodes.EnterNode))
                else link.schema
            )
    return renderer.add_stages(rendered, stages, label, schema, meanings)


def chain_to(renderer: Renderer, node: nodes.PlanNode) -> list[nodes.PlanNode]:
    """Return the linear nodes that have no other reader than this chain, first to last."""
    chain = [node]
    while True:
        before = inputs_of(chain[0])[0]
        if (
            not renderer.is_private(before)
            or not isinstance(before, nodes.LINEAR)
            or isinstance(chain[0], nodes.EnterNode)
        ):
            return chain
        chain.insert(0, before)


def stage_of(renderer: Renderer, link: nodes.PlanNode, schema: Schema) -> linear.LinearStage | None:
    """Return the stage of a linear node for updates with the lanes of `schema`; None if it does nothing."""
    symbols = renderer.context.symbols
    match link:
        case nodes.SelectNode():
            bound = tuple(bind(expression, schema, symbols) for expression in link.expressions)
            columns = [expression.column for expression in bound if expression.column is not None]
            if len(columns) < len(bound):
                return linear.ComputeStage(bound, link.silent)
            lanes = tuple(lane for column in columns for lane in schema.lanes_at(column))
            return None if lanes == tuple(range(schema.width)) else linear.PickStage(lanes)
        case nodes.FilterNode():
            return linear.FilterStage(bind(link.condition, schema, symbols), silent=link.silent)
        case nodes.NegateNode():
            return linear.NegateStage()
        case nodes.DelayNode():
            return linear.DelayStage(bind(link.expression, schema, symbols), link.coordinate)
        case nodes.EnterNode():
            return (
                linear.DelayStage(bind(link.expression, schema, symbols), -1) if link.expression is not None else None
            )
        case nodes.ExplodeNode():
            return linear.ExplodeStage(schema.lane_of(link.column), schema.lanes_of(link.schema.names))
        case nodes.FlatMapNode():
            lanes = schema.lanes_of(link.input.schema.names)
            return linear.FlatMapStage(link.function, lanes, link.origin, link.silent)
    raise BadPlan(f"no rendering for {type(link).__name__}")


def inspect(renderer: Renderer, rendered: Rendered, link: nodes.InspectNode) -> Rendered:
    """Add an operator that calls a function with the updates of a stream."""
    lanes = rendered.schema.lanes_of(link.schema.names)
    operator = Inspect("inspect", link.function, lanes)
    stream = renderer.dataflow.add(operator, [(rendered.stream, LocalPact())], depth=rendered.stream.depth)
    return replace(rendered, stream=stream, consolidated=False)


def join_for(
    renderer: Renderer, node: nodes.JoinNode, chain: list[nodes.PlanNode]
) -> tuple[Rendered, list[nodes.PlanNode]]:
    """Render a join that produces only the columns that the chain reads; return it with the rest of the chain."""
    names = node.schema.names
    first = chain[0]
    if isinstance(first, nodes.SelectNode):
        bound = [bind(expression, node.schema, renderer.context.symbols) for expression in first.expressions]
        columns = tuple(node.columns[expression.column] for expression in bound if expression.column is not None)
        if len(columns) == len(bound):
            return renderer.join(node, columns, first.schema), chain[1:]
    used = columns_read_by(renderer, chain, node.schema)
    columns = tuple(node.columns[index] for index, name in enumerate(names) if name in used)
    return renderer.join(node, columns, node.schema.select([name for name in names if name in used])), chain


def columns_read_by(renderer: Renderer, chain: Sequence[nodes.PlanNode], schema: Schema) -> set[str]:
    """Return the columns of its input that a chain reads, up to the first node that computes new columns."""
    used: set[str] = set()
    for link in chain:
        match link:
            case nodes.SelectNode():
                return used | columns_of(renderer, link.expressions, schema)
            case nodes.FilterNode():
                used |= columns_of(renderer, (link.condition,), schema)
            case nodes.NegateNode():
                pass
            case _:
                break
    return set(schema.names)


def columns_of(renderer: Renderer, expressions: Sequence[Any], schema: Schema) -> set[str]:
    """Return the columns that some expressions read."""
    symbols = renderer.context.symbols
    return {schema.names[column] for expression in expressions for column in bind(expression, schema, symbols).columns}
