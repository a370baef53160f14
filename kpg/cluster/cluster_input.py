"""Inputs of a cluster: rows are encoded here and sent to the workers at once; they count with the next advance.

Rows of an input with a key go to the worker that owns the key, so that an upsert finds what it replaces there; those
of others go wherever there is room, many at a time in equal shares, and the workers exchange them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kpg.algebra.order import join
from kpg.api.input import Input
from kpg.api.installed_arrangement import InstalledArrangement
from kpg.cluster.message import Rows, symbolic_lanes
from kpg.columns.schema import Schema
from kpg.columns.selection import keep, slice_updates
from kpg.columns.updates import Ints, Updates, constant
from kpg.errors import BadPlan
from kpg.operators.exchange import owners_of
from kpg.plan.plan_values import name_of_function

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase
    from kpg.cluster.cluster_output import ClusterArrangement

SHARED = 4096  # rows that are worth dividing


class ClusterInput(Input):
    """A named relation whose rows are with the workers."""

    db: ClusterDatabase

    def __init__(self, db: ClusterDatabase, name: str, schema: Schema, key: str | tuple[str, ...] | None) -> None:
        super().__init__(db, name, schema, key)
        self._symbolic = symbolic_lanes(schema)
        self._next = 0  # the worker whose turn it is

    # Rows in

    def _give(self, function: Callable[..., Any], options: dict[str, Any], diff: int) -> int:
        """The function is imported by name on each worker; nothing passes through this process."""
        if self.key:
            raise BadPlan("an input with a key takes rows only from here", hint="Leave key= out, or use insert().")
        name = name_of_function(function)
        self._latest = join(self._latest, self.db.time.elements[0])
        self.db.mark_dirty(self)
        request = {"do": "make", "name": self.name, "function": name, "options": options, "diff": diff}
        return sum(reply.value for reply in self.db.ask(request))

    def replace_lanes(self, data: Ints) -> None:
        now = constant(self.db.time.elements[0])
        self._send(Updates(data, now, constant((1,))), {"do": "insert", "name": self.name, "replacing": True})

    def _take(self, updates: Updates) -> None:
        self._send(updates, {"do": "insert", "name": self.name})

    def _send(self, updates: Updates, request: dict[str, Any]) -> None:
        if not len(updates):
            return
        self._latest = join(self._latest, tuple(updates.times.max(axis=1).tolist()))
        self.db.mark_dirty(self)
        for rank, part in self._parts(updates):
            self.db.tell(rank, request, [Rows(part, self._symbolic)])

    def _parts(self, updates: Updates) -> list[tuple[int, Updates]]:
        """Which worker gets which rows."""
        workers = self.db.workers
        if self.key:
            lanes = [self.schema.index(name) for name in self.key]
            symbolic = tuple(self.schema.types[lane].is_symbolic for lane in lanes)
            owner = owners_of(np.ascontiguousarray(updates.data[lanes]), symbolic, self.db.symbols, workers).owner
            return [(rank, keep(updates, owner == rank)) for rank in np.unique(owner).tolist()]
        if len(updates) < SHARED:
            self._next = (self._next + 1) % workers
            return [(self._next, updates)]
        cuts = [len(updates) * rank // workers for rank in range(workers + 1)]
        return [(rank, slice_updates(updates, cuts[rank], cuts[rank + 1])) for rank in range(workers)]

    # Towards queries

    def base(self, keys: tuple[str, ...] | None = None) -> InstalledArrangement:
        raise AssertionError("the rows are with the workers")

    def keep_by(self, *keys: str) -> None:
        self.schema.select(keys)
        self.db.ensure_arranged(self.name, keys)

    def arrange(self, *keys: str) -> ClusterArrangement:  # type: ignore[override]
        self.schema.select(keys)
        return self.db.installer.arrangement_of(self, keys)

    # End

    def close(self) -> None:
        self.db.check()
        if not self.closed:
            self.db.ask({"do": "close_input", "name": self.name, "dirty": self.name in self.db.dirty})
            self.db.dirty.pop(self.name, None)
            self.closed = True

    def drop(self) -> None:
        self.db.check()
        if not self.dropped:
            self.db.ask({"do": "drop_input", "name": self.name})
            self.closed = self.dropped = True
            self.db.dirty.pop(self.name, None)
            self.db.inputs.pop(self.name, None)
