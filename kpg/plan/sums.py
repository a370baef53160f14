"""Counts, sums and averages of columns, accumulated in diffs. Floats that do not fit a diff are joined and summed.

    rows → into the diff → arranged by key → maintained → groups without outliers → out of the diff
                   └ outliers ────────────── joined with ─ groups with outliers  → summed exactly → out of the diff

The lower path has no work, and costs nothing, until some float is an outlier (kpg/operators/exact_float_sums.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.columns.exact_sums import lane_kinds, part_count
from kpg.columns.schema import INT64, Schema
from kpg.dataflow.channel import LocalPact
from kpg.dataflow.graph import Stream
from kpg.operators.exact_float_sums import ExactSums, FloatColumn, MarkedGroupsStage, UnmarkedGroupsStage
from kpg.operators.group_sums import SumGroups
from kpg.operators.join import join
from kpg.operators.linear import Linear, concatenate_outputs
from kpg.operators.sums_in_diff import IntoDiffStage, OutOfDiffStage, SumColumn
from kpg.operators.sweep import SUMS, Sweep
from kpg.operators.tactic import ReplayTactic
from kpg.plan import nodes
from kpg.plan.reduce_tactics import maintain_reduction, sums_tactic
from kpg.plan.rendered import Rendered

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def render_sums(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    """Render counts, sums and averages; the reduction names them "sum:amount", "avg:amount", "count:"."""
    rendered = renderer.collection(node.input)
    requested = [text.split(":", 1) for text in node.reduction.columns]
    types = {column: node.input.schema.type_of(column) for _, column in requested if column}
    starts, at = {}, 1
    for column, type_ in types.items():
        starts[column] = at
        at += part_count(type_)
    lanes_of = rendered.schema.lanes_of
    slots = [(rendered.schema.slots[rendered.schema.index(column)], type_) for column, type_ in types.items()]
    into = IntoDiffStage(lanes_of(node.keys), tuple(slots))
    keys = rendered.schema.select(node.keys)
    exploded = _into_diff(renderer, rendered, into, keys, renderer.uses[node.input] == 1)
    arrangement = renderer.arrange_rendered(exploded, node.keys, f"arrange {', '.join(node.keys) or 'all'}")
    raw = keys.concat(_numbered("part", into.width))
    kinds = lane_kinds(types.values(), marked=bool(into.floats))
    sweep, tactic = Sweep(SUMS, kinds=kinds), sums_tactic(kinds)
    summed = maintain_reduction(renderer, node, arrangement, raw, "sum", sweep, tactic, share=False)
    results = node.schema.types[len(node.keys) :]
    outputs = tuple(
        SumColumn(kind, types[column], starts[column], result) if column else SumColumn("count", INT64, 0, INT64)
        for (kind, column), result in zip(requested, results, strict=True)
    )
    totals = OutOfDiffStage(keys.width, outputs, origin=node.reduction.origin)
    if not into.floats:
        return renderer.add_stages(summed, [totals], "total", node.schema)
    floats = [column for column, type_ in types.items() if type_.kind == "float64"]
    columns = tuple(FloatColumn(starts[column], value, types[column]) for value, column in enumerate(floats))
    ordinary = renderer.add_stages(summed, [UnmarkedGroupsStage(keys.width + at), totals], "total", node.schema)
    exact = _with_outliers(renderer, node, summed, exploded, ExactSums(at, columns), outputs)
    return renderer.rendered(ordinary.stream.concat(exact.stream), node.schema, ordinary.loop)


def _into_diff(renderer: Renderer, rendered: Rendered, into: IntoDiffStage, keys: Schema, private: bool) -> Rendered:
    """Sum the rows of each message by group: in the operator that makes the rows, if no other node reads them."""
    depth = rendered.stream.depth
    if private and not into.floats and _collects_sums(rendered.stream, into):
        return Rendered(rendered.stream, keys, rendered.loop, into.width)
    ports = 2 if into.floats else 1
    operator = Linear("sum", [], collector=SumGroups(into))
    stream = renderer.dataflow.add(operator, [(rendered.stream, LocalPact())], depth=depth, ports=ports)
    return Rendered(stream, keys, rendered.loop, into.width)


def _collects_sums(stream: Stream, into: IntoDiffStage) -> bool:
    """Let a linear operator sum its rows; return False if another operator makes the stream."""
    (operator, port), *others = stream.ports
    if others or port or not isinstance(operator, Linear) or operator.collector is not concatenate_outputs:
        return False
    operator.name += "+sum"
    operator.collector = SumGroups(into)
    return True


def _with_outliers(
    renderer: Renderer,
    node: nodes.ReduceNode,
    summed: Rendered,
    exploded: Rendered,
    sums: ExactSums,
    outputs: tuple[SumColumn, ...],
) -> Rendered:
    """Sum the groups that have outliers together with their outliers."""
    keys = exploded.schema
    first, values = keys.width, len(sums.columns)
    marked = renderer.add_stages(summed, [MarkedGroupsStage(first + sums.parts, first)], "marked", summed.schema)
    groups = renderer.arrange_rendered(marked, node.keys, "arrange groups with outliers")
    stream = Stream(((exploded.stream.ports[0][0], 1),), exploded.stream.depth)
    outliers = renderer.arrange_rendered(
        renderer.rendered(stream, keys.concat(_numbered("value", values)), exploded.loop), node.keys, "arrange outliers"
    )
    read = [(0, lane) for lane in range(first + sums.parts)] + [(1, first + value) for value in range(values)]
    pairs = join(renderer.dataflow, "join", groups.arranged, outliers.arranged, read)
    schema = keys.concat(_numbered("part", sums.parts)).concat(_numbered("value", values))
    arrangement = renderer.arrange_rendered(
        renderer.rendered(pairs, schema, exploded.loop), node.keys, "arrange groups with their outliers"
    )
    raw = keys.concat(_numbered("part", sums.lanes))
    tactic = ReplayTactic(sums.evaluate, sums.lanes)
    exact_sums = maintain_reduction(renderer, node, arrangement, raw, "sum exactly", None, tactic, share=False)
    exact = tuple((column.at, sums.parts + 2 * index) for index, column in enumerate(sums.columns))
    return renderer.add_stages(
        exact_sums, [OutOfDiffStage(first, outputs, exact, node.reduction.origin)], "total", node.schema
    )


def _numbered(name: str, count: int) -> Schema:
    return Schema.of({f" {name} {index}": INT64 for index in range(count)})
