"""Scopes: bring streams and arrangements into loops, and streams out of them.

Entering a loop appends a zero to times; leaving it drops the round. An arrangement that enters keeps its trace and its
batches. Each entry into a loop is built once and shared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kpg.dataflow.channel import LocalPact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.errors import BadPlan
from kpg.operators import iterate
from kpg.plan import nodes
from kpg.plan.rendered import Rendered, RenderedArrangement
from kpg.progress import summary


class Scopes:
    """The entries into and exits from the loops of one dataflow."""

    def __init__(self, dataflow: Dataflow) -> None:
        self.dataflow = dataflow
        self._entered: dict[tuple[object, nodes.Loop], Any] = {}

    def enter(self, rendered: Rendered, loop: nodes.Loop | None) -> Rendered:
        """Return a stream of an outer scope as seen inside a loop."""
        for inner in loops_between(rendered.loop, loop):
            key = (rendered, inner)
            if key not in self._entered:
                stream = self._add_enter(iterate.Enter(f"enter {inner.name}"), rendered.stream)
                self._entered[key] = replace(rendered, stream=stream, loop=inner, consolidated=False)
            rendered = self._entered[key]
        return rendered

    def enter_arranged(self, arrangement: RenderedArrangement, loop: nodes.Loop | None) -> RenderedArrangement:
        """Return an arrangement of an outer scope as seen inside a loop."""
        for inner in loops_between(arrangement.loop, loop):
            key = (arrangement, inner)
            if key not in self._entered:
                stream = self._add_enter(iterate.EnterArranged(f"enter {inner.name}"), arrangement.arranged.stream)
                arranged = replace(arrangement.arranged, stream=stream)
                self._entered[key] = replace(arrangement, arranged=arranged, loop=inner, publisher=None)
            arrangement = self._entered[key]
        return arrangement

    def _add_enter(self, operator: iterate.Enter | iterate.EnterArranged, stream: Stream) -> Stream:
        depth = stream.depth
        return self.dataflow.add(operator, [(stream, LocalPact())], depth=depth + 1, summaries=[summary.enter(depth)])

    def leave(self, rendered: Rendered, loop: nodes.Loop | None) -> Rendered:
        """Return a stream of an inner scope as seen from an outer one."""
        for inner in reversed(loops_between(loop, rendered.loop)):
            depth = rendered.stream.depth
            operator = iterate.Leave(f"leave {inner.name}")
            stream = self.dataflow.add(
                operator, [(rendered.stream, LocalPact())], depth=depth - 1, summaries=[summary.leave(depth)]
            )
            rendered = replace(rendered, stream=stream, loop=enclosing_loop(inner), consolidated=False)
        return rendered


def enclosing_loop(loop: nodes.Loop) -> nodes.Loop | None:
    """Return the loop that directly encloses a loop."""
    return max(loop.surrounding(), key=nodes.Loop.depth, default=None)


def loops_between(start: nodes.Loop | None, end: nodes.Loop | None) -> list[nodes.Loop]:
    """Return the loops to enter, outermost first, to get from one scope into another inside it."""
    if start is end:
        return []
    chain = sorted({end, *end.surrounding()}, key=nodes.Loop.depth) if end else []
    if start is not None and start not in chain:
        raise BadPlan(
            "a collection of a loop is used outside it",
            detail=f"It depends on {start.name}.",
            hint="Take the result of the loop with leave(), or return it from iterate's step.",
        )
    return chain[chain.index(start) + 1 :] if start else chain
