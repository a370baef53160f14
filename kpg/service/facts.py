"""The rows of one base relation: changes as users give them, to updates of its input.

    facts.encode(rows)           lanes, or a refusal that says which row
    facts.apply(data, diffs)     what they come to under the relation's semantics, at the open time

A set and a keyed relation look up the rows that a change touches in the relation's own index; so do later changes of
the same transaction. The times of writes of an attribute whose last write wins are an input of their own, so that the
index of the attribute is one of entity and value, as queries read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kpg.columns.consolidation import consolidate
from kpg.columns.schema import Schema
from kpg.columns.table_rows import encode
from kpg.columns.updates import Ints, Updates, constant
from kpg.errors import InUse
from kpg.service.relations import Declared
from kpg.service.semantics import settle

if TYPE_CHECKING:
    from kpg.api.database import Database
    from kpg.api.input import Input


class Facts:
    """A base relation and its input."""

    def __init__(self, db: Database, declared: Declared, keep_on_disk: bool = True) -> None:
        self.db = db
        self.declared = declared
        self.schema = declared.schema
        found = db.inputs.get(declared.name)
        self.input: Input = found if found is not None and found.is_log else db.input(
            declared.name, declared.schema, key=declared.key or None, keep_on_disk=keep_on_disk
        )  # fmt: skip
        self._written: Input | None = None
        if declared.written:
            times = Schema.of({"e": declared.schema.types[0], "t": int})
            self._written = db.input(f"{declared.name} written", times, key="e")
        self._changed = self.schema if self._written is None else self.schema.concat(Schema.of({"t": int}))

    def encode(self, rows: Any) -> Ints:
        """Rows as lanes."""
        if self.input.is_log:
            raise InUse(f"{self.declared.name} is written by the db itself")
        if not self.declared.columns and isinstance(rows, list):
            rows = [row or (0,) for row in rows]
        return encode(self._changed, rows, self.db.symbols)

    def apply(self, data: Ints, diffs: Ints) -> None:
        """Change the relation, at the open time."""
        if not data.shape[1]:
            return
        if self.declared.semantics == "raw":
            self._push(self.input, Updates(data, constant((0,)), diffs.reshape(1, -1)))
            return
        self.input.base(self.declared.indexed_by)
        if self._written is not None:
            self._apply_written(self._written, data, diffs)
            return
        names = self.declared.key or self.input.base().schema.names
        key = [self.schema.index(name) for name in self.declared.key or self.schema.names]
        order = None if self.declared.order is None else self.schema.index(self.declared.order)
        there = self.input.present(names, data[[self.schema.index(name) for name in names]])
        self._push(self.input, settle(there.data, data, diffs, key, order))

    def _apply_written(self, written: Input, data: Ints, diffs: Ints) -> None:
        values, times = (source.present(("e",), data[:1]).data for source in (self.input, written))
        there = np.concatenate([values, times[1:]])  # both have each entity once, in the same order
        found = settle(there, data, diffs, [0], 2)
        for source, lanes in ((self.input, [0, 1]), (written, [0, 2])):
            part = Updates(np.ascontiguousarray(found.data[lanes]), found.times, found.diffs)
            self._push(source, consolidate(part))

    def _push(self, source: Input, updates: Updates) -> None:
        now = constant(self.db.time.elements[0])
        source.take_lanes(Updates(updates.data, now, updates.diffs))

    def close(self) -> None:
        """No more rows will come."""
        self.input.close()
        if self._written is not None:
            self._written.close()
