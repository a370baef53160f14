"""Durability: a db logs each transaction before it takes effect, and restores the rows that storage recovered.

    kpg.open("dir")         relations and their rows are available again once the program declares them again
    db.advance()            returns when the transaction is on disk; if it cannot be written, nothing has changed
    db.checkpoint()         shortens the log; begins automatically when the log has grown by `checkpoint_bytes`

The log frame is written before the dataflows see the rows. Forcing it to disk overlaps with their work, and the advance
waits for both. A checkpoint is written on a thread of its own, from immutable batches, while transactions go on.
Queries and answers are code: the program installs them again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, join
from kpg.api.temporary_readers import left_behind
from kpg.columns.consolidation import consolidate
from kpg.columns.schema import Schema
from kpg.columns.selection import reorder_lanes
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates, concatenate
from kpg.config import Config
from kpg.dataflow.operator import Message
from kpg.errors import StorageError
from kpg.operators.arrange import Arrange
from kpg.operators.source import Source
from kpg.storage.checkpoint import Checkpoint, RelationContent
from kpg.storage.record import Origin, Transaction
from kpg.storage.recovery import Recovered, batch_complete_updates
from kpg.storage.storage import Storage, UnsyncedTransaction
from kpg.storage.transaction_log import Durability
from kpg.trace.batch import Batch
from kpg.trace.description import Description

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.embedded_input import EmbeddedInput
    from kpg.api.installed_arrangement import InstalledArrangement


class DurableStore:
    """The storage of a db, and the transaction that is on its way to disk."""

    def __init__(self, storage: Storage, recovered: Recovered, symbols: Symbols, checkpoint_bytes: int) -> None:
        self.storage = storage
        self.recovered = recovered
        self._symbols = symbols
        self._checkpoint_bytes = checkpoint_bytes
        self._next_checkpoint = checkpoint_bytes
        self._pending: UnsyncedTransaction | None = None
        self._numbers: dict[str, int] = {}

    # Relations

    def declare(self, source: EmbeddedInput) -> None:
        """Match an input with a stored relation, or store the new relation."""
        self._numbers[source.name] = self.storage.declare(source.name, source.schema, source.key)

    def forget(self, source: EmbeddedInput) -> None:
        """Delete a relation from storage."""
        self.wait()
        self.storage.drop(source.name)

    def restore(self, name: str, source: Source, installed: InstalledArrangement, now: tuple[Time, ...]) -> None:
        """Put the recovered rows of a relation into its new base arrangement."""
        relation = self.storage.take_relation(name)
        # The clock may have passed some of the later times before this first read.
        batch_complete_updates(relation, relation.later, Frontier(now))
        spine = installed.handle.spine
        lanes = list(relation.ordered.lanes_of(installed.schema.names))
        same = lanes == sorted(lanes)
        for batch in relation.batches:
            updates = batch.updates if same else consolidate(reorder_lanes(batch.updates, lanes))
            description = Description(spine.upper, batch.upper, batch.since)
            spine.insert(Batch(updates, installed.schema.width_of(len(installed.keys)), description))
        installed.publisher.upper = spine.upper
        installed.dataflow.worker.queue_idle_work(installed.publisher)  # the restored batches may need compaction
        for later in relation.later:
            message = Message(now, reorder_lanes(later, lanes))
            source.dataflow.feed(source, message)

    def kept_rows(self) -> Iterator[tuple[Schema, Updates]]:
        """Yield the recovered rows that no query has read yet, and those of a checkpoint: their symbols are in use."""
        for relation in self.storage.relations.values():
            for updates in [*(batch.updates for batch in relation.batches), *relation.later]:
                yield relation.ordered, updates
        if self.storage.under_way is not None:
            yield from self.storage.under_way.kept_rows()

    # Transactions

    def write(self, db: EmbeddedDatabase, frontier: Frontier, origins: tuple[Origin, ...] = ()) -> None:
        """Write the pending rows as one transaction up to `frontier`; it is durable after `wait`."""
        self.wait()
        changes = [
            (self._numbers[name], concatenate(db.pending.of(name))) for name in db.pending if db.inputs[name].on_disk
        ]
        upper = frontier if frontier.elements else Frontier.at(time_after_all(db))
        self._pending = self.storage.append(Transaction(upper, tuple(changes), origins), self._symbols)

    def write_rows(self, source: EmbeddedInput) -> None:
        """Write the pending rows of an input that is being closed, without moving the clock."""
        self.wait()
        changes = ((self._numbers[source.name], concatenate(source.db.pending.of(source.name))),)
        self._pending = self.storage.append(Transaction(source.db.time, changes), self._symbols)
        self.wait()

    def wait(self) -> None:
        """Wait until the last written transaction is on disk."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self.storage.sync(pending)

    # Checkpoints

    def checkpoint_if_due(self, db: EmbeddedDatabase) -> None:
        """Begin a checkpoint if the log has grown long. One that fails loses nothing, and is tried again later."""
        self.collect_checkpoint()
        if self.storage.under_way is None and self.storage.log_bytes >= self._next_checkpoint:
            try:
                self.begin_checkpoint(db)
            except StorageError as error:
                self._note_failure(error)

    def checkpoint(self, db: EmbeddedDatabase) -> int:
        """Write the batches that are not in files yet, and a manifest; return the number of files.

        The checkpoint before stays readable.
        """
        while self.storage.under_way is not None:
            db.wait_for_future(self.storage.under_way.written)
            self.collect_checkpoint()
        checkpoint = self.begin_checkpoint(db)
        db.wait_for_future(checkpoint.written)
        self.collect_checkpoint()
        return checkpoint.written.result()

    def begin_checkpoint(self, db: EmbeddedDatabase, keep: Frontier | None = None) -> Checkpoint:
        """Begin to write a checkpoint in the background. The last one, or one at the frontier `keep`, stays."""
        self.wait()
        arranged = {name: source for name, source in db.inputs.items() if source.on_disk and source.is_arranged}
        for source in arranged.values():
            source.catch_up()  # logged rows that still wait at an input would be lost with the log
        contents = {name: content(source.base()) for name, source in arranged.items()}
        return self.storage.begin_checkpoint(contents, self._symbols, keep)

    def collect_checkpoint(self) -> None:
        """Note the outcome of a checkpoint that has ended."""
        checkpoint = self.storage.under_way
        if checkpoint is None or not checkpoint.written.done():
            return
        try:
            self.storage.end_checkpoint()
            self._next_checkpoint = self._checkpoint_bytes
        except Exception as error:  # of any kind: a checkpoint must not end the db that it saves
            self._note_failure(error)

    def _note_failure(self, error: Exception) -> None:
        self.storage.trouble = f"the last checkpoint failed: {error}"
        self._next_checkpoint += max(1, self._checkpoint_bytes // 4)

    def close(self) -> None:
        """Wait for the disk, and release the directory."""
        try:
            self.wait()
        finally:
            self.storage.close()


def content(installed: InstalledArrangement) -> RelationContent:
    """Return the rows of a relation's arrangement, including those for later times."""
    publisher = installed.publisher
    later = publisher.batcher.parts() if isinstance(publisher, Arrange) else []
    return RelationContent(installed.schema.names, installed.handle.batches(None), later)


def time_after_all(db: EmbeddedDatabase) -> Time:
    """Return a time after every insert: the clock of a db that is opened again after its clock had ended."""
    latest = db.time.elements[0]
    for time in (*db.time, *(source.latest for source in db.inputs.values())):
        latest = join(latest, time)
    return tuple(coordinate + 1 for coordinate in latest)


def open_durable(
    config: Config,
    directory: str | os.PathLike[str],
    filesystem: Any,
    durability: Durability,
    checkpoint_bytes: int,
) -> EmbeddedDatabase:
    """Open the db of a directory, at the last durable time."""
    from kpg.api.embedded_database import EmbeddedDatabase

    symbols = Symbols()
    storage = Storage(directory, filesystem=filesystem, coordinates=config.coordinates, durability=durability)
    try:
        durable = DurableStore(storage, storage.recover(symbols), symbols, checkpoint_bytes)
        db = EmbeddedDatabase(config, symbols=symbols, durable=durable)
        for reader in left_behind(db.readers):
            db.drop_reader(reader)
        return db
    except BaseException:
        storage.close()
        raise
