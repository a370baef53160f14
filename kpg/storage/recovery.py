"""Recovery: read a manifest and the later frames of the log, and return their updates as batches.

    for every relation and every time t beyond `since`:
        Σ diffs of its batches and of `later` at times ≤ t   ==   Σ diffs of all acknowledged updates at times ≤ t

The updates that the log adds to a relation become one batch, up to the frontier of the last transaction; updates at
later times wait in `later`. A note `cut` undoes the transactions before it that are not complete up to its frontier.
With it, several workers agree on the transactions that all of them have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate_all
from kpg.columns.exact_diffs import narrow
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints, Updates, constant
from kpg.errors import Corrupt
from kpg.storage.applied_batches import AppliedBatches
from kpg.storage.batch_files import read_updates
from kpg.storage.file_store import Files
from kpg.storage.manifest import (
    Manifest,
    StoredFile,
    StoredRelation,
    from_bytes,
    frontier_from_json,
    manifest_name,
    manifest_number,
    schema_from_json,
)
from kpg.storage.named_readers import NamedReader
from kpg.storage.record import Transaction, decode_note, decode_transaction, is_note
from kpg.trace.batch import Batch
from kpg.trace.description import Description


@dataclass(slots=True)
class RecoveredRelation:
    """A relation as it was stored: its rows in batches with lanes in `order`, and its updates at later times."""

    id: int
    schema: Schema
    key: tuple[str, ...]
    order: tuple[str, ...]
    batches: list[Batch] = field(default_factory=list)
    later: list[Updates] = field(default_factory=list)

    @property
    def ordered(self) -> Schema:
        """The schema in the lane order of the batches."""
        return self.schema.select(self.order)


@dataclass(slots=True)
class Recovered:
    """All acknowledged transactions up to `frontier`; the history of each relation is exact from its `since` on."""

    manifest: Manifest
    frontier: Frontier
    since: dict[str, Frontier]  # by relation
    next_frame: int
    generation: int
    next_relation: int
    relations: dict[str, RecoveredRelation]
    applied: AppliedBatches
    declarations: dict[str, Any]
    readers: dict[str, NamedReader]
    files: list[tuple[Updates, StoredFile]]  # updates that have a file already
    replayed: int  # transactions read from the log


class UnusableManifest(Exception):
    """Raised for a manifest that lies beyond the frontier to recover, with the reason."""


def read_manifests(files: Files) -> Iterator[Manifest | Corrupt]:
    """Yield all manifests, newest first; for a damaged one, its error."""
    numbers = (number for name in files.names() if (number := manifest_number(name)) is not None)
    for number in sorted(numbers, reverse=True):
        name = manifest_name(number)
        try:
            yield from_bytes(files.read(name), f"{files.location}/{name}")
        except Corrupt as error:
            yield error


class LogReplay:
    """Applies the records of the log to the content of a manifest."""

    def __init__(self, manifest: Manifest, symbols: Symbols) -> None:
        self._symbols = symbols
        self._manifest = manifest
        self.frontier = manifest.frontier
        self.generation = manifest.generation
        self.next_relation = manifest.next_relation
        self.stored = dict(manifest.relations)
        self.declarations = dict(manifest.declarations)
        self.readers = {name: NamedReader.from_json(written) for name, written in manifest.readers.items()}
        self.applied = AppliedBatches(manifest.applied)
        self.transactions: list[Transaction] = []
        self._logged: dict[int, list[Updates]] = {}  # by relation id, of the transactions that are kept

    def apply(self, record: bytes) -> None:
        """Apply one record."""
        if is_note(record):
            self._apply_note(decode_note(record))
        else:
            transaction = decode_transaction(record, self._schema_of, self._symbols)
            self.transactions.append(transaction)
            self.frontier = self.frontier.join(transaction.upper)

    def _schema_of(self, relation: int) -> Schema | None:
        return next((stored.schema for stored in self.stored.values() if stored.id == relation), None)

    def _apply_note(self, note: dict[str, Any]) -> None:
        match note["note"]:
            case "declare":
                schema = schema_from_json(note["schema"])
                self.stored[note["name"]] = StoredRelation(note["id"], schema, tuple(note["key"]), schema.names)
                self.next_relation = note["id"] + 1
            case "drop":
                self.stored.pop(note["name"], None)
            case "register":
                self.declarations[note["name"]] = note["value"]
            case "unregister":
                self.declarations.pop(note["name"], None)
            case "reader":
                self.readers[note["name"]] = NamedReader.from_json({"time": note["time"], "of": note.get("of")})
            case "drop reader":
                self.readers.pop(note["name"], None)
            case "cut":
                self.cut(frontier_from_json(note["upto"]))
                self.generation = note["generation"]
            case other:
                raise Corrupt(f"the log has an unknown note: {other!r}", hint="Open it with the kpg that wrote it.")

    def cut(self, upto: Frontier) -> bool:
        """Undo the transactions that are not complete up to a frontier; return whether it undid any."""
        if not self._manifest.frontier.precedes(upto):
            raise UnusableManifest(f"manifest {self._manifest.number} is at {self._manifest.frontier}, beyond {upto}")
        kept = [transaction for transaction in self.transactions if transaction.upper.precedes(upto)]
        changed = len(kept) < len(self.transactions)
        self.transactions = kept
        self.frontier = self._manifest.frontier
        for transaction in kept:
            self.frontier = self.frontier.join(transaction.upper)
        return changed

    def load(self, files: Files, next_frame: int) -> Recovered:
        """Load the batches from their files, and add the transactions of the log."""
        for transaction in self.transactions:
            self._collect(transaction)
        loaded: list[tuple[Updates, StoredFile]] = []
        relations = {name: self._load_relation(stored, files, loaded) for name, stored in self.stored.items()}
        start = Frontier.start(self._manifest.coordinates)
        since = {
            name: reduce(Frontier.join, [batch.since for batch in relation.batches], start)
            for name, relation in relations.items()
        }
        return Recovered(
            self._manifest, self.frontier, since, next_frame, self.generation, self.next_relation, relations,
            self.applied, self.declarations, self.readers, loaded, len(self.transactions),
        )  # fmt: skip

    def _collect(self, transaction: Transaction) -> None:
        for origin in transaction.origins:
            self.applied.add(origin)
        for relation, updates in transaction.changes:
            self._logged.setdefault(relation, []).append(updates)

    def _load_relation(
        self, stored: StoredRelation, files: Files, loaded: list[tuple[Updates, StoredFile]]
    ) -> RecoveredRelation:
        relation = RecoveredRelation(stored.id, stored.schema, stored.key, stored.order)
        schema = relation.ordered
        for batch in stored.batches:
            updates = read_checked(files, batch.file, schema, self._symbols)
            loaded.append((updates, batch.file))
            relation.batches.append(
                Batch(updates, schema.width_of(len(stored.key)), Description(batch.lower, batch.upper, batch.since))
            )
        waiting = [read_checked(files, file, schema, self._symbols) for file in stored.later]
        order = list(stored.schema.lanes_of(schema.names))
        for updates in self._logged.pop(stored.id, []):
            lanes = updates.data if order == sorted(order) else np.ascontiguousarray(updates.data[order])
            waiting.append(Updates(lanes, updates.times, updates.diffs))
        batch_complete_updates(relation, waiting, self.frontier)
        return relation


def batch_complete_updates(relation: RecoveredRelation, waiting: Iterable[Updates], frontier: Frontier) -> None:
    """Append a batch of the waiting updates before a frontier to a relation; the others keep waiting."""
    complete: list[Updates] = []
    later: list[Updates] = []
    for updates in waiting:
        before, beyond = split(updates, frontier)
        complete += [before] if len(before) else []
        later += [beyond] if len(beyond) else []
    relation.later = later
    if complete:
        start = Frontier.start(complete[0].depth)
        last = relation.batches[-1].upper if relation.batches else start
        updates = consolidate_all(complete)
        if len(updates):
            key_lanes = relation.ordered.width_of(len(relation.key))
            relation.batches.append(Batch(updates, key_lanes, Description(last, frontier, start)))


def read_checked(files: Files, file: StoredFile, schema: Schema, symbols: Symbols) -> Updates:
    """Return the updates of a batch file; raise Corrupt if it is not the file that was written."""
    name = f"{files.location}/{file.name}"
    data = files.read(file.name)
    if len(data) != file.bytes or crc32(data) != file.checksum:
        raise Corrupt(f"{name} is damaged", detail="Its size or checksum does not fit the manifest.")
    updates = read_updates(data, name, schema, symbols)
    if len(updates) > file.rows:
        raise Corrupt(f"{name} is damaged", detail=f"{len(updates)} rows instead of {file.rows}.")
    return updates


def split(updates: Updates, frontier: Frontier) -> tuple[Updates, Updates]:
    """Return the updates at times before a frontier, and those at times beyond it."""
    beyond = np.zeros(updates.times.shape[1], np.bool_)
    for element in frontier:
        beyond |= (updates.times >= constant(element)).all(axis=0)
    if not beyond.any():
        return updates, _where(updates, np.zeros(len(updates), np.bool_))
    if beyond.all():
        return _where(updates, np.zeros(len(updates), np.bool_)), updates
    return _where(updates, ~beyond), _where(updates, beyond)


def _where(updates: Updates, mask: npt.NDArray[np.bool_]) -> Updates:
    def some(block: Ints) -> Ints:
        return block if block.shape[1] == 1 != len(updates) else np.ascontiguousarray(block[:, mask])

    return Updates(np.ascontiguousarray(updates.data[:, mask]), some(updates.times), narrow(some(updates.diffs)))
