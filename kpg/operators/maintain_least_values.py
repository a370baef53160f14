"""Maintain least values: a loop that keeps the least value of each key as one operator.

    output at t  =  the least values of the graph at t (`kpg.seminaive.least_values`, `kpg.seminaive.pair_values`)

A key is a node, or a group and a node, of any number of columns. Input 0 has the start values (group, node, value),
input 1 the edges (source, target, weight), as multisets; the last column is missing if there are no values or weights.
If nodes are their own start values, the edges are the only input. An edge whose sum of value and weight leaves 64 bits
is an error row on port 1, as long as it is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kpg.columns.expression_origin import ExpressionOrigin, Failure
from kpg.columns.schema import INT64, Schema
from kpg.columns.updates import Ints, Updates, constant
from kpg.dataflow.graph import Dataflow, Stream
from kpg.errors import Overflow
from kpg.operators.complete_times import CompleteInput, CompleteTimes
from kpg.operators.error_rows import ErrorRows
from kpg.seminaive.deferred_components import DeferredComponents
from kpg.seminaive.graph_lists import GraphChange
from kpg.seminaive.least_values import LeastValues, LeastValueSpec
from kpg.seminaive.pair_values import PairValues
from kpg.trace.batcher import Batcher


class KeySchemas(NamedTuple):
    """The columns of a key: of a node, and of the group that all edges leave as it is."""

    node: Schema
    group: Schema = Schema.of({})

    @property
    def of_errors(self) -> Schema:
        """The columns of the edges that leave 64 bits."""
        columns = {f"group {number}": type_ for number, type_ in enumerate(self.group.types)}
        for end in ("source", "target"):
            columns |= {f"{end} {number}": type_ for number, type_ in enumerate(self.node.types)}
        return Schema.of({**columns, "value": INT64, "weight": INT64})


class MaintainLeastValues(CompleteTimes):
    """Keep a graph and its least values."""

    def __init__(
        self,
        spec: LeastValueSpec,
        batchers: list[Batcher],
        keys: KeySchemas,
        failures: ErrorRows,
        origin: ExpressionOrigin | None = None,
    ) -> None:
        super().__init__(f"least values of {spec.name}", batchers)
        self.spec = spec
        self.keys = keys
        self.failures = failures
        self.overflow = Failure("int64 overflow" if origin is None else f"int64 overflow in {origin.text}", origin)
        self.least = self._new_values()
        self._errors: Ints = np.empty(0, np.int64)  # the symbols of the error rows that are there

    def _new_values(self) -> LeastValues | PairValues:
        if self.spec.group_lanes or self.spec.node_lanes > 1:
            return PairValues(self.spec)
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
        failures = [self.overflow] * rows.shape[1]
        now = np.sort(self.failures.intern((self.dataflow.id, self.index), failures, rows, self.keys.of_errors))
        for symbols, diff in ((np.setdiff1d(now, self._errors), 1), (np.setdiff1d(self._errors, now), -1)):
            if len(symbols):
                self.send(Updates(symbols[None], constant((time,)), constant((diff,))), ((time,),), port=1)
        self._errors = now

    def state_size(self) -> tuple[int, int]:
        rows, nbytes = super().state_size()
        return rows + self.least.row_count(), nbytes + self.least.nbytes

    def relation_sizes(self) -> Iterator[tuple[str, int, int]]:
        if self.relations:
            waiting = sum(batcher.nbytes for batcher in self.batchers)
            yield self.relations[0], self.least.row_count(), self.least.nbytes + waiting

    def kept_rows(self) -> Iterator[tuple[Schema, Updates]]:
        schemas = [self.keys.group.concat(self.keys.node), doubled(self.keys.node)]  # of starts, and of edges
        for batcher, schema in zip(self.batchers, schemas[-len(self.batchers) :], strict=True):
            for part in batcher.parts() if schema.symbolic_lanes() else ():  # only symbols are of interest
                yield schema, rows_of(part.data[: schema.width])
        if self.keys.node.symbolic_lanes():
            yield self.keys.node, rows_of(self.least.used_nodes())
        if self.keys.group.symbolic_lanes():
            yield self.keys.group, rows_of(self.least.used_groups())

    def release(self) -> None:
        super().release()
        self.least = self._new_values()


def doubled(schema: Schema) -> Schema:
    """Return the columns of the two ends of an edge."""
    return Schema.of({f"{end} {name}": schema.type_of(name) for end in ("source", "target") for name in schema.names})


def rows_of(data: Ints) -> Updates:
    """Return rows as updates."""
    return Updates(np.ascontiguousarray(data), constant((0,)), constant((1,)))


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
    keys: KeySchemas,
    failures: ErrorRows,
    origin: ExpressionOrigin | None = None,
) -> tuple[Stream, Stream]:
    """Add the operator, which reads starts and edges. Return the streams of its values and of its errors.

    `origin` is that of the sums; its columns are those of `KeySchemas.of_errors`.
    """
    operator = MaintainLeastValues(spec, [each.batcher for each in inputs], keys, failures, origin)
    dataflow.add(operator, [(each.stream, each.pact) for each in inputs], depth=1, ports=2)
    return Stream(((operator, 0),), 1), Stream(((operator, 1),), 1)
