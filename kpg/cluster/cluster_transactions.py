"""The transactions of a db on several workers: all workers log their rows, then all move their clocks, in one command.

    advance    the pending rows that were sent before; a lost worker is replaced, and the advance is tried again
    publish    rows that are staged on the workers; they are lost with their worker, so the caller must write again

The caller of both holds the coordinator's lock, and calls `notify`, which calls functions of users, without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.algebra.frontier import Frontier
from kpg.cluster.cluster_completion import raise_trouble
from kpg.cluster.coordinator import RankReply
from kpg.cluster.rank_commands.input_commands import CloseInputCommand
from kpg.cluster.rank_commands.staging_commands import PublishCommand
from kpg.cluster.rank_commands.time_commands import (
    AcceptCommand,
    AdvanceCommand,
    MarkCommand,
    RankReport,
    TakeBackCommand,
)
from kpg.cluster.sent_rows import SentMark
from kpg.cluster.staged_rows import KEPT_SECONDS
from kpg.errors import KpgError, StorageError, Unavailable, WorkerLost
from kpg.protocol.error_messages import error_of
from kpg.storage.record import Origin

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase


class ClusterTransactions:
    """Makes the rows that workers have received, or have staged, part of an epoch on all of them."""

    def __init__(self, db: ClusterDatabase) -> None:
        self.db = db
        self._closing: list[str] = []  # inputs that were closed while they had pending rows

    def advance(self, frontier: Frontier, origins: tuple[Origin, ...], wait: bool) -> list[RankReply[RankReport]]:
        """Move the clocks of all workers to a frontier and keep the changes that they send."""
        replies = self.db.generations.retrying(lambda: self._try_advance(frontier, origins, wait))
        self._finish_advance(frontier, replies, wait)
        return replies

    def publish(
        self, command: PublishCommand, rows: int, origins: tuple[Origin, ...]
    ) -> tuple[int, list[RankReply[RankReport]]]:
        """Make staged rows one transaction; return its epoch and the replies of the workers. `rows` is their number.

        A worker that is lost meanwhile takes its staged rows with it. So this does not retry: the transaction has not
        happened, and the error asks the caller, which has the rows, to write them again.
        """
        source = self.db.inputs[command.name]
        source.ensure_arranged()
        self.db.insert_before_closing()
        if self.db.pending:
            self.db.advance()  # rows of other writers are a transaction of their own
        epoch = self.db.epoch
        self.db.pending.add(source.name, self.db.time.elements[0])
        frontier = Frontier.at((epoch + 1,))
        try:
            self._insert_staged(command, rows)
            wait = not self.db.answers_lag
            replies = self._try_advance(frontier, origins, wait)
            self._finish_advance(frontier, replies, wait)
        except WorkerLost as error:
            self.db.pending.drop()
            if self.db.directory is not None:
                self.db.generations.recover()  # without these rows
            raise WorkerLost(
                f"a worker was lost while {source.name} was written", detail=error.what, hint="Write again."
            ) from None
        except KpgError:
            self.take_back()
            raise
        return epoch, replies

    def begin(self) -> SentMark | None:
        """Begin a transaction; return what it must leave if it fails: None if no rows are pending."""
        if not self.db.pending:
            return None
        self.db.generations.retrying(lambda: self.db.coordinator.tell_all(MarkCommand(), hold=True))
        return self.db.pending.mark(self.db.coordinator.generation)

    def undo(self, mark: SentMark | None) -> None:
        """Drop the rows of a transaction that failed, here and on the workers."""
        if mark is None or not self.db.pending.holds(mark):
            self.take_back()
            return
        self.db.pending.restore(mark)
        if self.db.coordinator.generation == mark.generation:
            self.db.ask(TakeBackCommand(marked=True))
        else:  # a worker was lost meanwhile, and the new ones have no mark
            self.db.generations.recover()

    def take_back(self) -> None:
        """Drop all pending rows, here and on the workers."""
        self.db.pending.drop()
        self.db.ask(TakeBackCommand())
        self._close_inputs()

    def notify(self, replies: list[RankReply[RankReport]]) -> None:
        """Call the listeners of changed outputs and the followers; then raise if a worker reached a limit."""
        self.db.completion.notify()
        self.db.completion.release_seal()
        self.db.notify_followers()
        raise_trouble(replies)

    def close_input(self, name: str) -> None:
        """Close an input on all workers. Its pending rows are part of an epoch first: the log must have them once."""
        self._closing.append(name)
        if name not in self.db.pending:
            self._close_inputs()

    def forget_input(self, name: str) -> None:
        """Do not close an input any more: the workers have dropped it."""
        self._closing = [closing for closing in self._closing if closing != name]

    def _try_advance(self, frontier: Frontier, origins: tuple[Origin, ...], wait: bool) -> list[RankReply[RankReport]]:
        """Make all workers make and log their rows, and agree that all have, then move their clocks."""
        self._check_accepted()
        to, written_origins = frontier.elements, tuple((origin.source, origin.batch) for origin in origins)
        sealed = self.db.completion.take_sealed() if self.db.answers_lag else -1
        seal = not self.db.completion.watched
        self.db.completion.hold_seal(wait and not seal)
        command = AdvanceCommand(
            to,
            tuple(self.db.pending),
            written_origins,
            wait,
            sealed if sealed >= 0 else None,
            seal,
            made=self.db.pending.have_made,
            log=self.db.directory is not None,
        )
        try:
            replies = self.db.coordinator.ask(command)
        except StorageError:
            self.db.completion.hold_seal(False)
            raise
        for reply in replies:
            if reply.value.refused is not None:  # then no rank has moved its clock
                self.db.completion.hold_seal(False)
                raise self._drop_rows(error_of(reply.value.refused))
        return replies

    def _check_accepted(self) -> None:
        """If workers may refuse rows, wait until they have accepted all; else drop the pending rows on all of them."""
        if not self.db.pending.admission.must_ask:
            return
        for reply in self.db.coordinator.ask(AcceptCommand()):
            if reply.value is not None:
                raise self._drop_rows(error_of(reply.value))

    def _drop_rows(self, error: KpgError) -> KpgError:
        """Drop the pending rows on all workers, because one of them does not accept its part; return what to raise."""
        inputs = [self.db.inputs[name] for name in self.db.pending]
        self.take_back()
        cause = f"{error.detail.rstrip('.')}. " if error.detail else ""
        error.detail = f"{cause}All rows since the last advance were dropped."
        for source in inputs:
            source.on_dropped(error)
        return error

    def _finish_advance(self, frontier: Frontier, replies: list[RankReply[RankReport]], wait: bool) -> None:
        """Note that all workers have moved to a time, and keep the changes that they sent."""
        self.db.pending.discard()
        self.db.generations.now = frontier
        if wait:
            self.db.completion.finish()
        else:
            self.db.completion.leave_work()
        self.db.completion.take_replies(replies)
        self._close_inputs()
        if self.db.checkpoints is not None:
            self.db.checkpoints.collect_or_begin(max(reply.value.log_bytes for reply in replies))

    def _insert_staged(self, command: PublishCommand, rows: int) -> None:
        """Make the workers insert their staged rows; raise if some are missing."""
        inserted = sum(reply.value for reply in self.db.coordinator.ask(command))
        if inserted != rows:
            raise Unavailable(
                f"{rows - inserted} of {rows} rows that were staged for {command.name} are gone",
                detail=f"Rows that are not published are dropped after {KEPT_SECONDS:.0f} s.",
                hint="Write them again.",
            )

    def _close_inputs(self) -> None:
        while self._closing:
            self.db.ask(CloseInputCommand(self._closing[-1]))
            self._closing.pop()
