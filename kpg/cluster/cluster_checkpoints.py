"""The checkpoints of a db on several workers: all workers write theirs at one frontier, in the background.

    collect_or_begin(log_bytes)     after each advance: begin a checkpoint if the log has grown long
    write()                         write one now, and wait for it

Workers recover from a checkpoint that all of them have. So each worker keeps the last common one until the coordinator
has learned that all have a newer one; until then `generations.checkpoint` stays, and no other checkpoint is begun. A
generation that ends meanwhile begins again from the newest common one, whichever workers had finished.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kpg.algebra.frontier import Frontier
from kpg.cluster.rank_commands.storage_commands import BeginCheckpointCommand, EndCheckpointCommand
from kpg.errors import StorageError

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase


class CommonCheckpoint(NamedTuple):
    """A checkpoint that all workers have begun."""

    frontier: Frontier
    generation: int  # one of an earlier generation has ended with it


class ClusterCheckpoints:
    """The coordinator's view of the checkpoints of all workers. The caller holds the coordinator's lock."""

    def __init__(self, db: ClusterDatabase, interval_bytes: int) -> None:
        self.db = db
        self.trouble: str | None = None  # why the last automatic checkpoint failed
        self._interval_bytes = interval_bytes
        self._next = interval_bytes  # bytes of log
        self._under_way: CommonCheckpoint | None = None

    def collect_or_begin(self, log_bytes: int) -> None:
        """Begin a checkpoint if the log has grown long. One that fails loses nothing, and is tried again later."""
        try:
            self.db.generations.retrying(lambda: self._collect_or_begin(log_bytes))
        except StorageError as error:
            self.trouble = f"the last checkpoint failed: {error}"
            self._next = log_bytes + max(1, self._interval_bytes // 4)

    def _collect_or_begin(self, log_bytes: int) -> None:
        if self._is_under_way:
            self._end(wait=False)
        elif log_bytes > self._next:
            self._begin()

    def write(self) -> int:
        """Write a checkpoint on all workers; return the number of files."""
        return self.db.generations.retrying(self._write)

    def _write(self) -> int:
        if self._is_under_way:
            with suppress(StorageError):  # of the earlier checkpoint
                self._end(wait=True)
        self._begin()
        return self._end(wait=True) or 0

    @property
    def _is_under_way(self) -> bool:
        return self._under_way is not None and self._under_way.generation == self.db.coordinator.generation

    def _begin(self) -> None:
        self.db.coordinator.ask(BeginCheckpointCommand(self.db.generations.checkpoint.elements))
        self._under_way = CommonCheckpoint(self.db.time, self.db.coordinator.generation)

    def _end(self, wait: bool) -> int | None:
        """Learn whether all workers have ended their checkpoint; return the number of files if so."""
        under_way, self._under_way = self._under_way, None  # if one worker has failed, it has failed
        assert under_way is not None
        replies = self.db.coordinator.ask(EndCheckpointCommand(wait))
        written = [reply.value for reply in replies if reply.value is not None]
        if len(written) < len(replies):
            self._under_way = under_way
            return None
        self.db.generations.checkpoint = under_way.frontier
        self._next, self.trouble = self._interval_bytes, None
        return sum(written)
