"""Choose the operator that maintains a function of groups.

Outside loops times are totally ordered, and counts, presence and sums need no output trace (`sweep_reduce`). Inside
loops, and for all other functions, the general operator (`reduce`) is used. Its output is an arrangement by the same
key, which a join on that key shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kpg.columns.exact_sums import LaneKinds
from kpg.columns.schema import Schema
from kpg.columns.updates import Ints
from kpg.dataflow.graph import Stream
from kpg.dataflow.operator import Operator
from kpg.operators import corrections
from kpg.operators.correction_columns import Corrections, InterestingTimes
from kpg.operators.one_pass_tactic import SUMS, OnePassTactic
from kpg.operators.reduce import reduce
from kpg.operators.sweep import Sweep, sweep_reduce
from kpg.operators.tactic import Evaluate, ReplayTactic, Tactic
from kpg.operators.unfit_totals import UnfitTotals
from kpg.plan import nodes
from kpg.plan.rendered import Rendered, RenderedArrangement
from kpg.trace.key_history import KeyHistory

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def maintain_reduction(
    renderer: Renderer,
    node: nodes.ReduceNode,
    arrangement: RenderedArrangement,
    schema: Schema,
    name: str,
    sweep: Sweep | None,
    tactic: Tactic,
    share: bool = True,
    unfit: str | None = None,
) -> Rendered:
    """Add the operator that maintains a function of each group. `schema` names the lanes of its output, keys first.

    `unfit` is the reason of the errors of totals that do not fit 64 bits, if the function is a total.
    """
    arranged = arrangement.arranged
    keys = schema.select(node.keys)
    totals = None if unfit is None else UnfitTotals(renderer.context.failures, unfit, keys, node.reduction.origin)
    operator: Operator
    if sweep is not None and arranged.depth == 1:
        operator, stream = sweep_reduce(renderer.dataflow, name, arranged, sweep, totals)
    else:
        value_lanes = schema.width - schema.width_of(len(node.keys))
        policy = renderer.context.merge_policy
        reducer, out = reduce(
            renderer.dataflow, name, arranged, tactic, value_lanes=value_lanes, policy=policy, unfit=totals
        )
        operator = reducer
        operator.schema = schema
        stream = out.stream
        output = replace(arrangement, arranged=out, schema=schema, publisher=reducer)
        renderer.keep_handle(out.handle)
        if share:
            renderer.remember(node, node.keys, output)
    if unfit is not None:
        renderer.add_errors(Stream(((operator, 1),), stream.depth), arrangement.loop)
    placed = tuple(range(schema.width_of(len(node.keys))))
    return renderer.rendered(stream, schema, arrangement.loop, consolidated=True, placed=placed)


def sums_tactic(kinds: LaneKinds) -> Tactic:
    """Return the tactic that sums diffs with lanes of some kinds."""
    width, evaluate = len(kinds), partial(corrections.evaluate_sums, kinds=kinds)
    return OnePassTactic(SUMS, 1, 0, width, width, ReplayTactic(ignoring_keys(evaluate), width))


def ignoring_keys(evaluate: Callable[[InterestingTimes, KeyHistory, KeyHistory], Corrections]) -> Evaluate:
    """Adapt an evaluation that does not need the keys of its groups."""

    def adapted(keys: Ints, times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        return evaluate(times, inputs, outputs)

    return adapted
