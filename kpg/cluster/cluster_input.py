"""The inputs of a db on several workers: rows are encoded here and sent immediately; they count with the next advance.

Rows of an input with a key go to the worker that owns the key, which also holds the rows that an upsert replaces. Rows
of other inputs go to the workers in turn, many of them in equal shares, and the workers exchange them.

Rows are the only thing that a single worker gets. A command that installs or restores an index needs all workers at the
same point, so an upsert first makes all of them arrange the relation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.algebra.order import Time
from kpg.api.collection import Collection
from kpg.api.encoding_input import EncodingInput
from kpg.cluster.rank_commands.input_commands import (
    ArrangeInputCommand,
    CheckUnreadCommand,
    DropInputCommand,
    InsertCommand,
    MakeRowsCommand,
    PresentRowsCommand,
    SizeCommand,
)
from kpg.cluster.request_frames import RowBlock, symbolic_lanes
from kpg.columns.consolidation import consolidate_all
from kpg.columns.schema import Schema
from kpg.columns.selection import keep, slice_updates
from kpg.columns.updates import Ints, Updates, constant, no_updates
from kpg.errors import BadPlan
from kpg.operators.exchange import owners_of
from kpg.plan.plan_values import name_of_function

if TYPE_CHECKING:
    from kpg.cluster.cluster_arrangement import ClusterArrangement
    from kpg.cluster.cluster_database import ClusterDatabase

MIN_SHARED_ROWS = 4096  # fewer rows go to one worker: dividing them would cost more messages than it saves work


class ClusterInput(EncodingInput):
    """A named relation of a db on several workers; they hold its rows."""

    db: ClusterDatabase

    def __init__(
        self,
        db: ClusterDatabase,
        name: str,
        schema: Schema,
        key: str | Sequence[str] | None,
        keeps_rows: bool = True,
    ) -> None:
        super().__init__(db, name, schema, key, keeps_rows)
        self._symbolic = symbolic_lanes(schema)
        self._next_worker = 0
        self._is_arranged = False  # whether all workers have arranged it at the request of this process

    # Rows in

    def take_lanes(self, updates: Updates) -> None:
        self._send(updates, InsertCommand(self.name))

    def replace_lanes(self, data: Ints) -> None:
        self.ensure_arranged()
        now = constant(self.db.time.elements[0])
        self._send(Updates(data, now, constant((1,))), InsertCommand(self.name, replacing=True))

    def _take_made(self, function: Callable[..., Any], options: dict[str, Any], diff: int) -> int:
        """Make each worker import the function by name and call it; no row passes through this process."""
        if self.key and self.keeps_rows:
            raise BadPlan("an input with a key takes rows only from here", hint="Leave key= out, or use insert().")
        name = name_of_function(function)
        self.db.pending.add(self.name, self.db.time.elements[0])
        return sum(reply.value for reply in self.db.ask(MakeRowsCommand(self.name, name, options, diff)))

    def _send(self, updates: Updates, command: InsertCommand) -> None:
        if not len(updates):
            return
        self.db.pending.add(self.name, tuple(updates.times.max(axis=1).tolist()))
        with self.db.pending.all_or_nothing():
            for rank, part in self._parts(updates):
                self.db.tell(rank, command, [RowBlock(part, self._symbolic)])

    def _parts(self, updates: Updates) -> list[tuple[int, Updates]]:
        """Divide rows among the workers."""
        workers = self.db.workers
        if self.key:
            lanes = list(self.schema.lanes_of(self.key))
            symbolic = tuple(self.schema.lane_types()[lane].is_symbolic for lane in lanes)
            owner = owners_of(np.ascontiguousarray(updates.data[lanes]), symbolic, self.db.symbols, workers).owner
            return [(rank, keep(updates, owner == rank)) for rank in np.unique(owner).tolist()]
        if len(updates) < MIN_SHARED_ROWS:
            self._next_worker = (self._next_worker + 1) % workers
            return [(self._next_worker, updates)]
        cuts = [len(updates) * rank // workers for rank in range(workers + 1)]
        return [(rank, slice_updates(updates, cuts[rank], cuts[rank + 1])) for rank in range(workers)]

    def present(self, names: tuple[str, ...], keys: Ints) -> Updates:
        self.ensure_arranged()
        wanted = Updates(np.ascontiguousarray(keys), constant((0,)), constant((1,)))
        block = RowBlock(wanted, symbolic_lanes(self.schema.select(names)))
        replies = self.db.ask(PresentRowsCommand(self.name, names), [block])
        parts = [reply.blocks[0] for reply in replies if len(reply.blocks[0])]
        return consolidate_all(parts) if parts else no_updates(self.schema.width, 1)

    # Towards queries

    @property
    def latest(self) -> Time:
        return self.db.pending.latest(self.name)

    @property
    def size(self) -> int:
        """The number of updates that all workers hold of it."""
        return sum(reply.value for reply in self.db.ask(SizeCommand("input", self.name)))

    def look_up(self, keys: tuple[str, ...], rows: Any, as_of: Any = None) -> Callable[[], pa.Table] | None:
        return self.db.reads.indexed_rows("input", self, keys, rows, as_of)

    def keep_by(self, *keys: str) -> None:
        self.schema.select(keys)
        self.ensure_arranged(keys)

    def ensure_arranged(self, keys: tuple[str, ...] | None = None) -> None:
        """Make all workers arrange the relation, unless a query has made them do so."""
        if not self._is_arranged:
            self.db.ask(ArrangeInputCommand(self.name, keys))
            self._is_arranged = True

    def arrange(self, *keys: str) -> ClusterArrangement:
        self.schema.select(keys)
        return self.db.installer.arrangement_of(self, keys)

    # End

    def close(self) -> None:
        self.db.check()
        if not self.closed:
            self.closed = True
            self.db.transactions.close_input(self.name)

    def drop(self, *columns: str) -> Any:
        if columns:
            return Collection.drop(self, *columns)
        self.db.check()
        if not self.dropped:
            self.db.outputs.release_abandoned()
            self.db.ask(DropInputCommand(self.name))
            self.closed = self.dropped = True
            self.db.forget_input(self.name)
        return None

    def require_unread(self) -> None:
        self.db.outputs.release_abandoned()
        self.db.ask(CheckUnreadCommand(self.name))
