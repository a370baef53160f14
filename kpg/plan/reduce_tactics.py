"""Choose the operator that maintains a function of groups.

Outside loops times are totally ordered, and counts, presence and sums need no output trace (`sweep_reduce`). Inside
loops, and for all other functions, the general operator (`reduce`) is used. Its output is an arrangement by the same
key, which a join on that key shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from kpg.columns.schema import Schema
from kpg.columns.updates import Ints
from kpg.operators import corrections
from kpg.operators.corrections import Corrections, InterestingTimes
from kpg.operators.one_pass_tactic import SUMS, OnePassTactic
from kpg.operators.reduce import reduce
from kpg.operators.sweep import Sweep, sweep_reduce
from kpg.operators.tactic import Evaluate, ReplayTactic, Tactic
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
) -> Rendered:
    """Add the operator that maintains a function of each group. `schema` names the lanes of its output, keys first."""
    arranged = arrangement.arranged
    if sweep is not None and arranged.depth == 1:
        stream = sweep_reduce(renderer.dataflow, name, arranged, sweep)
    else:
        value_lanes = len(schema) - len(node.keys)
        operator, out = reduce(
            renderer.dataflow, name, arranged, tactic, value_lanes=value_lanes, policy=renderer.context.merge_policy
        )
        operator.schema = schema
        stream = out.stream
        output = replace(arrangement, arranged=out, schema=schema, publisher=operator)
        renderer.keep_handle(out.handle)
        if share:
            renderer.remember(node, node.keys, output)
    return renderer.rendered(stream, schema, arrangement.loop, consolidated=True, placed=tuple(range(len(node.keys))))


def sums_tactic(width: int) -> Tactic:
    """Return the tactic that sums diffs of `width` lanes."""
    return OnePassTactic(SUMS, 1, 0, width, width, ReplayTactic(ignoring_keys(corrections.evaluate_sums), width))


def ignoring_keys(evaluate: Callable[[InterestingTimes, KeyHistory, KeyHistory], Corrections]) -> Evaluate:
    """Adapt an evaluation that does not need the keys of its groups."""

    def adapted(keys: Ints, times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        return evaluate(times, inputs, outputs)

    return adapted
