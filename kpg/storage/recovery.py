"""Recovery: a manifest and the later frames of the log, as batches.

    for every relation and every time t beyond `since`:
        Σ diffs of its batches and of `later` at times ≤ t   ==   Σ diffs of all acknowledged updates at times ≤ t

What the log adds to a relation becomes one batch, up to the frontier of the last transaction; updates for later times
wait. A note `cut` takes back the transactions before it that are not complete up to its frontier: how several workers
agree on what all of them have.
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
    number_of,
    schema_from_json,
)
from kpg.storage.named_readers import NamedReader
from kpg.storage.record import Transaction, decode_note, decode_transaction, is_note
from kpg.trace.batch import Batch
from kpg.trace.description import Description


@dataclass(slots=True)
class RecoveredRelation:
    """A relation as it was stored: its rows in batches whose lanes lie in `order`, and what waits for later times."""

    id: int
    schema: Schema
    key: tuple[str, ...]
    order: tuple[str, ...]
    batches: list[Batch] = field(default_factory=list)
    later: list[Updates] = field(default_factory=list)

    @property
    def ordered(self) -> Schema:
        """The schema of the lanes of its batches."""
        return self.schema.select(self.order)


@dataclass(slots=True)
class Recovered:
    """What was found: everything acknowledged up to `frontier`, each relation distinguishable from its `since` on."""

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
    files: list[tuple[Updates, StoredFile]]  # which updates lie in which file already
    replayed: int  # transactions from the log


class Rejected(Exception):
    """A manifest that cannot be used, and why."""


def manifests(files: Files) -> Iterator[Manifest | Corrupt]:
    """All manifests, newest first; in place of one that is damaged, the error."""
    for number in sorted((n for name in files.names() if (n := number_of(name)) is not None), reverse=True):
        name = f"manifest-{number:08d}.json"
        try:
            yield from_bytes(files.read(name), f"{files.place}/{name}")
        except Corrupt as error:
            yield error


class LogReplay:
    """The log, applied to what a manifest says."""

    def __init__(self, manifest: Manifest, symbols: Symbols) -> None:
        self._symbols = symbols
        self._manifest = manifest
        self.frontier = manifest.frontier
        self.generation = manifest.generation
        self.next_relation = manifest.next_relation
        self.stored = dict(manifest.relations)
        self.declarations = dict(manifest.declarations)
        self.readers = {name: NamedReader.from_json(each) for name, each in manifest.readers.items()}
        self.applied = AppliedBatches(manifest.applied)
        self.transactions: list[Transaction] = []
        self._logged: dict[int, list[Updates]] = {}  # by relation, of the transactions that count

    def take(self, record: bytes) -> None:
        """Apply one record."""
        if is_note(record):
            self._note(decode_note(record))
        else:
            transaction = decode_transaction(record, self._schema_of, self._symbols)
            self.transactions.append(transaction)
            self.frontier = self.frontier.join(transaction.upper)

    def _schema_of(self, relation: int) -> Schema | None:
        return next((each.schema for each in self.stored.values() if each.id == relation), None)

    def _note(self, note: dict[str, Any]) -> None:
        match note["note"]:
            case "declare":
                schema = schema_from_json(note["schema"])
                made = StoredRelation(note["id"], schema, tuple(note["key"]), schema.names)
                self.stored[note["name"]] = made
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
                raise Corrupt(f"the log has a note of an unknown kind: {other!r}", hint="Use the newer kpg.")

    def cut(self, upto: Frontier) -> bool:
        """Take back the transactions that are not complete up to a frontier; whether there were any."""
        if not self._manifest.frontier.precedes(upto):
            raise Rejected(f"manifest {self._manifest.number} is at {self._manifest.frontier}, beyond {upto}")
        kept = [transaction for transaction in self.transactions if transaction.upper.precedes(upto)]
        changed = len(kept) < len(self.transactions)
        self.transactions = kept
        self.frontier = self._manifest.frontier
        for transaction in kept:
            self.frontier = self.frontier.join(transaction.upper)
        return changed

    def finish(self, files: Files, next_frame: int) -> Recovered:
        """Load the batches, and add what the log has."""
        for transaction in self.transactions:
            self._count(transaction)
        found: list[tuple[Updates, StoredFile]] = []
        relations = {name: self._load(stored, files, found) for name, stored in self.stored.items()}
        start = Frontier.start(self._manifest.coordinates)
        since = {
            name: reduce(Frontier.join, [batch.since for batch in relation.batches], start)
            for name, relation in relations.items()
        }
        return Recovered(
            self._manifest, self.frontier, since, next_frame, self.generation, self.next_relation, relations,
            self.applied, self.declarations, self.readers, found, len(self.transactions),
        )  # fmt: skip

    def _count(self, transaction: Transaction) -> None:
        for origin in transaction.origins:
            self.applied.add(origin)
        for relation, updates in transaction.changes:
            self._logged.setdefault(relation, []).append(updates)

    def _load(self, stored: StoredRelation, files: Files, found: list[tuple[Updates, StoredFile]]) -> RecoveredRelation:
        relation = RecoveredRelation(stored.id, stored.schema, stored.key, stored.order)
        schema = relation.ordered
        for each in stored.batches:
            updates = read_checked(files, each.file, schema, self._symbols)
            found.append((updates, each.file))
            relation.batches.append(Batch(updates, len(stored.key), Description(each.lower, each.upper, each.since)))
        waiting = [read_checked(files, file, schema, self._symbols) for file in stored.later]
        order = [stored.schema.index(name) for name in schema.names]
        for updates in self._logged.pop(stored.id, []):
            lanes = updates.data if order == sorted(order) else np.ascontiguousarray(updates.data[order])
            waiting.append(Updates(lanes, updates.times, updates.diffs))
        settle(relation, waiting, self.frontier)
        return relation


def settle(relation: RecoveredRelation, waiting: Iterable[Updates], frontier: Frontier) -> None:
    """Of what waits, what is complete becomes a batch; the rest waits on."""
    complete: list[Updates] = []
    later: list[Updates] = []
    for updates in waiting:
        done, open_ = split(updates, frontier)
        complete += [done] if len(done) else []
        later += [open_] if len(open_) else []
    relation.later = later
    if complete:
        start = Frontier.start(complete[0].depth)
        last = relation.batches[-1].upper if relation.batches else start
        updates = consolidate_all(complete)
        if len(updates):
            relation.batches.append(Batch(updates, len(relation.key), Description(last, frontier, start)))


def read_checked(files: Files, file: StoredFile, schema: Schema, symbols: Symbols) -> Updates:
    """The updates of a file, if it is the one that was written."""
    name = f"{files.place}/{file.name}"
    data = files.read(file.name)
    if len(data) != file.bytes or crc32(data) != file.checksum:
        raise Corrupt(f"{name} is damaged", detail="Its size or checksum does not fit the manifest.")
    updates = read_updates(data, name, schema, symbols)
    if len(updates) > file.rows:
        raise Corrupt(f"{name} is damaged", detail=f"{len(updates)} rows instead of {file.rows}.")
    return updates


def split(updates: Updates, frontier: Frontier) -> tuple[Updates, Updates]:
    """Those at times before a frontier, and those at times beyond it."""
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

    return Updates(np.ascontiguousarray(updates.data[:, mask]), some(updates.times), some(updates.diffs))
