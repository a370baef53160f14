"""Checkpoints: write the batches that are not in a file yet, then a manifest, then let go of what no manifest needs.

Until the manifest is in place the checkpoint did not happen, and after it, it did: there is nothing between. Files that
an interrupted one leaves are overwritten or collected by the next. Cost: the bytes of the new batches, once each.
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
from kpg.storage.manifest import Manifest, StoredBatch, StoredFile, manifest_name, number_of, to_bytes
from kpg.storage.transaction_log import drop_before
from kpg.trace.batch import Batch


@dataclass(frozen=True, slots=True)
class Content:
    """The rows of a relation: batches in the order of time, their lanes in `order`, and what waits for later times."""

    order: tuple[str, ...]
    batches: Sequence[Batch]
    later: Sequence[Updates] = ()


class CheckpointWriter:
    """Writes updates to files, each once."""

    def __init__(self, files: Files, known: Iterable[tuple[Updates, StoredFile]]) -> None:
        self._files = files
        self._known: WeakKeyDictionary[Updates, StoredFile] = WeakKeyDictionary()
        for updates, file in known:
            self._known[updates] = file
        self._fresh: list[tuple[Updates, StoredFile]] = []
        self._number = 0

    def begin(self, number: int) -> None:
        """Name what is written from now on after a manifest."""
        self._number = number
        self._fresh = []

    def batches(self, batches: Sequence[Batch], schema: Schema, symbols: Symbols) -> tuple[StoredBatch, ...]:
        """Batches, and where they lie."""
        return tuple(
            StoredBatch(self.file(batch.updates, schema, symbols), batch.lower, batch.upper, batch.since)
            for batch in batches
            if len(batch)
        )

    def file(self, updates: Updates, schema: Schema, symbols: Symbols) -> StoredFile:
        """The file of some updates, written if there is none."""
        found = self._known.get(updates)
        if found is None:
            data = memoryview(write_updates(updates, schema, symbols))
            name = f"batch-{self._number:08d}-{len(self._fresh):04d}.parquet"
            found = StoredFile(name, data.nbytes, crc32(data), len(updates))
            self._fresh.append((updates, found))
            self._files.write(name, [data])
        return found

    def end(self) -> int:
        """The manifest is in place: what was written need not be again. How many files those were."""
        for updates, file in self._fresh:
            self._known[updates] = file
        return len(self._fresh)

    def give_up(self) -> None:
        """There will be no manifest: remove what was written."""
        for _, file in self._fresh:
            try:
                self._files.remove(file.name)
            except Unavailable:
                pass  # the next checkpoint tries again


def publish(files: Files, manifest: Manifest) -> None:
    """Put a manifest in place."""
    files.write(manifest_name(manifest.number), [to_bytes(manifest)])


def collect(files: Files, kept: Mapping[int, Manifest]) -> None:
    """Remove what no kept manifest needs: other manifests first, then their files, then the log before them."""
    needed = {name for manifest in kept.values() for name in manifest.files}
    names = files.names()
    for name in names:
        number = number_of(name)
        if number is not None and number not in kept:
            files.remove(name)
    for name in names:
        if name.startswith("batch-") and name not in needed:
            files.remove(name)
    drop_before(files, min(manifest.log for manifest in kept.values()))
