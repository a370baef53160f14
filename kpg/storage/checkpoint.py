"""Checkpoints: write the batches that have no file yet, then a manifest, then remove the files that no manifest needs.

    checkpoint = writer.plan(...)      on the thread of the caller: takes the batches as they are, writes nothing
    checkpoint.start()                 writes on a thread of its own, while the caller goes on
    checkpoint.written                 a future: the number of new files, once the manifest is in place
    writer.finish(checkpoint)          on the thread of the caller: remembers the new files

Batches are immutable, so the rows of a checkpoint are those of its plan. A checkpoint takes
effect when its manifest is in place, and not before. The next checkpoint overwrites or removes the files that an
interrupted one leaves. Cost: the bytes of the new batches, once each; for the caller, a look at each batch. Encoding
and writing run without the interpreter lock, except for text, which is taken from the symbol table in small parts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from time import sleep
from typing import Final
from weakref import WeakKeyDictionary
from zlib import crc32

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate_all
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates
from kpg.errors import Unavailable
from kpg.storage.batch_files import write_updates
from kpg.storage.file_store import Files
from kpg.storage.manifest import (
    Manifest,
    StoredBatch,
    StoredFile,
    StoredRelation,
    manifest_name,
    manifest_number,
    to_bytes,
)
from kpg.storage.transaction_log import remove_segments_before
from kpg.trace.batch import Batch
from kpg.trace.unsorted_batch import UnsortedBatch, is_unsorted

YIELD_SECONDS: Final = 0.0005  # between two parts of text: a thread that waits for the interpreter lock gets it


@dataclass(frozen=True, slots=True)
class RelationContent:
    """The rows of a relation: batches in the order of time, their lanes in `order`, and updates at later times."""

    order: tuple[str, ...]
    batches: Sequence[Batch]
    later: Sequence[Updates] = ()


@dataclass(slots=True)
class PlannedFile:
    """Updates that need a file: in several parts if they are a load that has not been sorted yet."""

    parts: list[Updates]
    file: StoredFile | None  # where they are stored already
    unsorted: UnsortedBatch | None = None

    def sort(self) -> Updates:
        """Return the updates in the order of a batch."""
        if self.unsorted is not None:
            self.parts = [consolidate_all(list(self.parts))]  # of a copy, which it empties
        return self.parts[0]


@dataclass(frozen=True, slots=True)
class PlannedRelation:
    """A relation, with a planned file for each of its batches, and for its updates at later times."""

    stored: StoredRelation
    batches: tuple[tuple[Batch, PlannedFile], ...]
    later: tuple[PlannedFile, ...]

    @property
    def schema(self) -> Schema:
        """The schema in the lane order of the files."""
        return self.stored.schema.select(self.stored.order)

    @property
    def files(self) -> Iterator[PlannedFile]:
        """All planned files."""
        yield from (planned for _, planned in self.batches)
        yield from self.later


@dataclass(slots=True, eq=False)
class Checkpoint:
    """One checkpoint, planned or under way."""

    files: Files
    symbols: Symbols
    manifest: Manifest  # as it will be, but without its relations
    relations: dict[str, PlannedRelation]
    kept: dict[int, Manifest]  # older manifests that stay
    log_bytes: int  # written to the log before it
    written: Future[int] = field(default_factory=Future)
    new: list[tuple[PlannedFile, StoredFile]] = field(default_factory=list)

    def start(self) -> None:
        """Write it on a thread of its own. The interpreter waits for that thread before it exits."""
        threading.Thread(target=self.run, name="kpg checkpoint").start()

    def run(self) -> None:
        """Write it on this thread; `written` gets the result or the error."""
        try:
            relations = {name: self._write_relation(planned) for name, planned in self.relations.items()}
            self.manifest = replace(self.manifest, relations=relations)
            write_manifest(self.files, self.manifest)
        except BaseException as error:
            self._remove_new_files()
            self.written.set_exception(error)
            return
        self.kept[self.manifest.number] = self.manifest
        try:
            remove_unneeded_files(self.files, self.kept)
        except Unavailable:
            pass  # the next checkpoint tries again
        self.written.set_result(len(self.new))

    def _write_relation(self, planned: PlannedRelation) -> StoredRelation:
        schema = planned.schema
        batches = tuple(
            StoredBatch(self._write_file(file, schema), batch.lower, batch.upper, batch.since)
            for batch, file in planned.batches
        )
        return replace(
            planned.stored, batches=batches, later=tuple(self._write_file(file, schema) for file in planned.later)
        )

    def _write_file(self, planned: PlannedFile, schema: Schema) -> StoredFile:
        """Return the file of some updates, written now if they have none."""
        if planned.file is not None:
            return planned.file
        updates = planned.sort()
        data = memoryview(write_updates(updates, schema, self.symbols, lambda: sleep(YIELD_SECONDS)))
        name = f"batch-{self.manifest.number:08d}-{len(self.new):04d}.parquet"
        file = StoredFile(name, data.nbytes, crc32(data), len(updates))
        self.new.append((planned, file))
        self.files.write(name, [data])
        return file

    def _remove_new_files(self) -> None:
        """Remove the new files, because the manifest could not be written."""
        for _, file in self.new:
            try:
                self.files.remove(file.name)
            except Unavailable:
                pass  # the next checkpoint tries again

    def release(self) -> None:
        """Leave its batches to the caller: it has ended, with or without success."""
        for planned in self.relations.values():
            for file in planned.files:
                if file.unsorted is not None:
                    file.unsorted.end_sort_elsewhere()

    def kept_rows(self) -> Iterator[tuple[Schema, Updates]]:
        """Yield the rows that it still reads, with the columns of their lanes: their symbols are in use."""
        for planned in self.relations.values():
            for file in planned.files:
                for updates in file.parts:
                    yield planned.schema, updates


class CheckpointWriter:
    """Plans checkpoints, such that each batch is written once."""

    def __init__(self, files: Files, stored: Iterable[tuple[Updates, StoredFile]]) -> None:
        self._files = files
        self._stored: WeakKeyDictionary[Updates, StoredFile] = WeakKeyDictionary()
        for updates, file in stored:
            self._stored[updates] = file

    def plan(
        self,
        manifest: Manifest,
        contents: Mapping[str, RelationContent],
        kept: dict[int, Manifest],
        symbols: Symbols,
        log_bytes: int,
    ) -> Checkpoint:
        """Return a checkpoint of some contents. The relations of `manifest` have no files yet."""
        relations = {
            name: PlannedRelation(
                stored,
                tuple((batch, self._plan_batch(batch)) for batch in contents[name].batches if len(batch)),
                tuple(PlannedFile([updates], self._stored.get(updates)) for updates in contents[name].later),
            )
            for name, stored in manifest.relations.items()
        }
        return Checkpoint(self._files, symbols, manifest, relations, kept, log_bytes)

    def _plan_batch(self, batch: Batch) -> PlannedFile:
        if is_unsorted(batch):
            return PlannedFile(batch.begin_sort_elsewhere(), None, batch)
        return PlannedFile([batch.updates], self._stored.get(batch.updates))

    def finish(self, checkpoint: Checkpoint) -> None:
        """Remember the files of a checkpoint whose manifest is in place."""
        for planned, file in checkpoint.new:
            if planned.unsorted is not None:
                planned.unsorted.adopt(planned.parts[0])
                self._stored[planned.unsorted.updates] = file
            else:
                self._stored[planned.parts[0]] = file


def write_manifest(files: Files, manifest: Manifest) -> None:
    """Put a manifest in place."""
    files.write(manifest_name(manifest.number), [to_bytes(manifest)])


def older_manifest(kept: Mapping[int, Manifest], frontier: Frontier | None) -> dict[int, Manifest]:
    """Return the newest of some manifests, or the newest at a frontier."""
    number = max(number for number, manifest in kept.items() if frontier is None or manifest.frontier == frontier)
    return {number: kept[number]}


def remove_unneeded_files(files: Files, kept: Mapping[int, Manifest]) -> None:
    """Remove the files that no kept manifest needs: other manifests first, then batch files, then log segments."""
    needed = {name for manifest in kept.values() for name in manifest.files}
    names = files.names()
    for name in names:
        number = manifest_number(name)
        if number is not None and number not in kept:
            files.remove(name)
    for name in names:
        if name.startswith("batch-") and name not in needed:
            files.remove(name)
    remove_segments_before(files, min(manifest.log for manifest in kept.values()))
