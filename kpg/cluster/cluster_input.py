"""The inputs of a db on several workers: rows are encoded here and sent immediately; they count with the next advance.

Rows of an input with a key go to the worker that owns the key, which also holds the rows that an upsert replaces. Rows
of other inputs go to the workers in turn, many of them in equal shares, and the workers exchange them. Changes whose
effect depends on the present rows go to the owners of these, which find the effect.

Rows are the only thing that a single worker gets. A command that installs or restores an index needs all workers at the
same point, so an upsert first makes all of them arrange the relation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.algebra.order import Time, join
from kpg.api.collection import Collection
from kpg.api.encoding_input import EncodingInput
from kpg.cluster.rank_commands.input_commands import (
    ArrangeInputCommand,
    BaseColumnsCommand,
    ChangeRowsCommand,
    CheckUnreadCommand,
    DropInputCommand,
    InsertCommand,
    InsertOnlyCommand,
    MakeRowsCommand,
    PresentRowsCommand,
    RowsCommand,
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
        self._placed: tuple[str, ...] | None = None  # the columns that are hashed to find the owner, once arranged

    # Rows in

    def take_lanes(self, updates: Updates) -> None:
        if self.insert_only and len(updates):
            self._check_removals(int(updates.diffs.min()))
        if self.key:
            self._send(self._owned_parts(updates, self.key), InsertCommand(self.name))
        else:
            self.db.pending.scattered.add(self.name)
            self._send(self._scattered_parts(updates), InsertCommand(self.name))

    def change_lanes(self, data: Ints, diffs: Ints, names: tuple[str, ...], order: str | None) -> None:
        placed = self.ensure_arranged()
        if not self._is_resolved_by_owners(placed, names):
            super().change_lanes(data, diffs, names, order)
            return
        updates = Updates(data, constant(self.db.time.elements[0]), diffs.reshape(1, -1))
        self._send(self._owned_parts(updates, placed), ChangeRowsCommand(self.name, names, order))

    def _is_resolved_by_owners(self, placed: tuple[str, ...], names: tuple[str, ...]) -> bool:
        """Return whether each worker has all rows, pending ones included, that agree in some columns with one it owns.

        Owners must not have a reason to refuse changes: the advance may follow in the same message.
        """
        now = self.db.time.elements[0]
        are_at_owners = bool(placed) and set(placed) <= set(names) and self.name not in self.db.pending.scattered
        return are_at_owners and not self.insert_only and join(self.latest, now) == now

    def replace_lanes(self, data: Ints) -> None:
        self.ensure_arranged()
        if self.insert_only:  # the owners know whether they have rows to replace, which they then refuse
            self.db.pending.admission.must_ask = True
        now = constant(self.db.time.elements[0])
        parts = self._owned_parts(Updates(data, now, constant((1,))), self.key)
        self._send(parts, InsertCommand(self.name, replacing=True))

    def _take_made(self, function: Callable[..., Any], options: dict[str, Any], diff: int) -> None:
        """Make each worker import the function by name and call it; no row passes through this process.

        The command leaves with the next one. If a worker fails, the advance raises its error.
        """
        self._check_open()
        self._check_removals(diff)
        if self.key and self.keeps_rows:
            raise BadPlan("an input with a key takes rows only from here", hint="Leave key= out, or use insert().")
        name = name_of_function(function)
        self.db.pending.add(self.name, self.db.time.elements[0])
        self.db.pending.scattered.add(self.name)
        self.db.pending.have_made = True
        with self.db.pending.all_or_nothing():
            self.db.tell_all(MakeRowsCommand(self.name, name, options, diff))

    def _send(self, parts: list[tuple[int, Updates]], command: RowsCommand) -> None:
        """Send rows to workers, if there are any."""
        if not parts:
            return
        self.db.pending.add(self.name, reduce(join, [tuple(part.times.max(axis=1).tolist()) for _, part in parts]))
        with self.db.pending.all_or_nothing():
            for rank, part in parts:
                admitted = self.db.pending.admission.admits(rank, part.nbytes)
                self.db.tell(rank, replace(command, admitted=admitted), [RowBlock(part, self._symbolic)])

    def _owned_parts(self, updates: Updates, placed: tuple[str, ...]) -> list[tuple[int, Updates]]:
        """Divide rows among the workers that own them by some columns."""
        lanes = list(self.schema.lanes_of(placed))
        symbolic = tuple(self.schema.lane_types()[lane].is_symbolic for lane in lanes)
        keys = np.ascontiguousarray(updates.data[lanes])
        owner = owners_of(keys, symbolic, self.db.symbols, self.db.workers).owner
        return [(rank, keep(updates, owner == rank)) for rank in np.unique(owner).tolist()]

    def _scattered_parts(self, updates: Updates) -> list[tuple[int, Updates]]:
        """Give few rows to one worker, the workers taking turns, and many in equal shares to all."""
        workers = self.db.workers
        if not len(updates):
            return []
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
        """An estimate of its row count on all workers."""
        return sum(reply.value for reply in self.db.ask(SizeCommand("input", self.name)))

    def look_up(self, keys: tuple[str, ...], rows: Any, as_of: Any = None) -> Callable[[], pa.Table] | None:
        return self.db.reads.indexed_rows("input", self, keys, rows, as_of)

    def keep_by(self, *keys: str) -> None:
        self.schema.select(keys)
        self.ensure_arranged(keys)

    def ensure_arranged(self, keys: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Make all workers arrange the relation, unless a query has made them do so; return what places its rows.

        A new generation of workers arranges it in the same way, so that rows of the open transaction go to their
        owners again.
        """
        if self._placed is None:
            (known, *_) = [reply.value for reply in self.db.ask(BaseColumnsCommand(self.name))]
            chosen = known.keys if known is not None else self.key or keys or self.schema.names
            self.db.ask(ArrangeInputCommand(self.name, chosen))
            self._placed = known.placed if known is not None else chosen
        return self._placed

    def set_insert_only(self) -> None:
        if not self.insert_only:
            self.db.ask(InsertOnlyCommand(self.name))
        super().set_insert_only()

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
