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
from kpg.errors import Closed, Corrupt, SchemaMismatch, StorageError, Unavailable, UndefinedName
from kpg.storage.checkpoint import Content, Writer, collect, publish
from kpg.storage.files import open_files
from kpg.storage.forks import FORKS
from kpg.storage.log import SEGMENT_BYTES, Durability, Group, Log, first_of, read_log
from kpg.storage.manifest import (
    Manifest,
    StoredRelation,
    frontier_from_json,
    frontier_to_json,
    number_of,
    schema_to_json,
)
from kpg.storage.readers import Reader
from kpg.storage.record import Origin, Transaction, decode_note, encode_note, encode_transaction, is_note, upper_of
from kpg.storage.recovery import Recovered, Rejected, Relation, Replay, manifests


@dataclass(frozen=True, slots=True)
class Pending:
    """A transaction on its way to disk."""

    group: Group
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
        self.trouble: str | None = None  # what was wrong with the newest manifest, or the last checkpoint
        self.generation = 0
        self._segment_bytes = segment_bytes
        self._forks = FORKS[0]
        self._lock = threading.Lock()
        self._in_flight: dict[Origin, Group] = {}
        self._found: Recovered | None = None
        self._log: Log | None = None
        self._bytes_before = 0
        self._closed = False
        try:
            self._manifests = self._look()
        except BaseException:
            self.files.close()
            raise

    def _look(self) -> list[Manifest]:
        """The manifests that can be read, newest first; a new directory gets its first."""
        found = list(manifests(self.files))
        good = [each for each in found if isinstance(each, Manifest)]
        bad = [each for each in found if isinstance(each, Corrupt)]
        if bad and not good:
            raise bad[0]
        if bad and isinstance(found[0], Corrupt):
            self.trouble = f"{found[0].what}; recovered from the manifest before it"
        self._number = max([number_of(name) or 0 for name in self.files.names()], default=0)
        if not good:
            good = [self._create()]
        if good[0].coordinates != self.coordinates:
            raise SchemaMismatch(
                f"{self.files.place} has times of {good[0].coordinates} coordinate(s), not {self.coordinates}",
                hint=f"Open it with coordinates={good[0].coordinates}.",
            )
        return good

    def _create(self) -> Manifest:
        names = self.files.names()
        if any(first_of(name) is not None for name in names):
            raise Corrupt(f"{self.files.place} has a log but no manifest", hint="Restore the directory from a copy.")
        if names:
            raise Unavailable(
                f"{self.files.place} is not empty, and not a db",
                detail=f"It holds {', '.join(names[:3])}.",
                hint="Choose an empty directory.",
            )
        made = Manifest(0, self.coordinates, Frontier.start(self.coordinates), log=1)
        publish(self.files, made)
        return made

    # Recovery

    def durable_frontier(self) -> Frontier:
        """Up to where everything acknowledged is on disk."""
        if self._found is not None:
            return self._frontier
        frontier = self._manifests[0].frontier
        for group in read_log(self.files, self._manifests[0].log):
            for record in group:
                if not is_note(record):
                    frontier = frontier.join(upper_of(record))
                elif (note := decode_note(record))["note"] == "cut":
                    frontier = frontier_from_json(note["upto"])
        return frontier

    def checkpoints(self) -> list[Frontier]:
        """How far each manifest that can be read has come, newest first."""
        return [manifest.frontier for manifest in self._manifests]

    def recover(
        self,
        symbols: Symbols,
        *,
        upto: Frontier | None = None,
        generation: int | None = None,
        checkpoint: Frontier | None = None,
    ) -> Recovered:
        """Everything acknowledged, or what is complete up to a frontier: then the rest is taken back, durably.

        Given a checkpoint, only manifests of that frontier will do: workers that exchange rows after they have logged
        them must all begin from the same one.
        """
        assert self._found is None, "recovered already"
        troubles: list[Exception] = []
        for manifest in self._manifests:
            if checkpoint is not None and manifest.frontier != checkpoint:
                continue
            try:
                replay, next_frame = self._replay(manifest, symbols)
                cut = upto is not None and replay.cut(upto)
                self._found = replay.finish(self.files, next_frame)
                break
            except (Rejected, StorageError) as error:
                troubles.append(error)
        if self._found is None:
            self.close()
            raise self._hopeless(troubles)
        if troubles:
            self.trouble = f"{troubles[0]}; recovered from manifest {self._found.manifest.number}"
        self._begin(self._found)
        if cut or (generation is not None and generation != self.generation):
            self.generation = self._found.generation if generation is None else generation
            self._note("cut", upto=frontier_to_json(self._frontier), generation=self.generation)
        return self._found

    def _hopeless(self, troubles: list[Exception]) -> Exception:
        """The error that says why no manifest would do: the newest's, if it is about a file."""
        if not troubles:
            return Corrupt(f"{self.files.place} has no such checkpoint", detail="Another worker begins from it.")
        if isinstance(troubles[0], StorageError):
            return troubles[0]
        return Corrupt(f"{self.files.place} cannot be recovered", detail="; ".join(map(str, troubles)))

    def _replay(self, manifest: Manifest, symbols: Symbols) -> tuple[Replay, int]:
        replay, next_frame = Replay(manifest, symbols), manifest.log
        for group in read_log(self.files, manifest.log):
            next_frame += 1
            for record in group:
                replay.take(record)
        return replay, next_frame

    def _begin(self, found: Recovered) -> None:
        self._frontier = found.frontier
        self.generation = found.generation
        self.applied = found.applied
        self.declarations = found.declarations
        self.readers = found.readers
        self.relations = found.relations
        self._schemas = {relation.id: relation.schema for relation in self.relations.values()}
        self._changed: set[int] = set()  # relations whose rows are no longer just those that were found
        self._next_relation = found.next_relation
        self._kept = {found.manifest.number: found.manifest}
        self._writer = Writer(self.files, found.files)
        found.files = []
        self._log = Log(self.files, found.next_frame, self.durability, self._segment_bytes)

    @property
    def log(self) -> Log:
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
            self.relations[name] = Relation(number, schema, key, schema.names)
            self._schemas[number] = schema
            return number
        if (found.schema, found.key) != (schema, key):
            raise SchemaMismatch(
                f"{name} was stored otherwise",
                detail=f"Stored: {found.schema!r}, key {found.key}. Declared: {schema!r}, key {key}.",
                hint="Declare it as it was stored, or under another name.",
            )
        return found.id

    def take(self, name: str) -> Relation:
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

    def set_reader(self, name: str, reader: Reader) -> None:
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

    def _outcome(self, group: Group) -> None:
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
