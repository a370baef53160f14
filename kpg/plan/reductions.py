"""Reductions: which arrangement a function of groups needs, and how the function is computed.

Which operator maintains it is decided in `maintain`; sums have a file of their own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kpg.columns.schema import BINARY, Schema
from kpg.operators import corrections, linear
from kpg.operators.iterate import Feedback
from kpg.operators.one_pass_tactic import FIRST, PRESENCE, OnePassTactic
from kpg.operators.python_reducer import PythonReducer, SplitFailures
from kpg.operators.reduce import reduce
from kpg.operators.sweep import SUMS, Sweep
from kpg.operators.tactic import ReplayTactic, Tactic
from kpg.operators.text_ranks import first_by_rank
from kpg.plan import nodes
from kpg.plan.group_order import Order, has_index, has_order, order_of
from kpg.plan.reduce_tactics import ignoring_keys, maintain, sums_tactic
from kpg.plan.rendered import Rendered, RenderedArrangement
from kpg.plan.sums import render_sums
from kpg.progress.summary import step_round

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def reads_index(node: nodes.ReduceNode) -> bool:
    """Whether a reduction reads the index of its input by its keys as it is; else it makes one of the stream."""
    match node.reduction.kind:
        case "presence" | "function":
            return True
        case "count":
            return has_index(node.input, node.keys)
        case "first":
            return has_order(node, order_of(node))
    return False


def render_reduction(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    """The stream of a reduction."""
    match node.reduction.kind:
        case "presence":
            return _presence(renderer, node)
        case "count":
            return _count(renderer, node)
        case "sums":
            return render_sums(renderer, node)
        case "first":
            return _first(renderer, node)
        case "function":
            return _function(renderer, node)
    raise AssertionError(f"no reduction {node.reduction.kind}")


def _presence(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    at_least = node.reduction.at_least
    found = renderer.arranged(node.input, node.keys)
    return maintain(
        renderer,
        node,
        found,
        node.schema.select(node.keys),
        "distinct" if at_least == 1 else f"threshold {at_least}",
        Sweep(PRESENCE, at_least),
        _presence_tactic(at_least),
    )


def render_errors_of_loop(renderer: Renderer, errors: Rendered, loop: nodes.Loop) -> Rendered:
    """The errors of all rounds: a row that failed in one round is gone in the next, and yet was not dealt with."""
    depth = errors.stream.depth
    feedback = Feedback(f"errors of {loop.name}", loop.max_rounds)
    earlier = renderer.dataflow.add(feedback, depth=depth)
    renderer.dataflow.add_input(feedback, depth, step_round(depth))
    all_rounds = replace(errors, stream=errors.stream.concat(earlier), placed=None)
    found = renderer.arrange_rendered(all_rounds, errors.schema.names, f"arrange errors of {loop.name}")
    policy = renderer.context.merge_policy
    _, out = reduce(renderer.dataflow, "distinct", found.arranged, _presence_tactic(1), value_lanes=0, policy=policy)
    renderer.keep_handle(out.handle)
    renderer.dataflow.connect(out.stream, feedback, 0)
    return renderer.rendered(out.stream, errors.schema, loop, tidy=True)


def _presence_tactic(at_least: int) -> Tactic:
    return OnePassTactic(
        PRESENCE, at_least, 0, 0, 1, ReplayTactic(ignoring_keys(partial(corrections.evaluate_presence, at_least)), 0)
    )


def _count(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    found = _arranged_keys(renderer, node)
    return maintain(renderer, node, found, node.schema, "count", Sweep(SUMS), sums_tactic(1))


def _arranged_keys(renderer: Renderer, node: nodes.ReduceNode) -> RenderedArrangement:
    """An arrangement by the keys: one that exists with whatever values, else one of the keys alone."""
    inner = node.input
    if has_index(inner, node.keys):
        return renderer.arranged(inner, node.keys)
    rendered = renderer.collection(inner)
    alone = renderer.reorder(rendered, rendered.schema.select(node.keys))
    return renderer.arrange_rendered(alone, node.keys, f"arrange {', '.join(node.keys) or 'all'}")


def _first(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    """The first rows of each group by some columns, the others breaking ties."""
    order = order_of(node)
    turned = order.complemented
    if has_order(node, order):
        found = renderer.arranged(node.input, node.keys)
    else:
        ordered = renderer.reorder(renderer.collection(node.input), order.schema)
        ordered = renderer.add_stages(
            ordered, [linear.ComplementStage(turned)] if turned else [], "order", order.schema
        )
        found = renderer.arrange_rendered(ordered, node.keys, f"arrange {', '.join(node.keys) or 'all'}")
    tactic = _first_tactic(renderer, node.reduction, order)
    made = maintain(renderer, node, found, order.schema, "first", None, tactic, share=not turned)
    return renderer.add_stages(made, [linear.ComplementStage(turned)], "order", order.schema) if turned else made


def _first_tactic(renderer: Renderer, reduction: nodes.ReductionSpec, order: Order) -> Tactic:
    limit, copies, values = reduction.limit, int(reduction.copies), len(order.ranked)
    if order.symbolic:
        by_rank = partial(first_by_rank, renderer.context.symbols, order.ranked, order.descending, limit, copies)
        return ReplayTactic(by_rank, values)
    general = ReplayTactic(ignoring_keys(partial(corrections.evaluate_first, limit, copies)), values)
    return OnePassTactic(FIRST, 1, values, values, 1, general) if limit == 1 and not copies else general


def _function(renderer: Renderer, node: nodes.ReduceNode) -> Rendered:
    found = renderer.arranged(node.input, node.keys)
    assert node.reduction.function is not None
    outputs = node.schema.select([name for name in node.schema.names if name not in node.keys])
    values = found.schema.select(found.schema.names[len(node.keys) :])
    reducer = PythonReducer(
        node.reduction.function,
        node.schema.select(node.keys),
        values,
        outputs,
        renderer.context.symbols,
        renderer.context.failures,
        (renderer.dataflow.id, len(renderer.dataflow.operators)),
    )
    raw = found.schema.select(node.keys)
    raw = raw.concat(Schema.of({" failure": BINARY.optional()})).concat(outputs)
    tactic = ReplayTactic(reducer.evaluate, 1 + len(outputs))
    made = maintain(renderer, node, found, raw, "reduce", None, tactic, share=False)
    return renderer.add_stages(made, [SplitFailures(len(node.keys))], "reduced", node.schema)
