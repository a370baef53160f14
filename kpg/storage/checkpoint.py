"""Checkpoints: write the batches that have no file yet, then a manifest, then remove the files that no manifest needs.

A checkpoint takes effect when its manifest is in place, and not before. The next checkpoint overwrites or removes the
files that an interrupted one leaves. Cost: the bytes of the new batches, once each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary
from zlib import crc32

from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates
from kpg.errors import Unavailable
from kpg.storage.batch_files import write_updates
from kpg.storage.file_store import Files
from kpg.storage.manifest import Manifest, StoredBatch, StoredFile, manifest_name, manifest_number, to_bytes
from kpg.storage.transaction_log import remove_segments_before
from kpg.trace.batch import Batch


@dataclass(frozen=True, slots=True)
class RelationContent:
    """The rows of a relation: batches in the order of time, their lanes in `order`, and updates at later times."""

    order: tuple[str, ...]
    batches: Sequence[Batch]
    later: Sequence[Updates] = ()


class CheckpointWriter:
    """Writes updates to files, each once."""

    def __init__(self, files: Files, stored: Iterable[tuple[Updates, StoredFile]]) -> None:
        self._files = files
        self._stored: WeakKeyDictionary[Updates, StoredFile] = WeakKeyDictionary()
        for updates, file in stored:
            self._stored[updates] = file
        self._new: list[tuple[Updates, StoredFile]] = []  # files written by the current checkpoint
        self._number = 0

    def begin(self, number: int) -> None:
        """Begin a checkpoint; `number` is that of its manifest, and part of the names of its files."""
        self._number = number
        self._new = []

    def write_batches(self, batches: Sequence[Batch], schema: Schema, symbols: Symbols) -> tuple[StoredBatch, ...]:
        """Write the batches that have no file yet; return where all of them are stored."""
        return tuple(
            StoredBatch(self.write_file(batch.updates, schema, symbols), batch.lower, batch.upper, batch.since)
            for batch in batches
            if len(batch)
        )

    def write_file(self, updates: Updates, schema: Schema, symbols: Symbols) -> StoredFile:
        """Return the file of some updates, written now if they have none."""
        file = self._stored.get(updates)
        if file is None:
            data = memoryview(write_updates(updates, schema, symbols))
            name = f"batch-{self._number:08d}-{len(self._new):04d}.parquet"
            file = StoredFile(name, data.nbytes, crc32(data), len(updates))
            self._new.append((updates, file))
            self._files.write(name, [data])
        return file

    def finish(self) -> int:
        """Remember the new files, now that the manifest is in place; return their number."""
        for updates, file in self._new:
            self._stored[updates] = file
        return len(self._new)

    def abandon(self) -> None:
        """Remove the new files, because the manifest could not be written."""
        for _, file in self._new:
            try:
                self._files.remove(file.name)
            except Unavailable:
                pass  # the next checkpoint tries again


def write_manifest(files: Files, manifest: Manifest) -> None:
    """Put a manifest in place."""
    files.write(manifest_name(manifest.number), [to_bytes(manifest)])


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
