"""Chains of linear nodes: one operator for as many as follow each other, and joins that make only what is read.

A choice of columns right after a join becomes the join's projection; conditions and computed columns after a join see
only the columns they name. A node that others read too is rendered once, and the chain begins after it.
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
from kpg.plan.rendered import Rendered

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def render_chain(renderer: Renderer, node: nodes.PlanNode) -> Rendered:
    """The stream of the linear node that ends a chain."""
    chain = chain_to(renderer, node)
    start = nodes.inputs_of(chain[0])[0]
    if isinstance(start, nodes.JoinNode) and renderer.is_private(start):
        rendered, chain = join_for(renderer, start, chain)
        rendered = renderer.scopes.enter(rendered, node.scope())
    else:
        rendered = renderer.collection_in(start, node.scope())
    label = "+".join(dict.fromkeys(type(link).__name__.lower() for link in chain))
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
    """The linear nodes that only lead to this one, first to last."""
    chain = [node]
    while True:
        before = nodes.inputs_of(chain[0])[0]
        if (
            not renderer.is_private(before)
            or not isinstance(before, nodes.LINEAR)
            or isinstance(chain[0], nodes.EnterNode)
        ):
            return chain
        chain.insert(0, before)


def stage_of(renderer: Renderer, link: nodes.PlanNode, schema: Schema) -> linear.LinearStage | None:
    """What a linear node does to updates whose lanes are named by `schema`."""
    symbols = renderer.context.symbols
    match link:
        case nodes.SelectNode():
            bound = tuple(bind(expression, schema, symbols) for expression in link.expressions)
            lanes = tuple(expression.column for expression in bound if expression.column is not None)
            if len(lanes) < len(bound):
                return linear.ComputeStage(bound)
            return None if lanes == tuple(range(len(schema))) else linear.PickStage(lanes)
        case nodes.FilterNode():
            return linear.FilterStage(bind(link.condition, schema, symbols))
        case nodes.NegateNode():
            return linear.NegateStage()
        case nodes.DelayNode():
            return linear.DelayStage(bind(link.expression, schema, symbols), link.coordinate)
        case nodes.EnterNode():
            return (
                linear.DelayStage(bind(link.expression, schema, symbols), -1) if link.expression is not None else None
            )
        case nodes.ExplodeNode():
            kept = tuple(schema.index(name) for name in link.schema.names)
            return linear.ExplodeStage(schema.index(link.column), kept)
        case nodes.FlatMapNode():
            lanes = tuple(schema.index(name) for name in link.input.schema.names)
            return linear.FlatMapStage(link.function, lanes)
    raise BadPlan(f"no rendering for {type(link).__name__}")


def inspect(renderer: Renderer, rendered: Rendered, link: nodes.InspectNode) -> Rendered:
    """The stream, shown to a function as it passes."""
    lanes = tuple(rendered.schema.index(name) for name in link.schema.names)
    operator = Inspect("inspect", link.function, lanes)
    stream = renderer.dataflow.add(operator, [(rendered.stream, LocalPact())], depth=rendered.stream.depth)
    return replace(rendered, stream=stream, tidy=False)


def join_for(
    renderer: Renderer, node: nodes.JoinNode, chain: list[nodes.PlanNode]
) -> tuple[Rendered, list[nodes.PlanNode]]:
    """A join that makes only what the chain after it reads, and what is left of the chain."""
    names = node.schema.names
    first = chain[0]
    if isinstance(first, nodes.SelectNode):
        bound = [bind(expression, node.schema, renderer.context.symbols) for expression in first.expressions]
        columns = tuple(node.columns[expression.column] for expression in bound if expression.column is not None)
        if len(columns) == len(bound):
            return renderer.join(node, columns, first.schema), chain[1:]
    used = read_by(renderer, chain, node.schema)
    columns = tuple(node.columns[index] for index, name in enumerate(names) if name in used)
    return renderer.join(node, columns, node.schema.select([name for name in names if name in used])), chain


def read_by(renderer: Renderer, chain: Sequence[nodes.PlanNode], schema: Schema) -> set[str]:
    """The columns that a chain reads of its input, up to where it makes new ones."""
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
    """The columns that some expressions read."""
    symbols = renderer.context.symbols
    return {schema.names[lane] for expression in expressions for lane in bind(expression, schema, symbols).lanes}
