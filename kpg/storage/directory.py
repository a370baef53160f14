"""A directory as it is found: its manifests, its log, and what they add up to.

    Directory(files, coordinates)     the manifests that can be read; a new directory gets its first
    durable_frontier()                how far everything acknowledged is on disk
    find(symbols, upto, checkpoint)   everything acknowledged, once each, from the newest manifest that will do

Nothing is changed here but that first manifest: who goes on from what was found says so in the log.
"""

from __future__ import annotations

from kpg.algebra.frontier import Frontier
from kpg.columns.symbols import Symbols
from kpg.errors import Corrupt, SchemaMismatch, StorageError, Unavailable
from kpg.storage.checkpoint import publish
from kpg.storage.file_store import Files
from kpg.storage.manifest import Manifest, frontier_from_json, number_of
from kpg.storage.record import decode_note, is_note, upper_of
from kpg.storage.recovery import LogReplay, Recovered, Rejected, manifests
from kpg.storage.transaction_log import first_of, read_log


class Directory:
    """What lies in a place, before anybody goes on from it."""

    def __init__(self, files: Files, coordinates: int) -> None:
        self.files = files
        self.coordinates = coordinates
        self.trouble: str | None = None  # what was wrong with the newest manifest
        self.number = 0  # of the newest manifest or file of one, readable or not
        self._manifests = self._look()

    def _look(self) -> list[Manifest]:
        """The manifests that can be read, newest first; a new directory gets its first."""
        found = list(manifests(self.files))
        good = [each for each in found if isinstance(each, Manifest)]
        bad = [each for each in found if isinstance(each, Corrupt)]
        if bad and not good:
            raise bad[0]
        if bad and isinstance(found[0], Corrupt):
            self.trouble = f"{found[0].what}; recovered from the manifest before it"
        self.number = max([number_of(name) or 0 for name in self.files.names()], default=0)
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

    def durable_frontier(self) -> Frontier:
        """Up to where everything acknowledged is on disk."""
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

    def find(self, symbols: Symbols, upto: Frontier | None, checkpoint: Frontier | None) -> tuple[Recovered, bool]:
        """Everything acknowledged, or what is complete up to a frontier: whether that leaves something out.

        Given a checkpoint, only manifests of that frontier will do: workers that exchange rows after they have logged
        them must all begin from the same one.
        """
        troubles: list[Exception] = []
        for manifest in self._manifests:
            if checkpoint is not None and manifest.frontier != checkpoint:
                continue
            try:
                replay, next_frame = self._replay(manifest, symbols)
                cut = upto is not None and replay.cut(upto)
                found = replay.finish(self.files, next_frame)
            except (Rejected, StorageError) as error:
                troubles.append(error)
                continue
            if troubles:
                self.trouble = f"{troubles[0]}; recovered from manifest {manifest.number}"
            return found, cut
        raise self._hopeless(troubles)

    def _hopeless(self, troubles: list[Exception]) -> Exception:
        """The error that says why no manifest would do: the newest's, if it is about a file."""
        if not troubles:
            return Corrupt(f"{self.files.place} has no such checkpoint", detail="Another worker begins from it.")
        if isinstance(troubles[0], StorageError):
            return troubles[0]
        return Corrupt(f"{self.files.place} cannot be recovered", detail="; ".join(map(str, troubles)))

    def _replay(self, manifest: Manifest, symbols: Symbols) -> tuple[LogReplay, int]:
        replay, next_frame = LogReplay(manifest, symbols), manifest.log
        for group in read_log(self.files, manifest.log):
            next_frame += 1
            for record in group:
                replay.take(record)
        return replay, next_frame
