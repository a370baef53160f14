"""Reductions: the arrangement that a function of groups needs, and the tactic that computes the function.

`kpg.plan.reduce_tactics` chooses the operator that maintains the function. Sums are in `kpg.plan.sums`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kpg.columns.exact_sums import COUNT_ONLY
from kpg.columns.schema import BINARY, Schema
from kpg.errors import BadPlan
from kpg.operators import corrections, linear
from kpg.operators.connected_components import evaluate_components
from kpg.operators.maintain_classes import maintain_classes
from kpg.operators.one_pass_tactic import FIRST, PRESENCE, OnePassTactic
from kpg.operators.python_reducer import PythonReducer, SplitFailuresStage
from kpg.operators.sweep import SUMS, Sweep
from kpg.operators.tactic import Evaluate, ReplayTactic, Tactic
from kpg.operators.text_ranks import first_by_rank
from kpg.operators.unfit_totals import NUMBER_OF_ROWS
from kpg.operators.value_statistics import Statistic, StatisticsReducer
from kpg.plan import nodes
from kpg.plan.group_order import GroupOrder, has_index, has_order, order_of
from kpg.plan.reduce_tactics import ignoring_keys, maintain_reduction, sums_tactic
from kpg.plan.rendered import Rendered, RenderedArrangement
from kpg.plan.sums import render_sums

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def reads_index(renderer: Renderer, node: nodes.ReduceNode) -> bool:
    """Return whether a reduction reads an index of its input by its keys; otherwise it arranges the stream itself."""
    match node.reduction.kind:
        case "function" | "statistics":
            return True
        case "components":
            return bool(node.loops)
        case "presence" | "count":
            return _shares_index(renderer, node)
        case "first":
            return has_order(node, order_of(node))
    return False


def render_reduction(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    """Render a reduction."""
    match node.reduction.kind:
        case "presence":
            return _presence(renderer, node)
        case "count":
            return _count(renderer, node)
        case "sums":
            return render_sums(renderer, node)
        case "first":
            return _first(renderer, node)
        case "components":
            return _components(renderer, node)
        case "function":
            return _function(renderer, node)
        case "statistics":
            return _statistics(renderer, node)
    raise AssertionError(f"unknown reduction {node.reduction.kind}")


def _presence(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    at_least = node.reduction.at_least
    arrangement = _arranged_keys(renderer, node)
    return maintain_reduction(
        renderer,
        node,
        arrangement,
        node.schema.select(node.keys),
        "distinct" if at_least == 1 else f"threshold {at_least}",
        Sweep(PRESENCE, at_least),
        presence_tactic(at_least),
    )


def presence_tactic(at_least: int) -> Tactic:
    """Return the tactic that keeps each row with a count of at least `at_least` once."""
    return OnePassTactic(
        PRESENCE, at_least, 0, 0, 1, ReplayTactic(ignoring_keys(partial(corrections.evaluate_presence, at_least)), 0)
    )


def _count(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    arrangement = _arranged_keys(renderer, node)
    tactic = sums_tactic(COUNT_ONLY)
    return maintain_reduction(
        renderer, node, arrangement, node.schema, "count", Sweep(SUMS), tactic, unfit=NUMBER_OF_ROWS
    )


def _arranged_keys(renderer: Renderer, node: nodes.ReduceNode) -> RenderedArrangement:
    """Return an arrangement by the keys: an existing one with any values, or else one of the keys alone."""
    if _shares_index(renderer, node):
        return renderer.arranged(node.input, node.keys)
    rendered = renderer.collection(node.input)
    keys_only = renderer.reorder(rendered, rendered.schema.select(node.keys))
    return renderer.arrange_rendered(keys_only, node.keys, f"arrange {', '.join(node.keys) or 'all'}")


def _shares_index(renderer: Renderer, node: nodes.ReduceNode) -> bool:
    """Return whether an index of the input by the keys exists, or would hold the keys alone."""
    inner, keys = node.input, node.keys
    if node.reduction.kind == "presence" and len(keys) == len(inner.schema):
        return True
    return has_index(inner, keys) or renderer.is_arranged(inner, keys)


def _first(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    """Render the first rows of each group by some columns; the other columns break ties."""
    order = order_of(node)
    complemented = order.complemented
    if has_order(node, order):
        arrangement = renderer.arranged(node.input, node.keys)
    else:
        ordered = renderer.reorder(renderer.collection(node.input), order.schema)
        ordered = renderer.add_stages(
            ordered, [linear.ComplementStage(complemented)] if complemented else [], "order", order.schema
        )
        arrangement = renderer.arrange_rendered(ordered, node.keys, f"arrange {', '.join(node.keys) or 'all'}")
    tactic = _first_tactic(renderer, node.reduction, order)
    reduced = maintain_reduction(
        renderer, node, arrangement, order.schema, "first", None, tactic, share=not complemented
    )
    return (
        renderer.add_stages(reduced, [linear.ComplementStage(complemented)], "order", order.schema)
        if complemented
        else reduced
    )


def _first_tactic(renderer: Renderer, reduction: nodes.ReductionSpec, order: GroupOrder) -> Tactic:
    limit, copies, values = reduction.limit, int(reduction.copies), len(order.ranked)
    if order.symbolic:
        by_rank = partial(first_by_rank, renderer.context.symbols, order.ranked, order.descending, limit, copies)
        return ReplayTactic(by_rank, values)
    general = ReplayTactic(ignoring_keys(partial(corrections.evaluate_first, limit, copies)), values)
    return OnePassTactic(FIRST, 1, values, values, 1, general) if limit == 1 and not copies else general


def _components(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    for name, type_ in zip(node.input.schema.names, node.input.schema.types, strict=True):
        if type_.lanes > 1:
            raise BadPlan(
                f"cannot compute the components of {name}", detail=f"It is {type_}.", hint="Use int64 or string."
            )
    if not node.loops:
        pairs = renderer.reorder(renderer.collection(node.input), node.input.schema)
        if pairs.stream.depth == 1:
            pact = renderer.to_one_worker(pairs.schema)
            stream = maintain_classes(renderer.dataflow, pairs.stream, pact, pairs.schema)
            return renderer.rendered(stream, node.schema, None)
    arrangement = renderer.arranged(node.input, node.keys)
    return maintain_reduction(
        renderer, node, arrangement, node.schema, "components", None, ReplayTactic(evaluate_components, 2)
    )


def _function(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    arrangement = renderer.arranged(node.input, node.keys)
    assert node.reduction.function is not None
    values = arrangement.schema.select(arrangement.schema.names[len(node.keys) :])
    reducer = PythonReducer(
        node.reduction.function,
        node.schema.select(node.keys),
        values,
        _outputs(node),
        renderer.context.symbols,
        renderer.context.failures,
        (renderer.dataflow.id, len(renderer.dataflow.operators)),
    )
    return _with_failures(renderer, node, arrangement, reducer.evaluate, "reduce")


def _statistics(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    arrangement = renderer.arranged(node.input, node.keys)
    values = arrangement.schema.select(arrangement.schema.names[len(node.keys) :])
    wanted = [text.split(":", 1) for text in node.reduction.columns]
    types = _outputs(node).types
    reducer = StatisticsReducer(
        tuple(Statistic(kind, option, type_) for (kind, option), type_ in zip(wanted, types, strict=True)),
        node.schema.select(node.keys),
        values,
        tuple(f"-{name}" in node.reduction.order for name in values.names for _ in range(values.type_of(name).lanes)),
        renderer.context.symbols,
        renderer.context.failures,
        (renderer.dataflow.id, len(renderer.dataflow.operators)),
        node.reduction.origin,
    )
    return _with_failures(renderer, node, arrangement, reducer.evaluate, "statistics")


def _outputs(node: nodes.ReduceNode) -> Schema:
    return node.schema.select([name for name in node.schema.names if name not in node.keys])


def _with_failures(
    renderer: Renderer, node: nodes.ReduceNode, arrangement: RenderedArrangement, evaluate: Evaluate, name: str
) -> Rendered:
    """Maintain a function whose first output lane is a failure or null; failures leave as errors."""
    outputs = _outputs(node)
    raw = arrangement.schema.select(node.keys)
    raw = raw.concat(Schema.of({" failure": BINARY.optional()})).concat(outputs)
    tactic = ReplayTactic(evaluate, 1 + outputs.width)
    reduced = maintain_reduction(renderer, node, arrangement, raw, name, None, tactic, share=False)
    return renderer.add_stages(reduced, [SplitFailuresStage(raw.width_of(len(node.keys)))], "reduced", node.schema)
