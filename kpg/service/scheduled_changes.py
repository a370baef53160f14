"""Changes for later times: they wait, and take effect when the clock reaches their time.

    service.transact([Change(":device/speed", (7, 80))], at=12)      applied before other changes of time 12

A waiting change is a row of an input of its own, which holds the rows of the change as an Arrow stream. The
transaction that applies the change also removes that row. So a durable db loses no waiting change and applies none
twice.
Cost: as if the changes were made at their time, and a heap of the waiting ones.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from kpg.columns.schema import Schema
from kpg.service.base_relations import Catalog, EncodedChanges

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Input

NAME = "scheduled changes"
DIFF = " diff"  # the column of diffs; no column of a relation begins with a space


class ScheduledChange(NamedTuple):
    """The changes of one relation for a time. Fields are ordered as changes are applied."""

    at: int
    number: int
    relation: str
    rows: bytes


class ScheduledChanges:
    """The waiting changes of a service."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.db = catalog.db
        self._waiting: list[ScheduledChange] = []
        self._applied: list[ScheduledChange] = []  # at the open time, which is not closed yet
        self._applied_at = -1
        self._input: Input | None = None
        if NAME in self.db.stored_relations:
            self._restore(self._declare())
        self._number = max((change.number for change in self._waiting), default=-1) + 1

    def _declare(self) -> Input:
        if self._input is None:
            self.db.closing.append(self.apply_due)
            self._input = self.db.input(NAME, Schema.of({"at": int, "number": int, "relation": str, "rows": bytes}))
        return self._input

    def _restore(self, stored: Input) -> None:
        with stored.output(f"{NAME} at start") as rows:
            self.db.settle()
            self._waiting = [ScheduledChange(*row) for row in rows.rows()] if self.db.sealed is not None else []
        heapq.heapify(self._waiting)

    def add(self, encoded: list[EncodedChanges], at: int, origin: tuple[str, int] | None) -> None:
        """Keep changes for a later time, in a transaction of their own."""
        changes: list[ScheduledChange] = []
        source = self._declare()

        def fill(db: Database) -> None:
            for relation, data, diffs in encoded:
                table = relation.decode(data).append_column(DIFF, pa.array(diffs))
                changes.append(ScheduledChange(at, self._number + len(changes), relation.name, to_bytes(table)))
            source.insert(changes)

        self.db.transact(fill, origin=origin)
        self._number += len(changes)
        for change in changes:
            heapq.heappush(self._waiting, change)

    def forget(self, relation: str) -> None:
        """Drop the waiting changes of a relation, in a transaction of their own."""
        dropped = [change for change in self._waiting if change.relation == relation]
        if not dropped:
            return
        source, waiting = self._declare(), self._waiting
        self._waiting = [change for change in waiting if change.relation != relation]
        heapq.heapify(self._waiting)
        try:
            self.db.transact(lambda db: source.remove(dropped))
        except BaseException:
            self._waiting = waiting
            raise

    @property
    def next_time(self) -> int | None:
        """The earliest time of a waiting change."""
        return self._waiting[0].at if self._waiting else None

    def apply_due(self) -> None:
        """Apply the changes for the open time, which the caller is about to close."""
        if self._applied_at == self.db.epoch and NAME not in self.db.pending:  # closing it failed: nothing was applied
            for change in self._applied:
                heapq.heappush(self._waiting, change)
        if self._applied_at != self.db.epoch or NAME not in self.db.pending:
            self._applied, self._applied_at = [], self.db.epoch
        while self._waiting and self._waiting[0].at <= self.db.epoch:
            change = heapq.heappop(self._waiting)
            self._applied.append(change)
            self._declare().remove([change])
            relation = self.catalog.relations.get(change.relation)
            if relation is not None and not relation.closed:
                table = pa.ipc.open_stream(change.rows).read_all()
                diffs = np.array(table.column(DIFF).to_numpy())  # a copy, because kernels take no read-only arrays
                relation.apply(relation.encode(table.drop_columns(DIFF)), diffs)


def to_bytes(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
