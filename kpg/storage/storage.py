"""The storage of a worker: a log of transactions and checkpoints of batches in a directory, and recovery from them.

    storage = Storage(location)
    recovered = storage.recover(symbols)              all acknowledged transactions, once each
    pending = storage.append(transaction, symbols)    begin to write a transaction
    storage.sync(pending)                             return when it is on disk
    storage.begin_checkpoint(contents, symbols)       begin to shorten the log, on a thread of its own
    storage.end_checkpoint()                          wait for it

Storage stores relations and does not depend on dataflows: the caller passes the batches of each relation. Only one
thread at a time may call it. Several workers recover to the same point: they compute the meet of their
`durable_frontier()`, and each calls `recover(upto=...)` with it, which undoes the transactions that other workers lack.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import wait
from dataclasses import replace
from typing import Any

from kpg.algebra.frontier import Frontier
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.value_class import value_class
from kpg.errors import Closed, SchemaMismatch, StorageError, Unavailable, UndefinedName
from kpg.storage.checkpoint import Checkpoint, CheckpointWriter, RelationContent, older_manifest
from kpg.storage.directory import Directory
from kpg.storage.forks import FORK_COUNT
from kpg.storage.locate_files import open_files
from kpg.storage.manifest import Manifest, StoredRelation, frontier_to_json, schema_to_json
from kpg.storage.named_readers import NamedReader
from kpg.storage.record import Origin, Transaction, encode_note, encode_transaction
from kpg.storage.recovery import Recovered, RecoveredRelation
from kpg.storage.transaction_log import SEGMENT_BYTES, CommitGroup, Durability, TransactionLog


@value_class
class UnsyncedTransaction:
    """A transaction on its way to disk."""

    group: CommitGroup
    transaction: Transaction


class Storage:
    """The log and the checkpoints of one directory."""

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        filesystem: Any = None,
        coordinates: int = 1,
        durability: Durability = "commit",
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.files = open_files(location, filesystem)
        self.coordinates = coordinates
        self.durability: Durability = durability
        self.trouble: str | None = None  # the last error: in the files at recovery, or of a checkpoint
        self.generation = 0
        self._segment_bytes = segment_bytes
        self._fork_count = FORK_COUNT[0]
        self._recovered = False
        self._log: TransactionLog | None = None
        self._checkpointed_bytes = 0  # bytes of the log at the last checkpoint
        self.under_way: Checkpoint | None = None
        self._closed = False
        try:
            self._directory = Directory(self.files, coordinates)
        except BaseException:
            self.files.close()
            raise

    # Recovery

    def durable_frontier(self) -> Frontier:
        """Return the frontier up to which all acknowledged transactions are on disk."""
        return self._directory.durable_frontier() if not self._recovered else self._frontier

    def checkpoints(self) -> list[Frontier]:
        """Return the frontier of each readable manifest, newest first."""
        return self._directory.checkpoints()

    def recover(
        self,
        symbols: Symbols,
        *,
        upto: Frontier | None = None,
        generation: int | None = None,
        checkpoint: Frontier | None = None,
    ) -> Recovered:
        """Return all acknowledged transactions, or those complete up to a frontier; the rest is then undone, durably.

        Given a checkpoint, only manifests of that frontier are used.
        """
        assert not self._recovered, "recovered already"
        try:
            recovered, cut = self._directory.load(symbols, upto, checkpoint)
        except StorageError:
            self.close()
            raise
        self.trouble = self._directory.trouble
        self._continue_from(recovered)
        if cut or (generation is not None and generation != self.generation):
            self.generation = recovered.generation if generation is None else generation
            self._log_note("cut", upto=frontier_to_json(self._frontier), generation=self.generation)
        return recovered

    def _continue_from(self, recovered: Recovered) -> None:
        self._recovered = True
        self._frontier = recovered.frontier
        self.generation = recovered.generation
        self.applied = recovered.applied
        self.declarations = recovered.declarations
        self.readers = recovered.readers
        self.relations = recovered.relations
        self._schemas = {relation.id: relation.schema for relation in self.relations.values()}
        self._changed: set[int] = set()  # ids of relations with rows that differ from the recovered ones
        self._next_relation = recovered.next_relation
        self._number = self._directory.number
        self._kept = {recovered.manifest.number: recovered.manifest}
        self._writer = CheckpointWriter(self.files, recovered.files)
        recovered.files = []
        self._log = TransactionLog(self.files, recovered.next_frame, self.durability, self._segment_bytes)

    @property
    def log(self) -> TransactionLog:
        """The log, open for appending."""
        if self._log is None:
            raise Closed("the storage is closed, or was not recovered yet")
        if self._fork_count != FORK_COUNT[0]:
            raise Unavailable(f"{self.files.location} belongs to the process that opened it, not to its children")
        return self._log

    # Relations, declarations and readers

    def declare(self, name: str, schema: Schema, key: tuple[str, ...]) -> int:
        """Return the id of a relation, a new one if it is not stored; its schema and key must be the stored ones."""
        stored = self.relations.get(name)
        if stored is None:
            relation_id = self._next_relation
            self._log_note("declare", id=relation_id, name=name, schema=schema_to_json(schema), key=key)
            self._next_relation += 1
            self.relations[name] = RecoveredRelation(relation_id, schema, key, schema.names)
            self._schemas[relation_id] = schema
            return relation_id
        if (stored.schema, stored.key) != (schema, key):
            raise SchemaMismatch(
                f"{name} was stored with other columns or another key",
                detail=f"Stored: {stored.schema!r}, key {stored.key}. Declared: {schema!r}, key {key}.",
                hint="Declare it as it was stored, or under another name.",
            )
        return stored.id

    def take_relation(self, name: str) -> RecoveredRelation:
        """Hand over the recovered rows of a relation; from now on the caller passes its content to `checkpoint`."""
        stored = self.relations[name]
        recovered = replace(stored)
        stored.batches, stored.later = [], []
        self._changed.add(stored.id)
        return recovered

    def drop(self, name: str) -> None:
        """Remove a relation and its rows."""
        if name not in self.relations:
            raise UndefinedName(f"no relation {name!r} is stored")
        self._log_note("drop", name=name)
        del self._schemas[self.relations.pop(name).id]

    def register(self, name: str, value: Any) -> None:
        """Keep a declaration, any value of JSON, by name."""
        self._log_note("register", name=name, value=value)
        self.declarations[name] = value

    def unregister(self, name: str) -> None:
        """Remove a declaration."""
        self._log_note("unregister", name=name)
        self.declarations.pop(name, None)

    def set_reader(self, name: str, reader: NamedReader) -> None:
        """Keep the time of a named reader."""
        self._log_note("reader", name=name, **reader.to_json())
        self.readers[name] = reader

    def drop_reader(self, name: str) -> None:
        """Remove a named reader."""
        self._log_note("drop reader", name=name)
        self.readers.pop(name, None)

    def _log_note(self, note: str, **members: Any) -> None:
        """Write a note and wait for the disk. Its name and members are literals in the log: they never change."""
        self.log.sync(self.log.append(encode_note({"note": note, **members})))

    # Transactions

    def append(self, transaction: Transaction, symbols: Symbols) -> UnsyncedTransaction:
        """Begin to write a transaction; it is durable when `sync` has returned. Raise if it cannot be written."""
        record = encode_transaction(transaction, self._schemas.__getitem__, symbols)
        for relation, _ in transaction.changes:
            self._changed.add(relation)
        pending = UnsyncedTransaction(self.log.begin(record), transaction)
        if pending.group.error is not None:
            raise pending.group.error
        return pending

    def sync(self, pending: UnsyncedTransaction) -> None:
        """Wait until a transaction is on disk."""
        self.log.sync(pending.group)
        upper = pending.transaction.upper
        self._frontier = upper if self._frontier.precedes(upper) else self._frontier.join(upper)
        for origin in pending.transaction.origins:
            self.applied.add(origin)

    def undo(self, upto: Frontier, origins: tuple[Origin, ...]) -> None:
        """Undo the last transaction, because other workers could not write their part of it."""
        self._log_note("cut", upto=frontier_to_json(upto), generation=self.generation)
        self._frontier = upto
        for origin in origins:
            self.applied.discard(origin)

    # Checkpoints

    @property
    def log_bytes(self) -> int:
        """The number of bytes written to the log since the last checkpoint."""
        return self.log.written_bytes - self._checkpointed_bytes

    def begin_checkpoint(
        self, contents: Mapping[str, RelationContent], symbols: Symbols, keep: Frontier | None = None
    ) -> Checkpoint:
        """Begin to write the batches that have no file yet, and a manifest, on another thread.

        `contents` has the relations that changed since recovery, complete up to the durable frontier. The others stay
        as they were recovered. The new manifest and one older remain: the last one, or the last one at the frontier
        `keep`, which other workers have, too. Transactions go on meanwhile; no other checkpoint may be under way.
        """
        assert self.under_way is None, "a checkpoint is under way"
        next_frame = self.log.end_segment()
        self._number += 1
        manifest, complete = self._plan_manifest(self._number, next_frame, contents)
        kept = older_manifest(self._kept, keep)
        self.under_way = self._writer.plan(manifest, complete, kept, symbols, self.log.written_bytes)
        self.under_way.start()
        return self.under_way

    def end_checkpoint(self) -> None:
        """Wait for the checkpoint under way, if there is one; raise its error if it has failed."""
        checkpoint = self.under_way
        if checkpoint is not None:
            wait([checkpoint.written])
            self.under_way = None
            checkpoint.release()
            checkpoint.written.result()
            self._kept = checkpoint.kept
            self._checkpointed_bytes = checkpoint.log_bytes
            self.trouble = None
            self._writer.finish(checkpoint)

    def _plan_manifest(
        self, number: int, next_frame: int, contents: Mapping[str, RelationContent]
    ) -> tuple[Manifest, dict[str, RelationContent]]:
        """Return a manifest of relations without files, and the contents of all relations."""
        stored: dict[str, StoredRelation] = {}
        complete: dict[str, RelationContent] = {}
        for name, relation in self.relations.items():
            content = contents.get(name)
            if content is None:
                assert relation.id not in self._changed, f"the rows of {name} are missing"
                content = RelationContent(relation.order, relation.batches, relation.later)
            complete[name] = content
            stored[name] = StoredRelation(relation.id, relation.schema, relation.key, content.order)
        manifest = Manifest(
            number, self.coordinates, self._frontier, next_frame, self.generation, self._next_relation, stored,
            self.applied.to_json(), dict(self.declarations),
            {name: reader.to_json() for name, reader in self.readers.items()},
        )  # fmt: skip
        return manifest, complete

    def describe(self) -> dict[str, Any]:
        """Return the state of the storage as plain values."""
        return {
            "place": self.files.location,
            "durability": self.durability,
            "frontier": frontier_to_json(self._frontier),
            "generation": self.generation,
            "log_bytes": self.log_bytes,
            "frames": self.log.frames,
            "manifests": sorted(self._kept),
            "trouble": self.trouble,
        }

    def close(self) -> None:
        """Wait for a checkpoint, write and force the waiting records, and release the directory; may be repeated."""
        if self._closed:
            return
        self._closed = True
        checkpoint, self.under_way = self.under_way, None
        if checkpoint is not None:
            wait([checkpoint.written])  # one that has failed loses nothing
        log, self._log = self._log, None
        try:
            if log is not None:
                log.close()
        finally:
            self.files.close()
