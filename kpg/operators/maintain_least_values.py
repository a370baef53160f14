"""Maintain least values: a loop that keeps the least value of each node as one operator.

    output at t  =  the least values of the graph at t (`kpg.seminaive.least_values`)

Input 0 has the start values (node, value), input 1 the edges (source, target, weight), as multisets; the last column is
missing if there are no values or weights. If nodes are their own start values, the edges are the only input. An edge
whose sum of value and weight leaves 64 bits is an error row on port 1, as long as it is there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kpg.columns.expression_origin import ExpressionOrigin, Failure
from kpg.columns.schema import INT64, Schema, Type
from kpg.columns.updates import Ints, Updates, constant
from kpg.dataflow.graph import Dataflow, Stream
from kpg.errors import Overflow
from kpg.operators.complete_times import CompleteInput, CompleteTimes
from kpg.operators.error_rows import ErrorRows
from kpg.seminaive.deferred_components import DeferredComponents
from kpg.seminaive.graph_lists import GraphChange
from kpg.seminaive.least_values import LeastValues, LeastValueSpec
from kpg.trace.batcher import Batcher


class MaintainLeastValues(CompleteTimes):
    """Keep a graph and its least values."""

    def __init__(
        self,
        spec: LeastValueSpec,
        batchers: list[Batcher],
        node: Type,
        failures: ErrorRows,
        origin: ExpressionOrigin | None = None,
    ) -> None:
        super().__init__(f"least values of {spec.name}", batchers)
        self.spec = spec
        self.node_schema = Schema.of({"node": node})
        self.failures = failures
        self.overflow = Failure("int64 overflow" if origin is None else f"int64 overflow in {origin.text}", origin)
        self.least = self._new_values()
        self._errors: Ints = np.empty(0, np.int64)  # the symbols of the error rows that are there

    def _new_values(self) -> LeastValues:
        return DeferredComponents(self.spec) if self.spec.deferred else LeastValues(self.spec)

    def process(self, time: int, parts: list[Updates]) -> None:
        edges = graph_change(parts[-1])
        starts = NO_CHANGE if self.spec.own_starts else graph_change(parts[0])
        data, diffs, is_sorted = self.least.change(starts, edges)
        if data.shape[1]:
            self.send(Updates(data, constant((time,)), diffs, is_sorted), ((time,),))
        if self.spec.weighted or self.spec.step:
            self._send_errors(time)

    def _send_errors(self, time: int) -> None:
        """Send the changes of the edges that leave 64 bits."""
        rows = self.least.overflows()
        if not rows.shape[1] and not len(self._errors):
            return
        schema = Schema.of({"source": self.node_schema.types[0], "target": self.node_schema.types[0]})
        schema = schema.concat(Schema.of({"value": INT64, "weight": INT64}))
        failures = [self.overflow] * rows.shape[1]
        now = np.sort(self.failures.intern((self.dataflow.id, self.index), failures, rows, schema))
        for symbols, diff in ((np.setdiff1d(now, self._errors), 1), (np.setdiff1d(self._errors, now), -1)):
            if len(symbols):
                self.send(Updates(symbols[None], constant((time,)), constant((diff,))), ((time,),), port=1)
        self._errors = now

    def relation_sizes(self) -> Iterator[tuple[str, int, int]]:
        if self.relations:
            waiting = sum(batcher.nbytes for batcher in self.batchers)
            yield self.relations[0], self.least.row_count(), self.least.nbytes + waiting

    def kept_rows(self) -> Iterator[tuple[Schema, Updates]]:
        if self.node_schema.types[0].is_symbolic:  # only symbols are of interest to the caller
            nodes = [self.least.used_nodes(), *[part.data[0] for part in self.state()]]
            nodes += [part.data[1] for part in self.batchers[-1].parts()]
            yield self.node_schema, Updates(np.concatenate(nodes)[None], constant((0,)), constant((1,)))

    def release(self) -> None:
        super().release()
        self.least = self._new_values()


def graph_change(updates: Updates) -> GraphChange:
    """Return updates at one time as a change of a graph."""
    diffs = updates.diffs[0]
    if diffs.dtype.hasobject:
        raise Overflow("an edge or a start value is there more than 2^63 times")
    return GraphChange(updates.data, diffs if len(diffs) == len(updates) else np.full(len(updates), diffs[0]))


NO_CHANGE = GraphChange(np.empty((2, 0), np.int64), np.empty(0, np.int64))


def maintain_least_values(
    dataflow: Dataflow,
    spec: LeastValueSpec,
    inputs: list[CompleteInput],
    node: Type,
    failures: ErrorRows,
    origin: ExpressionOrigin | None = None,
) -> tuple[Stream, Stream]:
    """Add the operator, which reads starts and edges. Return the streams of its values and of its errors.

    `origin` is that of the sums; its columns are the source, the target, the value and the weight of an error row.
    """
    operator = MaintainLeastValues(spec, [each.batcher for each in inputs], node, failures, origin)
    dataflow.add(operator, [(each.stream, each.pact) for each in inputs], depth=1, ports=2)
    return Stream(((operator, 0),), 1), Stream(((operator, 1),), 1)
