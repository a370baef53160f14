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

from kpg.columns.schema import Schema
from kpg.columns.updates import Updates, constant
from kpg.dataflow.channel import Pact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.errors import InsertOnly
from kpg.operators.complete_times import CompleteTimes
from kpg.seminaive.insert_only import InsertOnlyFixpoint
from kpg.seminaive.maintained import MaintainedFixpoint, RowChange
from kpg.seminaive.recursion_rules import RuleSystem
from kpg.seminaive.stored_relations import NewRows
from kpg.trace.batcher import Batcher


class Saturate(CompleteTimes):
    """Maintain the least relations that some rules derive."""

    def __init__(self, system: RuleSystem, schemas: list[Schema]) -> None:
        super().__init__(f"saturate {system.name}", [Batcher(arity, 1) for arity in system.arities])
        self.system = system
        self.schemas = schemas  # of each relation
        self.fixpoint = InsertOnlyFixpoint(system) if system.insert_only else MaintainedFixpoint(system)

    def process(self, time: int, parts: list[Updates]) -> None:
        changes = [row_change(part) for part in parts]
        is_read = [bool(channels) for channels in self.channels]
        if isinstance(self.fixpoint, MaintainedFixpoint):
            for port, (added, removed) in enumerate(self.fixpoint.change(changes, is_read)):
                self._send(added, time, 1, port)
                self._send(removed, time, -1, port)
            return
        if any(change is not None and change.removed.shape[1] for change in changes):
            raise InsertOnly("a row was removed from an insert-only program", hint=INSERT_ONLY_HINT)
        inserted = [None if change is None else change.added for change in changes]
        for port, new in enumerate(self.fixpoint.insert(inserted, is_read)):
            if new is not None:
                self._send(new, time, 1, port)

    def _send(self, rows: NewRows, time: int, diff: int, port: int) -> None:
        if rows.rows.shape[1]:
            self.send(Updates(rows.rows, constant((time,)), constant((diff,)), rows.is_sorted), ((time,),), port)

    def state_size(self) -> tuple[int, int]:
        rows, nbytes = super().state_size()
        derived = sum(map(self.fixpoint.row_count, range(self.system.derived)))
        return rows + derived, nbytes + self.fixpoint.nbytes()

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
        super().release()
        self.fixpoint = type(self.fixpoint)(self.system)


def row_change(updates: Updates) -> RowChange | None:
    """Return the rows that are inserted and deleted; None if there are none."""
    if not len(updates):
        return None
    if updates.diffs.shape[1] == 1:
        data, nothing = updates.data, updates.data[:, :0]
        return RowChange(data, nothing) if int(updates.diffs[0, 0]) > 0 else RowChange(nothing, data)
    more = updates.diffs[0] > 0
    return RowChange(np.ascontiguousarray(updates.data[:, more]), np.ascontiguousarray(updates.data[:, ~more]))


INSERT_ONLY_HINT = "Run the program without insert-only if rows must be removable."


def saturate(
    dataflow: Dataflow, system: RuleSystem, inputs: list[tuple[Stream, Pact]], schemas: list[Schema]
) -> list[Stream]:
    """Add a recursion. Return the streams of its derived relations."""
    operator = Saturate(system, schemas)
    dataflow.add(operator, inputs, depth=1, ports=system.derived)
    return [Stream(((operator, port),), 1) for port in range(system.derived)]
