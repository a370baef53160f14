"""Joins of two arrangements by the same key, or of views of arrangements; each produces only the columns that are read.

A view (a filter, negation or sum of something indexed) shares the index: its filter and sign are applied to the pairs.
If a side consists of several views, each is joined separately and the streams are concatenated.

On several workers, a join by no columns sends one side to all workers, and every row of the other stays where it is:
by key, all rows of both sides would be on one worker.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kpg.columns.bind import BoundExpression, bind_condition
from kpg.columns.expression import columns_in, wrap
from kpg.columns.schema import Schema
from kpg.operators import linear
from kpg.operators.arrange import Arranged
from kpg.operators.join import join
from kpg.plan import nodes
from kpg.plan.placement import after_projection, placement_of_join
from kpg.plan.rendered import Rendered, RenderedArrangement
from kpg.plan.views import View, views_of

if TYPE_CHECKING:
    from kpg.plan.render import Renderer

Keys = tuple[tuple[str, ...], tuple[str, ...]]
Columns = tuple[tuple[int, str], ...]


def render_join(renderer: Renderer, node: nodes.JoinNode, columns: Columns, schema: Schema) -> Rendered:
    """Render a join that produces the given columns, each a side and a name on that side."""
    if is_broadcast(node, renderer.is_alone):
        return _join_by_none(renderer, node, columns, schema)
    keys = keys_of(node)
    parts = [_join_views(renderer, pair, keys, node.scope(), columns, schema) for pair in renderer.pairs_of(node)]
    if len(parts) == 1:
        return parts[0]
    stream = parts[0].stream.concat(*[part.stream for part in parts[1:]])
    return replace(parts[0], stream=stream)


def keys_of(node: nodes.JoinNode) -> Keys:
    """Return the key of each side."""
    left, right = zip(*node.on, strict=True) if node.on else ((), ())
    return left, right


def is_broadcast(node: nodes.JoinNode, alone: bool) -> bool:
    """Return whether a join sends one side to all workers; `alone`: on one worker."""
    return not node.on and not alone


def has_one_row(node: nodes.PlanNode) -> bool:
    """Return whether a node has a row or two by its form: a reduction of all rows, and what is computed of it."""
    while isinstance(node, (nodes.SelectNode, nodes.FilterNode, nodes.NegateNode, nodes.ConsolidateNode)):
        node = node.input
    return isinstance(node, nodes.ValuesNode) or (isinstance(node, nodes.ReduceNode) and not node.keys)


def _join_by_none(renderer: Renderer, node: nodes.JoinNode, columns: Columns, schema: Schema) -> Rendered:
    """Pair all rows of both sides. One that has few rows by its form goes to all workers; else the right one does."""
    everywhere, loop = int(not has_one_row(node.left)), node.scope()
    streams = [renderer.collection_in(side, loop) for side in (node.left, node.right)]
    sides = [
        renderer.arrange_everywhere(stream) if side == everywhere else renderer.arrange_where_they_are(stream)
        for side, stream in enumerate(streams)
    ]
    projection = [(side, lane) for side, name in columns for lane in sides[side].schema.lanes_of((name,))]
    left, right = sides[0].arranged, sides[1].arranged
    stream = join(renderer.dataflow, "join", left, right, projection)
    here = streams[1 - everywhere]
    placed = after_projection(here.placed, [lane if side != everywhere else None for side, lane in projection])
    return Rendered(stream, schema, loop, left.width * right.width, placed=placed)


def pairs_of(node: nodes.JoinNode, alone: bool) -> list[tuple[View, View]]:
    """Return all pairs of a view of the left side and a view of the right side; `alone`: on one worker."""
    left_keys, right_keys = keys_of(node)
    left, right = views_of(node.left, left_keys, alone), views_of(node.right, right_keys, alone)
    return [(a, b) for a in left for b in right]


def _join_views(
    renderer: Renderer,
    views: tuple[View, View],
    keys: Keys,
    loop: nodes.Loop | None,
    columns: Columns,
    schema: Schema,
) -> Rendered:
    sides = [renderer.arranged_in(view.node, view.index, loop) for view in views]
    stages: list[linear.LinearStage] = []
    meanings: list[Schema] = []
    read = list(columns)
    for side, view in enumerate(views):
        for condition in view.conditions:
            bound, of_condition = _bind_narrow(renderer, condition, sides[side].schema)
            at = schema.width + sum(part.width for part in meanings)
            read += [(side, name) for name in of_condition.names]
            stages.append(linear.FilterStage(bound, (at, at + of_condition.width)))
            meanings.append(of_condition)
    if len(read) > len(columns):
        stages.append(linear.PickStage(tuple(range(schema.width))))
    if views[0].negative != views[1].negative:
        stages.append(linear.NegateStage())
    projection = [(side, lane) for side, name in read for lane in sides[side].schema.lanes_of((name,))]
    left, right = by_first_columns(sides[0], len(keys[0])), by_first_columns(sides[1], len(keys[1]))
    placed, symbolic = None, None
    if not renderer.is_alone:
        placed = placement_of_join(columns, list(zip(*keys, strict=True)), schema)
        if placed is None:
            symbolic = sides[0].schema.symbolic_lanes(), sides[1].schema.symbolic_lanes()
    stream = join(renderer.dataflow, "join", left, right, projection, symbolic)
    pairs = Rendered(stream, schema, loop, left.width * right.width, placed=placed)
    meanings += [schema] * (len(stages) - len(meanings))
    return renderer.add_stages(pairs, stages, "view", schema, meanings)


def by_first_columns(side: RenderedArrangement, columns: int) -> Arranged:
    """Return an arrangement with only its first columns as the key."""
    arranged, key_lanes = side.arranged, side.schema.width_of(columns)
    return arranged if arranged.key_lanes == key_lanes else replace(arranged, key_lanes=key_lanes)


def _bind_narrow(renderer: Renderer, condition: Any, schema: Schema) -> tuple[BoundExpression, Schema]:
    """Bind a condition to the columns that it reads, or to all columns if it can fail: an error shows the whole row."""
    read = columns_in(wrap(condition))
    narrow = schema.select([name for name in schema.names if name in read])
    bound = bind_condition(condition, narrow, renderer.context.symbols)
    return (bind_condition(condition, schema, renderer.context.symbols), schema) if bound.fallible else (bound, narrow)
