"""What a worker keeps in a directory: a log of transactions, checkpoints of its batches, and how to find them again.

    storage = Storage(place)
    found = storage.recover(symbols)            everything acknowledged, once each
    storage.commit(transaction, symbols)        returns when it is on disk; repeated origins have no effect
    storage.checkpoint(contents, symbols)       shortens the log

Knows relations, not dataflows: who runs dataflows says what their batches are. `commit` may be called by several
threads at once, who then share a frame and a wait for the disk; the rest by one. Several workers agree on the meet of
their `durable_frontier()` and each does `recover(upto=...)`, which takes back what others lack.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kpg.algebra.frontier import Frontier
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.errors import Closed, SchemaMismatch, StorageError, Unavailable, UndefinedName
from kpg.storage.checkpoint import CheckpointWriter, Content, collect, publish
from kpg.storage.directory import Directory
from kpg.storage.forks import FORKS
from kpg.storage.locate_files import open_files
from kpg.storage.manifest import (
    Manifest,
    StoredRelation,
    frontier_to_json,
    schema_to_json,
)
from kpg.storage.named_readers import NamedReader
from kpg.storage.record import Origin, Transaction, encode_note, encode_transaction
from kpg.storage.recovery import Recovered, RecoveredRelation
from kpg.storage.transaction_log import SEGMENT_BYTES, CommitGroup, Durability, TransactionLog


@dataclass(frozen=True, slots=True)
class Pending:
    """A transaction on its way to disk."""

    group: CommitGroup
    transaction: Transaction


class Storage:
    """The log and the checkpoints of one directory."""

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        filesystem: Any = None,
        coordinates: int = 1,
        durability: Durability = "commit",
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.files = open_files(place, filesystem)
        self.coordinates = coordinates
        self.durability: Durability = durability
        self.trouble: str | None = None  # what was wrong with what was found, or with the last checkpoint
        self.generation = 0
        self._segment_bytes = segment_bytes
        self._forks = FORKS[0]
        self._lock = threading.Lock()
        self._in_flight: dict[Origin, CommitGroup] = {}
        self._recovered = False
        self._log: TransactionLog | None = None
        self._bytes_before = 0
        self._closed = False
        try:
            self._directory = Directory(self.files, coordinates)
        except BaseException:
            self.files.close()
            raise

    # Recovery

    def durable_frontier(self) -> Frontier:
        """Up to where everything acknowledged is on disk."""
        return self._directory.durable_frontier() if not self._recovered else self._frontier

    def checkpoints(self) -> list[Frontier]:
        """How far each manifest that can be read has come, newest first."""
        return self._directory.checkpoints()

    def recover(
        self,
        symbols: Symbols,
        *,
        upto: Frontier | None = None,
        generation: int | None = None,
        checkpoint: Frontier | None = None,
    ) -> Recovered:
        """Everything acknowledged, or what is complete up to a frontier: then the rest is taken back, durably.

        Given a checkpoint, only manifests of that frontier will do.
        """
        assert not self._recovered, "recovered already"
        try:
            found, cut = self._directory.find(symbols, upto, checkpoint)
        except StorageError:
            self.close()
            raise
        self.trouble = self._directory.trouble
        self._begin(found)
        if cut or (generation is not None and generation != self.generation):
            self.generation = found.generation if generation is None else generation
            self._note("cut", upto=frontier_to_json(self._frontier), generation=self.generation)
        return found

    def _begin(self, found: Recovered) -> None:
        self._recovered = True
        self._frontier = found.frontier
        self.generation = found.generation
        self.applied = found.applied
        self.declarations = found.declarations
        self.readers = found.readers
        self.relations = found.relations
        self._schemas = {relation.id: relation.schema for relation in self.relations.values()}
        self._changed: set[int] = set()  # relations whose rows are no longer just those that were found
        self._next_relation = found.next_relation
        self._number = self._directory.number
        self._kept = {found.manifest.number: found.manifest}
        self._writer = CheckpointWriter(self.files, found.files)
        found.files = []
        self._log = TransactionLog(self.files, found.next_frame, self.durability, self._segment_bytes)

    @property
    def log(self) -> TransactionLog:
        """Where records go."""
        if self._log is None:
            raise Closed("the storage is closed, or was not recovered yet")
        if self._forks != FORKS[0]:
            raise Unavailable(f"{self.files.place} belongs to the process that opened it, not to its children")
        return self._log

    # What there is besides rows

    def declare(self, name: str, schema: Schema, key: tuple[str, ...]) -> int:
        """The number of a relation; one that was stored must be declared as it was."""
        found = self.relations.get(name)
        if found is None:
            number = self._next_relation
            self._note("declare", id=number, name=name, schema=schema_to_json(schema), key=key)
            self._next_relation += 1
            self.relations[name] = RecoveredRelation(number, schema, key, schema.names)
            self._schemas[number] = schema
            return number
        if (found.schema, found.key) != (schema, key):
            raise SchemaMismatch(
                f"{name} was stored otherwise",
                detail=f"Stored: {found.schema!r}, key {found.key}. Declared: {schema!r}, key {key}.",
                hint="Declare it as it was stored, or under another name.",
            )
        return found.id

    def take(self, name: str) -> RecoveredRelation:
        """The rows of a relation as they were found; from now on whoever took them tells of them."""
        found = self.relations[name]
        taken = replace(found)
        found.batches, found.later = [], []
        self._changed.add(found.id)
        return taken

    def drop(self, name: str) -> None:
        """Forget a relation and its rows."""
        if name not in self.relations:
            raise UndefinedName(f"no relation {name!r} is stored")
        self._note("drop", name=name)
        del self._schemas[self.relations.pop(name).id]

    def register(self, name: str, value: Any) -> None:
        """Keep something that can be written as JSON, by name."""
        self._note("register", name=name, value=value)
        self.declarations[name] = value

    def unregister(self, name: str) -> None:
        """Forget what was registered."""
        self._note("unregister", name=name)
        self.declarations.pop(name, None)

    def set_reader(self, name: str, reader: NamedReader) -> None:
        """Remember how far a reader has come."""
        self._note("reader", name=name, **reader.to_json())
        self.readers[name] = reader

    def drop_reader(self, name: str) -> None:
        """Forget a reader."""
        self._note("drop reader", name=name)
        self.readers.pop(name, None)

    def _note(self, kind: str, **fields: Any) -> None:
        self.log.sync(self.log.append(encode_note({"note": kind, **fields})))

    # Transactions

    def was_applied(self, origin: Origin) -> bool:
        """Whether a writer's batch is in the log or was before the last checkpoint."""
        return origin in self.applied

    def append(self, transaction: Transaction, symbols: Symbols) -> Pending:
        """Begin to write a transaction; it counts when `sync` has returned. Raises if it cannot be written."""
        record = encode_transaction(transaction, self._schemas.__getitem__, symbols)
        for relation, _ in transaction.changes:
            self._changed.add(relation)
        log = self.log
        pending = Pending(log.append(record), transaction)
        log.begin()
        if pending.group.error is not None:
            raise pending.group.error
        return pending

    def sync(self, pending: Pending) -> None:
        """Wait until a transaction is on disk."""
        try:
            self.log.sync(pending.group)
        except BaseException:
            self._land(pending.transaction.origins)
            raise
        with self._lock:
            upper = pending.transaction.upper
            self._frontier = upper if self._frontier.precedes(upper) else self._frontier.join(upper)
            for origin in pending.transaction.origins:
                self.applied.add(origin)
        if pending.transaction.origins:
            self._land(pending.transaction.origins)

    def _land(self, origins: tuple[Origin, ...]) -> None:
        with self._lock:
            for origin in origins:
                self._in_flight.pop(origin, None)

    def commit(self, transaction: Transaction, symbols: Symbols) -> bool:
        """Write a transaction and wait for the disk; False, and no effect, if all its origins were applied already."""
        while True:
            with self._lock:
                if transaction.origins and all(origin in self.applied for origin in transaction.origins):
                    return False
                twin = next((self._in_flight[each] for each in transaction.origins if each in self._in_flight), None)
                if twin is None:
                    pending = self.append(transaction, symbols)
                    self._in_flight.update(dict.fromkeys(transaction.origins, pending.group))
                    break
            self._outcome(twin)  # applied by now, or free again
        self.sync(pending)
        return True

    def _outcome(self, group: CommitGroup) -> None:
        """Wait until another thread's group is on disk, or is not."""
        try:
            self.log.sync(group)
        except StorageError:
            pass  # told to that thread

    def take_back(self, upto: Frontier, origins: tuple[Origin, ...]) -> None:
        """The last transaction has not happened after all, because others could not write their part of it."""
        self._note("cut", upto=frontier_to_json(upto), generation=self.generation)
        with self._lock:
            self._frontier = upto
            for origin in origins:
                self.applied.discard(origin)

    # Checkpoints

    @property
    def log_bytes(self) -> int:
        """What was written to the log since the last checkpoint."""
        return self.log.written_bytes - self._bytes_before

    def checkpoint(self, contents: Mapping[str, Content], symbols: Symbols) -> int:
        """Write what is not in files yet; `contents` are the relations that were changed since recovery, complete up
        to the durable frontier. Relations left out are kept as they were found. How many files were written."""
        next_frame = self.log.roll()
        number = self._number + 1
        self._writer.begin(number)
        try:
            made = self._manifest(number, next_frame, contents, symbols)
            publish(self.files, made)
        except BaseException:
            self._writer.give_up()
            raise
        self._number = number
        previous = max(self._kept)
        self._kept = {previous: self._kept[previous], number: made}
        self._bytes_before = self.log.written_bytes
        self.trouble = None
        written = self._writer.end()
        collect(self.files, self._kept)
        return written

    def _manifest(self, number: int, next_frame: int, contents: Mapping[str, Content], symbols: Symbols) -> Manifest:
        stored: dict[str, StoredRelation] = {}
        for name, relation in self.relations.items():
            content = contents.get(name)
            if content is None:
                assert relation.id not in self._changed, f"the rows of {name} are missing"
                content = Content(relation.order, relation.batches, relation.later)
            schema = relation.schema.select(content.order)
            batches = self._writer.batches(content.batches, schema, symbols)
            later = tuple(self._writer.file(updates, schema, symbols) for updates in content.later)
            stored[name] = StoredRelation(relation.id, relation.schema, relation.key, content.order, batches, later)
        return Manifest(
            number, self.coordinates, self._frontier, next_frame, self.generation, self._next_relation, stored,
            self.applied.to_json(), dict(self.declarations),
            {name: each.to_json() for name, each in self.readers.items()},
        )  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """What there is, as plain values."""
        return {
            "place": self.files.place,
            "durability": self.durability,
            "frontier": frontier_to_json(self._frontier),
            "generation": self.generation,
            "log_bytes": self.log_bytes,
            "frames": self.log.frames,
            "manifests": sorted(self._kept),
            "trouble": self.trouble,
        }

    def close(self) -> None:
        """Write what waits, and give up the directory; may be repeated."""
        if self._closed:
            return
        self._closed = True
        log, self._log = self._log, None
        try:
            if log is not None:
                log.close()
        finally:
            self.files.close()
