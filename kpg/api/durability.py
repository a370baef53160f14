"""What makes a db durable: it writes transactions to storage before they count, and puts back what storage found.

    kpg.open("dir")         relations and their rows are there again once they are declared again
    db.advance()            returns when the transaction is on disk; if it cannot be written nothing has changed
    db.checkpoint()         shortens the log; happens by itself when the log has grown by `checkpoint_bytes`

The frame is written before the dataflows see the rows; forcing it to disk goes on while they work, and is waited for
before anybody is told. Queries and answers are code: the program installs them again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, join
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
from kpg.storage.checkpoint import RelationContent
from kpg.storage.record import Origin, Transaction
from kpg.storage.recovery import Recovered, batch_complete_updates
from kpg.storage.storage import Storage, UnsyncedTransaction
from kpg.storage.transaction_log import Durability
from kpg.trace.batch import Batch
from kpg.trace.description import Description

if TYPE_CHECKING:
    from kpg.api.database import Database
    from kpg.api.input import Input
    from kpg.api.installed_arrangement import InstalledArrangement


class DurableStore:
    """The storage of a db, and how far the db has told it."""

    def __init__(self, storage: Storage, found: Recovered, symbols: Symbols, checkpoint_bytes: int) -> None:
        self.storage = storage
        self.found = found
        self._symbols = symbols
        self._checkpoint_bytes = checkpoint_bytes
        self._next_checkpoint = checkpoint_bytes
        self._pending: UnsyncedTransaction | None = None
        self._numbers: dict[str, int] = {}

    # Relations

    def declare(self, source: Input) -> None:
        """Match an input with what is stored, or store that there is one."""
        self._numbers[source.name] = self.storage.declare(source.name, source.schema, source.key)

    def forget(self, source: Input) -> None:
        """Drop a relation from storage."""
        self.wait()
        self.storage.drop(source.name)

    def restore(self, name: str, source: Source, installed: InstalledArrangement, now: tuple[Time, ...]) -> None:
        """Put the rows that were found into the new arrangement of a relation."""
        relation = self.storage.take_relation(name)
        batch_complete_updates(
            relation, relation.later, Frontier(now)
        )  # the clock may have passed some while nobody asked
        spine = installed.handle.spine
        lanes = [relation.order.index(column) for column in installed.schema.names]
        same = lanes == sorted(lanes)
        for batch in relation.batches:
            updates = batch.updates if same else consolidate(reorder_lanes(batch.updates, lanes))
            description = Description(spine.upper, batch.upper, batch.since)
            spine.insert(Batch(updates, len(installed.keys), description))
        installed.publisher.upper = spine.upper
        installed.dataflow.worker.queue_idle_work(installed.publisher)  # there may be something to compact
        for later in relation.later:
            message = Message(now, reorder_lanes(later, lanes))
            source.dataflow.feed(source, message)

    def kept_rows(self) -> Iterator[tuple[Schema, Updates]]:
        """Rows of relations that nobody has asked for yet: their symbols are in use."""
        for relation in self.storage.relations.values():
            for updates in [*(batch.updates for batch in relation.batches), *relation.later]:
                yield relation.ordered, updates

    # Transactions

    def write(self, db: Database, frontier: Frontier, origins: tuple[Origin, ...] = ()) -> None:
        """Write what was inserted as one transaction up to `frontier`; it counts after `wait`."""
        self.wait()
        changes = [
            (self._numbers[name], concatenate(source.buffered())) for name, source in db.dirty.items() if source.kept
        ]
        upper = frontier or Frontier.at(after(db))
        self._pending = self.storage.append(Transaction(upper, tuple(changes), origins), self._symbols)

    def write_rows(self, source: Input) -> None:
        """Write what was inserted into one input, which ends, without moving the clock."""
        self.wait()
        changes = ((self._numbers[source.name], concatenate(source.buffered())),)
        self._pending = self.storage.append(Transaction(source.db.time, changes), self._symbols)
        self.wait()

    def wait(self) -> None:
        """Wait until what was written is on disk."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self.storage.sync(pending)

    # Checkpoints

    def relieve(self, db: Database) -> None:
        """Make a checkpoint if the log has grown long; one that fails is tried again later, for nothing is lost."""
        if self.storage.log_bytes >= self._next_checkpoint:
            try:
                self.checkpoint(db)
            except StorageError as error:
                self.storage.trouble = f"the last checkpoint failed: {error}"
                self._next_checkpoint += max(1, self._checkpoint_bytes // 4)

    def checkpoint(self, db: Database) -> int:
        """Write batches that are not in files yet, and a manifest; how many files those were."""
        self.wait()
        kept = {name: source for name, source in db.inputs.items() if source.kept and source.arranged}
        contents = {name: content(source.base()) for name, source in kept.items()}
        written = self.storage.checkpoint(contents, self._symbols)
        self._next_checkpoint = self._checkpoint_bytes
        return written

    def close(self) -> None:
        """Wait for the disk, and give up the directory."""
        try:
            self.wait()
        finally:
            self.storage.close()


def content(installed: InstalledArrangement) -> RelationContent:
    """The rows of a relation's arrangement, and what it holds for later times."""
    publisher = installed.publisher
    later = publisher.batcher.parts() if isinstance(publisher, Arrange) else []
    return RelationContent(installed.schema.names, installed.handle.batches(None), later)


def after(db: Database) -> Time:
    """A time after all that was ever inserted: where a db that is opened again goes on when its clock had ended."""
    latest = db.time.elements[0]
    for time in (*db.time, *(source.latest for source in db.inputs.values())):
        latest = join(latest, time)
    return tuple(coordinate + 1 for coordinate in latest)


def open_durable(
    config: Config,
    place: str | os.PathLike[str],
    filesystem: Any,
    durability: Durability,
    checkpoint_bytes: int,
) -> Database:
    """A db on a directory, as far as it had come."""
    from kpg.api.database import Database

    symbols = Symbols()
    storage = Storage(place, filesystem=filesystem, coordinates=config.coordinates, durability=durability)
    try:
        durable = DurableStore(storage, storage.recover(symbols), symbols, checkpoint_bytes)
        return Database(config, symbols=symbols, durable=durable)
    except BaseException:
        storage.close()
        raise
