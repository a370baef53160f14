"""Saturate: a recursion as one operator, evaluated semi-naively.

    output i, accumulated to t  =  the least relation i that the rules derive from the inputs, accumulated to t

Input i receives the rows of relation i from outside, each row once. Each derived relation has an output. When all
inputs have passed a time, the operator computes its changes from the changes of the inputs at that time, in order of
time. It keeps no updates except waiting ones: its relations are sets of row codes, with a level for each row if rows
can be deleted (`kpg.seminaive`). An insert-only system accepts repeated rows and raises InsertOnly on a deletion.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates, constant
from kpg.dataflow.channel import LocalPact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.dataflow.operator import Inputs, Operator
from kpg.errors import InsertOnly
from kpg.operators.sealed_input import push
from kpg.seminaive.insert_only import InsertOnlyFixpoint
from kpg.seminaive.maintained import MaintainedFixpoint, RowChange
from kpg.seminaive.recursion_rules import RuleSystem
from kpg.seminaive.stored_relations import NewRows
from kpg.trace.batcher import Batcher


class Saturate(Operator):
    """Maintain the least relations that some rules derive."""

    waits_for_frontier = True

    def __init__(self, system: RuleSystem, schemas: list[Schema]) -> None:
        super().__init__(f"saturate {system.name}")
        self.system = system
        self.schemas = schemas  # of each relation
        self.fixpoint = InsertOnlyFixpoint(system) if system.insert_only else MaintainedFixpoint(system)
        self.batchers = [Batcher(arity, 1) for arity in system.arities]

    def input_frontier(self) -> Frontier:
        """Return the meet of the frontiers of all inputs."""
        upper = CLOSED
        for index in range(len(self.batchers)):
            upper = upper.meet(self.frontier(index))
        return upper

    def is_due(self) -> bool:
        frontier = self.input_frontier()
        return any(not frontier.beyond(time) for time in self.held)

    def step(self, inputs: Inputs) -> bool:
        for batcher, messages in zip(self.batchers, inputs, strict=True):
            for message in messages:
                push(batcher, message.payload)
        frontier = self.input_frontier()
        if any(not frontier.beyond(time) for time in self.usable):
            sealed = [batcher.seal(frontier) for batcher in self.batchers]
            for time in sorted({int(time) for part in sealed if len(part) for time in np.unique(part.times)}):
                self._apply([rows_at(part, time) for part in sealed], time)
        pending = CLOSED
        for batcher in self.batchers:
            pending = pending.meet(batcher.pending())
        self.hold(pending.elements)
        return False

    def _apply(self, changes: list[RowChange | None], time: int) -> None:
        """Send the changes of the derived relations at one time, given the changes of the inputs."""
        if isinstance(self.fixpoint, MaintainedFixpoint):
            for port, (added, removed) in enumerate(self.fixpoint.change(changes)):
                self._send(added, time, 1, port)
                self._send(removed, time, -1, port)
            return
        if any(change is not None and change.removed.shape[1] for change in changes):
            raise InsertOnly("a row was removed from an insert-only program", hint=INSERT_ONLY_HINT)
        inserted = [None if change is None else change.added for change in changes]
        for port, added in enumerate(self.fixpoint.insert(inserted)):
            self._send(added, time, 1, port)

    def _send(self, rows: NewRows, time: int, diff: int, port: int) -> None:
        if rows.rows.shape[1]:
            self.send(Updates(rows.rows, constant((time,)), constant((diff,)), rows.is_sorted), ((time,),), port)

    def state(self) -> Iterator[Updates]:
        for batcher in self.batchers:
            yield from batcher.parts()

    def relation_sizes(self) -> Iterator[tuple[str, int, int]]:
        waiting = sum(batcher.nbytes for batcher in self.batchers)
        for relation, name in enumerate(self.relations):
            yield name, self.fixpoint.row_count(relation), (self.fixpoint.nbytes() + waiting) // len(self.relations)

    def kept_rows(self) -> Iterator[tuple[Schema, Updates]]:
        for relation, (schema, batcher) in enumerate(zip(self.schemas, self.batchers, strict=True)):
            if any(type_.is_symbolic for type_ in schema.types):  # only symbols are of interest to the caller
                yield from ((schema, updates) for updates in batcher.parts())
                for rows in self.fixpoint.rows_of(relation):
                    yield schema, Updates(rows, constant((0,)), constant((1,)), False)

    def release(self) -> None:
        self.fixpoint = type(self.fixpoint)(self.system)
        self.batchers = [Batcher(arity, 1) for arity in self.system.arities]


def rows_at(updates: Updates, time: int) -> RowChange | None:
    """Return the rows inserted and deleted at a time; None if there are none."""
    if not len(updates):
        return None
    if updates.times.shape[1] == 1 and updates.diffs.shape[1] == 1:
        if int(updates.times[0, 0]) != time:
            return None
        data, nothing = updates.data, updates.data[:, :0]
        return RowChange(data, nothing) if int(updates.diffs[0, 0]) > 0 else RowChange(nothing, data)
    at = np.broadcast_to(updates.times[0] == time, len(updates))
    more = np.broadcast_to(updates.diffs[0] > 0, len(updates))
    if not at.any():
        return None
    return RowChange(
        np.ascontiguousarray(updates.data[:, at & more]), np.ascontiguousarray(updates.data[:, at & ~more])
    )


INSERT_ONLY_HINT = "Run the program without insert-only if rows must be removable."


def saturate(dataflow: Dataflow, system: RuleSystem, streams: list[Stream], schemas: list[Schema]) -> list[Stream]:
    """Add a recursion. Return the streams of its derived relations."""
    operator = Saturate(system, schemas)
    dataflow.add(operator, [(stream, LocalPact()) for stream in streams], depth=1, ports=system.derived)
    return [Stream(((operator, port),), 1) for port in range(system.derived)]
