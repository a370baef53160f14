"""The content of a directory, before a db continues from it: the manifests, the log, and the transactions they hold.

    Directory(files, coordinates)        read the manifests; a new directory gets its first
    durable_frontier()                   the frontier up to which all acknowledged transactions are on disk
    load(symbols, upto, checkpoint)      all acknowledged transactions, once each, from the newest usable manifest

Reading writes no file, except the first manifest of a new directory. `Storage` continues from the content, and logs a
note that it does.
"""

from __future__ import annotations

from kpg.algebra.frontier import Frontier
from kpg.columns.symbols import Symbols
from kpg.errors import Corrupt, SchemaMismatch, StorageError, Unavailable
from kpg.storage.checkpoint import write_manifest
from kpg.storage.file_store import Files
from kpg.storage.local_files import CLUSTER_NOTE
from kpg.storage.manifest import Manifest, frontier_from_json, manifest_number
from kpg.storage.record import decode_note, is_note, upper_of
from kpg.storage.recovery import LogReplay, Recovered, UnusableManifest, read_manifests
from kpg.storage.transaction_log import first_frame_of, read_log


class Directory:
    """The manifests and the log of one directory."""

    def __init__(self, files: Files, coordinates: int) -> None:
        self.files = files
        self.coordinates = coordinates
        self.trouble: str | None = None  # the error in the newest manifest
        self.number = 0  # the number of the newest manifest file, readable or not
        self._manifests = self._readable_manifests()

    def _readable_manifests(self) -> list[Manifest]:
        """Return the readable manifests, newest first; create the first one of a new directory."""
        results = list(read_manifests(self.files))
        readable = [result for result in results if isinstance(result, Manifest)]
        errors = [result for result in results if isinstance(result, Corrupt)]
        if errors and not readable:
            raise errors[0]
        if errors and isinstance(results[0], Corrupt):
            self.trouble = f"{results[0].what}; recovered from the manifest before it"
        self.number = max([manifest_number(name) or 0 for name in self.files.names()], default=0)
        if not readable:
            readable = [self._create_manifest()]
        if readable[0].coordinates != self.coordinates:
            raise SchemaMismatch(
                f"{self.files.location} has times of {readable[0].coordinates} coordinate(s), not {self.coordinates}",
                hint=f"Open it with coordinates={readable[0].coordinates}.",
            )
        return readable

    def _create_manifest(self) -> Manifest:
        names = self.files.names()
        if any(first_frame_of(name) is not None for name in names):
            raise Corrupt(f"{self.files.location} has a log but no manifest", hint="Restore the directory from a copy.")
        if CLUSTER_NOTE in names:
            raise SchemaMismatch(
                f"{self.files.location} is the directory of a db on several workers",
                detail=f"It has the parts of {sum(name.startswith('rank-') for name in names)} workers.",
                hint="Open it with as many workers: workers=N, or kpg serve --workers N.",
            )
        if names:
            raise Unavailable(
                f"{self.files.location} is not empty, and not a db",
                detail=f"It holds {', '.join(names[:3])}.",
                hint="Choose an empty directory.",
            )
        manifest = Manifest(0, self.coordinates, Frontier.start(self.coordinates), log=1)
        write_manifest(self.files, manifest)
        return manifest

    def durable_frontier(self) -> Frontier:
        """Return the frontier up to which all acknowledged transactions are on disk."""
        frontier = self._manifests[0].frontier
        for group in read_log(self.files, self._manifests[0].log):
            for record in group:
                if not is_note(record):
                    frontier = frontier.join(upper_of(record))
                elif (note := decode_note(record))["note"] == "cut":
                    frontier = frontier_from_json(note["upto"])
        return frontier

    def checkpoints(self) -> list[Frontier]:
        """Return the frontier of each readable manifest, newest first."""
        return [manifest.frontier for manifest in self._manifests]

    def load(self, symbols: Symbols, upto: Frontier | None, checkpoint: Frontier | None) -> tuple[Recovered, bool]:
        """Return all acknowledged transactions, or those complete up to a frontier, and whether that leaves some out.

        If `checkpoint` is given, only manifests of that frontier are used: workers that exchange rows after logging
        them must all begin from the same checkpoint.
        """
        failures: list[Exception] = []
        for manifest in self._manifests:
            if checkpoint is not None and manifest.frontier != checkpoint:
                continue
            try:
                replay, next_frame = self._replay(manifest, symbols)
                cut = upto is not None and replay.cut(upto)
                recovered = replay.load(self.files, next_frame)
            except (UnusableManifest, StorageError) as error:
                failures.append(error)
                continue
            if failures:
                self.trouble = f"{failures[0]}; recovered from manifest {manifest.number}"
            return recovered, cut
        raise self._no_usable_manifest(failures)

    def _no_usable_manifest(self, failures: list[Exception]) -> Exception:
        """Return the error to raise if no manifest can be used: that of the newest manifest, if it concerns a file."""
        if not failures:
            return Corrupt(f"{self.files.location} has no such checkpoint", detail="Another worker begins from it.")
        if isinstance(failures[0], StorageError):
            return failures[0]
        return Corrupt(f"{self.files.location} cannot be recovered", detail="; ".join(map(str, failures)))

    def _replay(self, manifest: Manifest, symbols: Symbols) -> tuple[LogReplay, int]:
        replay, next_frame = LogReplay(manifest, symbols), manifest.log
        for group in read_log(self.files, manifest.log):
            next_frame += 1
            for record in group:
                replay.apply(record)
        return replay, next_frame
