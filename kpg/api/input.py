"""Inputs: relations that people insert into.

    insert(rows), remove(rows)     at the open epoch
    upsert(rows)                   new rows in place of those with the same key
    update_at(rows, time, diff)    at any time that is not complete
    close()                        no more rows will come

What is inserted becomes visible to queries, all at once, with the next `db.advance()`. A relation keeps one arrangement
of its rows: the first that was asked for, or one by all columns if none was; queries that come late read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kpg.algebra.order import Time, join, least
from kpg.api.arrangement import Arrangement
from kpg.api.collection import Collection
from kpg.api.installed_arrangement import InstalledArrangement, install_input
from kpg.api.times import LAST, show_frontier, show_time
from kpg.columns.consolidation import consolidate, consolidate_all
from kpg.columns.lane_values import MAX
from kpg.columns.schema import Schema
from kpg.columns.selection import keep
from kpg.columns.table_rows import encode
from kpg.columns.updates import Ints, Updates, constant
from kpg.columns.upserts import last_row_of_each_key
from kpg.dataflow.operator import Message
from kpg.dataflow.worker import logged
from kpg.errors import Closed, InsertOnly, InUse, SchemaMismatch, TimeTooEarly
from kpg.operators.source import Source
from kpg.plan import nodes
from kpg.trace.key_history import read

if TYPE_CHECKING:
    from kpg.api.database import Database


class Input(Collection):
    """A named relation: a collection whose rows come from outside."""

    def __init__(
        self, db: Database, name: str, schema: Schema, key: str | tuple[str, ...] | None, kept: bool = True
    ) -> None:
        super().__init__(db, nodes.RelationNode(schema, frozenset(), self))
        if not len(schema):
            raise SchemaMismatch(f"input {name!r} has no columns", hint='Say them, as in db.input("edges", src=int).')
        self.name = name
        self.key: tuple[str, ...] = (key,) if isinstance(key, str) else tuple(key or ())
        schema.select(self.key)
        self.closed = self.dropped = self.insert_only = False
        self.kept = kept  # on disk, if the db is durable
        self.is_log = False  # whether the db itself writes it: of that nothing is logged
        self._buffer: list[Updates] = []
        self._latest = least(db.config.coordinates)  # the join of all times that rows were given
        self._base: InstalledArrangement | None = None
        self._source: Source | None = None
        self._others: list[InstalledArrangement] = []

    # Rows in

    def insert(self, rows: Any) -> None:
        """Add rows: tuples, a dict of columns, NumPy, Arrow, pandas or polars."""
        self._push(self._encode(rows), 1)

    def remove(self, rows: Any) -> None:
        """Take rows away, each once."""
        self._push(self._encode(rows), -1)

    def insert_made(self, function: Callable[..., Any], **options: Any) -> int:
        """Add the rows that `function(worker, workers, **options)` returns on each worker; how many those are."""
        return self._give(function, options, 1)

    def remove_made(self, function: Callable[..., Any], **options: Any) -> int:
        """Take away what `function(worker, workers, **options)` returns on each worker; how many rows those are."""
        return self._give(function, options, -1)

    def _give(self, function: Callable[..., Any], options: dict[str, Any], diff: int) -> int:
        worker = self.db.worker
        data = self._encode(function(worker.index, worker.peers, **options))
        self._push(data, diff)
        return int(data.shape[1])

    def update_at(self, rows: Any, time: Any, diff: Any = 1) -> None:
        """Add rows at one time or at a time each, with one diff or a diff each; no time may be complete already."""
        data = self._encode(rows)
        times, diffs = self._times(time, data.shape[1]), self._diffs(diff, data.shape[1])
        now = self.db.time
        early = np.ones(times.shape[1], np.bool_)
        for element in now:
            early &= ~(times >= constant(element)).all(axis=0)
        if early.any() and data.shape[1]:
            first = tuple(times[:, int(np.argmax(early))].tolist())
            raise TimeTooEarly(
                f"cannot insert into {self.name} at {show_time(first)}",
                detail=f"The clock is at {show_frontier(now)}.",
                hint="Use the current time or a later one.",
            )
        self._take(Updates(data, times, diffs))

    def upsert(self, rows: Any) -> None:
        """Put rows in place of those with equal key: `db.input(..., key=)` says which columns are the key."""
        if not self.key:
            hint = 'Say it, as in db.input("users", key="id", ...).'
            raise SchemaMismatch(f"input {self.name} has no key", hint=hint)
        self.replace_lanes(last_row_of_each_key(self._encode(rows), [self.schema.index(name) for name in self.key]))

    def take_lanes(self, updates: Updates) -> None:
        """Rows that are encoded already, as they come from another process."""
        self._take(updates)

    def replace_lanes(self, data: Ints) -> None:
        """Rows that are encoded already, each key once, in place of those with equal key."""
        old = self.present(self.key, data[[self.schema.index(name) for name in self.key]])
        if len(old):
            self._take(Updates(old.data, constant(self.db.time.elements[0]), -old.diffs))
        self._push(data, 1)

    def _encode(self, rows: Any) -> Ints:
        self.db.check()
        if self.is_log:
            raise InUse(f"{self.name} is written by the db itself")
        if self.closed:
            raise Closed(f"input {self.name} is closed")
        if not self.db.time:
            raise Closed(f"input {self.name} is closed", detail="The clock was advanced to its end.")
        return encode(self.schema, rows, self.db.symbols)

    def _push(self, data: Ints, diff: int) -> None:
        self._take(Updates(data, constant(self.db.time.elements[0]), constant((diff,))))

    def only_grows(self) -> None:
        """From now on refuse to lose rows: a program that reads this keeps nothing to take them back with."""
        self.insert_only = True

    def _take(self, updates: Updates) -> None:
        if not len(updates):
            return
        if self.insert_only and int(updates.diffs.min()) < 0:
            raise InsertOnly(
                f"cannot remove rows from {self.name}",
                detail="A program that was declared insert-only reads it.",
                hint="Run that program without insert-only, if rows are to be removed.",
            )
        self.db.memory.check(updates.nbytes)
        self._latest = join(self._latest, tuple(updates.times.max(axis=1).tolist()))
        self._buffer.append(updates)
        self.db.dirty[self.name] = self

    def present(self, names: tuple[str, ...], keys: Ints) -> Updates:
        """The rows with some values in some columns, now: what is sealed and what is not yet.

        The columns are the first ones of the arrangement that this relation keeps its rows in.
        """
        lanes = [self.schema.index(name) for name in names]
        wanted = consolidate(Updates(np.ascontiguousarray(keys), constant((0,)), constant((1,)))).data
        base = self.base()
        self._catch_up(base)
        parts: list[Updates] = []
        order = [base.schema.index(name) for name in self.schema.names]
        last = (LAST,) * self.db.config.coordinates
        kept, counts = read(base.handle.batches(None), last, wanted)
        if kept.shape[1]:
            parts.append(Updates(np.ascontiguousarray(kept[order]), constant((0,)), counts))
        if join(self._latest, self.db.time.elements[0]) != self.db.time.elements[0]:
            raise SchemaMismatch(f"cannot upsert into {self.name} while it holds rows for later times")
        for updates in self._buffer:
            mask = member(updates.data[lanes], wanted)
            if mask.any():
                parts.append(keep(Updates(updates.data, constant((0,)), updates.diffs), mask))
        if not parts:
            return Updates(np.empty((len(self.schema), 0), np.int64), constant((0,)), constant((1,)))
        return consolidate_all(parts)

    def _catch_up(self, base: InstalledArrangement) -> None:
        """Have what was pushed sealed, if `db.push_to` left that work for later; several workers never leave it."""
        spine = base.publisher.spine()
        if spine is not None and spine.upper != self.db.time and self.db.worker.peers == 1:
            self.db.worker.run()

    def _times(self, time: Any, n: int) -> Ints:
        if isinstance(time, int) or (isinstance(time, tuple) and all(isinstance(x, int) for x in time)):
            return constant(self.db.as_time(time))
        times = whole_numbers(time, "times")
        times = times.reshape(1, -1) if times.ndim == 1 else times.T
        if times.shape != (self.db.config.coordinates, n):
            raise SchemaMismatch(
                f"{n} rows need as many times",
                detail=f"Found shape {times.T.shape}; a time has {self.db.config.coordinates} coordinate(s).",
            )
        return np.ascontiguousarray(times)

    def _diffs(self, diff: Any, n: int) -> Ints:
        diffs = whole_numbers(diff, "diffs").reshape(1, -1)
        if diffs.shape[1] != n and np.ndim(diff):
            raise SchemaMismatch(f"{n} rows need as many diffs", detail=f"Found {diffs.shape[1]}.")
        return np.ascontiguousarray(diffs)

    # Towards queries

    def flush(self) -> None:
        """Give what was inserted to the dataflow that arranges it."""
        base = self.base()
        assert self._source is not None
        order = [self.schema.index(name) for name in base.schema.names]
        now = self.db.time.elements
        for updates in self._buffer:
            data = updates.data if order == sorted(order) else updates.data[order]
            self._source.dataflow.feed(self._source, Message(now, Updates(data, updates.times, updates.diffs)))
        self._buffer.clear()

    def buffered(self) -> list[Updates]:
        """What was inserted since the last advance."""
        return self._buffer

    @property
    def latest(self) -> Time:
        """The join of all times that rows were given."""
        return self._latest

    @property
    def size(self) -> int:
        """How many updates it keeps and was just given: at least as many as rows, and not many more at rest."""
        spine = None if self._base is None else self._base.publisher.spine()
        kept = 0 if spine is None else sum(map(len, spine.batches_through(None)))
        return kept + sum(len(part) for part in self._buffer)

    @property
    def arranged(self) -> bool:
        """Whether there is an arrangement of it already."""
        return self._base is not None

    def take_back(self, parts: int, latest: Time) -> None:
        """Forget what was inserted after so many parts of what is buffered."""
        del self._buffer[parts:]
        self._latest = latest
        if not self._buffer:
            self.db.dirty.pop(self.name, None)

    def base(self, keys: tuple[str, ...] | None = None) -> InstalledArrangement:
        """The arrangement this relation keeps its rows in: by its key, or else by what the first to ask wants."""
        if self.dropped:
            raise Closed(f"input {self.name} was dropped")
        if self._base is None:
            chosen = self.key or (keys if keys is not None else self.schema.names)
            self._source, self._base = install_input(self.db, self.name, self.schema, chosen, not self.is_log)
            if self.db.durable is not None and self.kept:
                self.db.durable.restore(self.name, self._source, self._base, self.db.time.elements)
            if self.closed:
                self._source.dataflow.close_source(self._source)
        return self._base

    def keep_by(self, *keys: str) -> None:
        """Keep the rows indexed by these columns, if no query has made them be kept otherwise yet."""
        self.schema.select(keys)
        self.base(keys)

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """A living arrangement of this relation by these columns, if there is one."""
        self.base(keys)
        assert self._base is not None
        for installed in (self._base, *self._others):
            if installed.keys == keys and not installed.released:
                return installed
        return None

    def add_arrangement(self, installed: InstalledArrangement) -> None:
        """Remember an arrangement, so that later queries share it."""
        self._others = [other for other in self._others if not other.released] + [installed]

    # End

    def close(self) -> None:
        """Say that no more rows will come; what was inserted stays and is still answered."""
        self.db.check()
        if not self.closed:
            if self._buffer:
                if self.db.durable is not None and self.kept:
                    self.db.durable.write_rows(self)
                self.flush()
                self.db.dirty.pop(self.name, None)
            self.closed = True
            if self._source is not None:
                self._source.dataflow.close_source(self._source)
            self.db.worker.clean_up()
            self.db.told()

    def drop(self) -> None:
        """Forget the relation and all its rows; refused while others read it."""
        self.db.check()
        if self.dropped:
            return
        readers = [] if self._base is None else self._base.readers()
        if not readers and self._base is not None and self._base.users > 1:
            readers = [f"an arrangement by {', '.join(self._base.keys)}"]
        readers += [other.name for other in self._others if not other.released]
        if readers:
            raise InUse(
                f"cannot drop {self.name}", detail=f"Read by: {', '.join(readers)}.", hint="Release those first."
            )
        if self.db.durable is not None and self.kept:
            self.db.durable.forget(self)
        if self._base is not None:
            self._base.release()
        self._buffer.clear()
        self.closed = self.dropped = True
        self.db.dirty.pop(self.name, None)
        self.db.inputs.pop(self.name, None)

    def arrange(self, *keys: str) -> Arrangement:
        self.schema.select(keys)
        found = self.arranged_by(keys)
        if found is None:
            with logged(self.db.worker, not self.is_log):  # whoever asks for it, it is the relation's
                made = super().arrange(*keys)
            self.add_arrangement(made.installed)
            return made
        return Arrangement(self.db, found.share(), self.node)

    def __repr__(self) -> str:
        return f"Input({self.name!r}, {self.schema!r})"


def whole_numbers(values: Any, what: str) -> Ints:
    """Some whole numbers as a new array: the caller may change or have frozen his own."""
    found = np.asarray(values)
    if found.dtype.kind not in "iu" and found.size:
        raise SchemaMismatch(f"{what} are whole numbers", detail=f"Found {values!r}."[:200])
    if found.dtype.kind == "u" and found.size and int(found.max()) > MAX:
        raise SchemaMismatch(f"{what} are whole numbers below 2^63", detail=f"Found {found.max()}.")
    return np.array(found, np.int64)


def member(rows: Ints, wanted: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which columns of `rows` are among those of `wanted`, each sorted once."""
    both = np.concatenate([wanted, rows], axis=1)
    _, inverse = np.unique(both, axis=1, return_inverse=True)
    return np.isin(inverse.reshape(-1)[wanted.shape[1] :], inverse.reshape(-1)[: wanted.shape[1]])
