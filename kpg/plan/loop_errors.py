"""The errors that an answer depends on, and those of loops: which rounds count.

A loop of rules is declarative: its meaning is the fixed point. An error counts if the fixed point has it, so a row that
a later round takes back takes its error with it. The updates of all rounds add up to just that.

Any other loop is a sequence of rounds: round n + 1 computes from what round n left. A row that fails in round n is
missing in round n + 1, and everything after might differ. So an error of any round counts, at each time at which that
round has it. Removing the input removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kpg.operators.iterate import Feedback
from kpg.operators.reduce import reduce
from kpg.plan import nodes
from kpg.plan.node_traversal import dependencies_first, dependencies_of_node
from kpg.plan.reductions import presence_tactic
from kpg.plan.rendered import Rendered
from kpg.plan.scopes import enclosing_loop
from kpg.plan.streams import ERRORS
from kpg.progress.summary import step_round

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


def masks_of(roots: Sequence[nodes.PlanNode], own: Callable[[nodes.PlanNode], int]) -> list[int]:
    """Return for each node the union of the bits of all nodes that it depends on.

    One pass over the nodes, and another for each loop around a loop.
    """
    order = dependencies_first(roots)
    masks = {node: own(node) for node in order}
    changed = any(masks.values())
    while changed:
        changed = False
        for node in order:
            mask = masks[node]
            for inner in dependencies_of_node(node):
                mask |= masks[inner]
            changed |= mask != masks[node]
            masks[node] = mask
    return [masks[root] for root in roots]


def collect_errors(renderer: Renderer, errors: list[Rendered]) -> Rendered | None:
    """Return errors of any scopes as one stream outside all loops, or None if there are none."""
    if not errors:
        return None
    while loop := max((part.loop for part in errors if part.loop), key=nodes.Loop.depth, default=None):
        streams = [part.stream for part in errors if part.loop is loop]
        inside = Rendered(streams[0].concat(*streams[1:]), ERRORS, loop)
        counted = inside if loop.declarative else errors_of_all_rounds(renderer, inside, loop)
        errors = [part for part in errors if part.loop is not loop]
        errors.append(renderer.scopes.leave(counted, enclosing_loop(loop)))
    streams = [part.stream for part in errors]
    return Rendered(streams[0].concat(*streams[1:]), ERRORS, None)


def errors_of_all_rounds(renderer: Renderer, errors: Rendered, loop: nodes.Loop) -> Rendered:
    """Accumulate the errors of all rounds: each round has its own errors and those of the round before."""
    depth = errors.stream.depth
    feedback = Feedback(f"errors of {loop.name}", loop.max_rounds, loop.stops)
    earlier = renderer.dataflow.add(feedback, depth=depth)
    renderer.dataflow.add_input(feedback, depth, step_round(depth))
    all_rounds = replace(errors, stream=errors.stream.concat(earlier), placed=None)
    arrangement = renderer.arrange_rendered(all_rounds, errors.schema.names, f"arrange errors of {loop.name}")
    policy = renderer.context.merge_policy
    _, out = reduce(
        renderer.dataflow, "distinct", arrangement.arranged, presence_tactic(1), value_lanes=0, policy=policy
    )
    renderer.keep_handle(out.handle)
    renderer.dataflow.connect(out.stream, feedback, 0)
    return renderer.rendered(out.stream, errors.schema, loop, consolidated=True)
