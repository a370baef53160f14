"""The inputs of a db in this process.

    insert(rows), remove(rows)     at the open epoch
    upsert(rows)                   new rows in place of those with the same key
    update_at(rows, time, diff)    at any time that is not complete
    close()                        no more rows will be inserted

Inserted rows become visible to queries together, with the next `db.advance()`; until then `db.pending` holds them. A
relation keeps one arrangement of its rows, the base: by its key, else by the columns that the first query asks for,
else by all columns. Queries that are installed later read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.algebra.order import Time, join
from kpg.api.collection import Collection
from kpg.api.embedded_arrangement import EmbeddedArrangement
from kpg.api.encoding_input import EncodingInput
from kpg.api.installed_arrangement import InstalledArrangement
from kpg.api.shared_indexes import indexed_rows
from kpg.api.times import LAST
from kpg.columns.consolidation import consolidate, consolidate_all
from kpg.columns.schema import Schema
from kpg.columns.selection import keep
from kpg.columns.table_rows import encode
from kpg.columns.updates import Ints, Updates, concatenate, constant
from kpg.dataflow.operator import Message
from kpg.dataflow.worker import event_logging
from kpg.errors import Closed, InUse, SchemaMismatch
from kpg.operators.source import Source
from kpg.trace.key_history import read

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase

MAX_JOINED_ROWS = 1 << 16  # of a transaction: to divide and send a second message costs more than to copy these rows


class EmbeddedInput(EncodingInput):
    """A named relation of a db in this process."""

    db: EmbeddedDatabase

    def __init__(
        self,
        db: EmbeddedDatabase,
        name: str,
        schema: Schema,
        key: str | Sequence[str] | None,
        on_disk: bool = True,
        keeps_rows: bool = True,
    ) -> None:
        super().__init__(db, name, schema, key, keeps_rows)
        self.on_disk = on_disk  # if the db is durable
        self._base: InstalledArrangement | None = None
        self._base_order: list[int] | None = None  # of the lanes in the base, if it is another than in `schema`
        self._source: Source | None = None
        self._others: list[InstalledArrangement] = []

    # Rows in

    def take_lanes(self, updates: Updates) -> None:
        if not updates.data.shape[1]:
            return
        if self.insert_only:
            self._check_removals(int(updates.diffs.min()))
        if self.db.memory.limit is not None and int(updates.diffs.max()) > 0:  # removals make room
            self.db.memory.check(updates.nbytes)
        self.db.pending.add(self.name, updates)

    def replace_lanes(self, data: Ints) -> None:
        old = self.present(self.key, data[list(self.schema.lanes_of(self.key))])
        if len(old):
            self.take_lanes(Updates(old.data, constant(self.db.time.elements[0]), -old.diffs))
        self.take_encoded(data, 1)

    def _take_made(self, function: Callable[..., Any], options: dict[str, Any], diff: int) -> None:
        worker = self.db.worker
        self.take_encoded(self.encode_rows(function(worker.index, worker.peers, **options)), diff)

    def present(self, names: tuple[str, ...], keys: Ints) -> Updates:
        base = self.base()
        first = base.schema.names[: len(names)]
        assert set(first) == set(names), f"{self.name} is not arranged by {names}"
        keys = keys[list(self.schema.select(names).lanes_of(first))]
        lanes = list(self.schema.lanes_of(first))
        wanted = consolidate(Updates(np.ascontiguousarray(keys), constant((0,)), constant((1,)))).data
        self._catch_up(base)
        parts: list[Updates] = []
        order = list(base.schema.lanes_of(self.schema.names))
        last = (LAST,) * self.db.config.coordinates
        complete, counts = read(base.handle.batches(None), last, wanted)
        if complete.shape[1]:
            parts.append(Updates(np.ascontiguousarray(complete[order]), constant((0,)), counts))
        if join(self.latest, self.db.time.elements[0]) != self.db.time.elements[0]:
            raise SchemaMismatch(f"cannot upsert into {self.name} while it holds rows for later times")
        for updates in self.db.pending.of(self.name):
            mask = member(updates.data[lanes], wanted)
            if mask.any():
                parts.append(keep(Updates(updates.data, constant((0,)), updates.diffs), mask))
        if not parts:
            return Updates(np.empty((self.schema.width, 0), np.int64), constant((0,)), constant((1,)))
        return consolidate_all(parts)

    def look_up(self, keys: tuple[str, ...], rows: Any, as_of: Any = None) -> Callable[[], pa.Table] | None:
        data = encode(self.schema.select(keys), rows, self.db.symbols)
        return indexed_rows(self.db, self, self.schema, keys, data, as_of)

    def catch_up(self) -> None:
        """Let the base arrangement include all closed epochs, if it exists."""
        if self.is_arranged:
            self._catch_up(self.base())

    def _catch_up(self, base: InstalledArrangement) -> None:
        """Seal the epochs that `db.push_to` left open. Several workers leave none: an advance waits for all of them."""
        spine = base.publisher.spine()
        if spine is not None and spine.upper != self.db.time and self.db.is_single_worker:
            self.db.worker.run_dataflow(base.dataflow)

    # Towards queries

    def flush(self) -> None:
        """Pass the pending rows to the dataflow that arranges them."""
        self.base()
        assert self._source is not None
        order, now = self._base_order, self.db.time.elements
        parts = self.db.pending.take(self.name)
        for updates in parts if self.db.is_single_worker else join_few(parts):
            ordered = updates if order is None else replace(updates, data=updates.data[order])
            self._source.dataflow.feed(self._source, Message(now, ordered))

    @property
    def latest(self) -> Time:
        return self.db.pending.latest(self.name)

    @property
    def size(self) -> int:
        spine = None if self._base is None else self._base.publisher.spine()
        kept = 0 if spine is None else spine.estimated_rows
        return kept + sum(map(len, self.db.pending.of(self.name)))

    @property
    def is_arranged(self) -> bool:
        """Whether the base arrangement exists."""
        return self._base is not None

    def base(self, keys: tuple[str, ...] | None = None) -> InstalledArrangement:
        """Return the base arrangement; install it, by the key or else by `keys`, when it is first asked for."""
        if self.dropped:
            raise Closed(f"input {self.name} was dropped")
        if self._base is None:
            chosen = self.key or (keys if keys is not None else self.schema.names)
            self._source, self._base = self.db.installer.relation(self.name, self.schema, chosen, not self.is_log)
            if self._base.schema.names != self.schema.names:
                self._base_order = list(self.schema.lanes_of(self._base.schema.names))
            if self.db.durable is not None and self.on_disk:
                self.db.durable.restore(self.name, self._source, self._base, self.db.time.elements)
            if self.closed:
                self._source.dataflow.close_source(self._source)
        return self._base

    def prepare(self) -> None:
        """Do what rows need before they can flow: arrange the relation."""
        self.base()

    def keep_by(self, *keys: str) -> None:
        self.schema.select(keys)
        self.base(keys)

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return a living arrangement of this relation by these columns, if one exists."""
        self.base(keys)
        assert self._base is not None
        for installed in (self._base, *self._others):
            if installed.keys == keys and not installed.released:
                return installed
        return None

    def sorted_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return a living arrangement by these columns, if one exists; its rows are on the workers of their keys."""
        return self.arranged_by(keys)

    def other_keys(self) -> list[tuple[str, ...]]:
        """Return the keys of the living arrangements beside the base."""
        return [other.keys for other in self._others if not other.released]

    def arrange(self, *keys: str) -> EmbeddedArrangement:
        self.schema.select(keys)
        installed = self.arranged_by(keys)
        if installed is not None:
            return EmbeddedArrangement(self.db, installed.share(), self.node)
        with event_logging(self.db.worker, not self.is_log):  # the index belongs to the relation, not to the query
            arrangement = self.db.installer.arrangement(self.node, f"{self.name} by {', '.join(keys)}", keys)
        self._others = [other for other in self._others if not other.released] + [arrangement.installed]
        return arrangement

    # End

    def close(self) -> None:
        self.db.check()
        if not self.closed:
            if self.name in self.db.pending:
                if self.db.durable is not None and self.on_disk:
                    self.db.durable.write_rows(self)
                self.flush()
            self.closed = True
            if self._source is not None:
                self._source.dataflow.close_source(self._source)
            self.db.completion.clean_up()
            self.db.notify_followers()

    def drop(self, *columns: str) -> Any:
        if columns:
            return Collection.drop(self, *columns)
        self.db.check()
        if self.dropped:
            return None
        self.require_unread()
        if self.db.durable is not None and self.on_disk:
            self.db.durable.forget(self)
        if self._base is not None:
            self._base.release()
        self._source, self._base, self._others = None, None, []
        self.closed = self.dropped = True
        self.db.pending.forget(self.name)
        self.db.inputs.pop(self.name, None)
        return None

    def require_unread(self) -> None:
        self.db.outputs.release_abandoned()
        readers = [] if self._base is None else self._base.readers()
        if not readers and self._base is not None and self._base.users > 1:
            readers = [f"an arrangement by {', '.join(self._base.keys)}"]
        readers += [other.name for other in self._others if not other.released]
        if readers:
            raise InUse(
                f"cannot drop {self.name}",
                detail=f"Read by: {', '.join(dict.fromkeys(readers))}.",
                hint="Release those first.",
            )


def member(rows: Ints, wanted: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask over the columns of `rows`: whether each is among the columns of `wanted`."""
    both = np.concatenate([wanted, rows], axis=1)
    _, inverse = np.unique(both, axis=1, return_inverse=True)
    return np.isin(inverse.reshape(-1)[wanted.shape[1] :], inverse.reshape(-1)[: wanted.shape[1]])


def join_few(parts: list[Updates]) -> list[Updates]:
    """Return the rows of a transaction as one part if they are few, so that each worker gets one message."""
    if len(parts) < 2 or sum(map(len, parts)) > MAX_JOINED_ROWS:
        return parts
    return [concatenate(parts)]
