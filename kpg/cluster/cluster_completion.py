"""How far the answers of a db on several workers are complete, as the reports of its ranks say.

    an answer is complete through epoch t  ⇔  each rank says so

Ranks work by themselves, in slices between commands, and send reports (`RankReport`). `work` waits for them, keeps the
changes, calls listeners with those that all ranks have completed, and acts on failures. A report counts for an answer
only if the rank sent it after the command that installed the answer.
Cost: nothing while ranks have nothing to report.
"""

from __future__ import annotations

import socket
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from kpg.algebra.frontier import Frontier
from kpg.api.completion import Completed, Completion
from kpg.api.embedded_completion import FOLLOWER_SECONDS
from kpg.cluster.cluster_lag import ClusterLag
from kpg.cluster.coordinator import RankReply
from kpg.cluster.rank_commands.time_commands import RankReport, SealCommand
from kpg.errors import KpgError, WorkerLost
from kpg.protocol.error_messages import error_of

if TYPE_CHECKING:
    from kpg.api.waiting_requests import WaitingRequests
    from kpg.cluster.cluster_database import ClusterDatabase
    from kpg.cluster.cluster_output import ClusterOutput

MIN_WAIT_SECONDS = 0.01  # for reports: a request that arrives meanwhile ends the wait
NO_REPORT = RankReport()


class ReportedAnswer(Completed, Protocol):
    """An answer that ranks report on."""

    @property
    def report_key(self) -> str:
        """Its key in reports."""

    installed_by: int  # the number of the command that installed it


class Alarm:
    """Ends a wait for reports from another thread: a connection to itself."""

    unsent = 0

    def __init__(self) -> None:
        self._waiting, self._calling = socket.socketpair()
        self._waiting.setblocking(False)
        self._calling.setblocking(False)
        self.is_set = False  # whether a thread waits for it

    def fileno(self) -> int:
        """Return the file number, for poll."""
        return self._waiting.fileno()

    def ring(self) -> None:
        """End the present wait, if there is one."""
        if not self.is_set:
            return
        try:
            self._calling.send(b"\0")
        except OSError:
            pass  # it rings already, or is closed

    def clear(self) -> None:
        """Let the next wait last again."""
        self.is_set = False
        try:
            self._waiting.recv(4096)
        except OSError:
            pass

    def close(self) -> None:
        """Release the connection."""
        self._waiting.close()
        self._calling.close()


class ClusterCompletion(Completion[ReportedAnswer]):
    """The completion of the answers of several workers."""

    _db: ClusterDatabase

    def __init__(self, db: ClusterDatabase) -> None:
        super().__init__(db)
        self.alarm = Alarm()
        self.watched: set[str] = set()  # names of outputs that are replaced if they fail
        self.is_held = False  # whether the time of the last advance is not sealed yet
        self.last_install = -1  # the number of the last command that installed something
        self._reports: list[RankReport] = [NO_REPORT] * db.workers
        self._unfinished = False  # whether ranks were left to work in slices, and have not said that all is complete
        self._told = -1  # the sealed epoch that the ranks know
        self._next_follow = 0.0
        self._lag = ClusterLag(db)

    @property
    def lags(self) -> bool:
        return self.requests is not None or self._unfinished

    @property
    def has_work(self) -> bool:
        if self._db.is_lost:
            return False
        return self._unfinished or bool(self.requests)

    # What ranks have reported

    def complete_through(self, subject: ReportedAnswer) -> int:
        key, complete = subject.report_key, self._db.epoch - 1
        for report in self._reports:
            if report.after < subject.installed_by:
                return -1
            complete = min(complete, report.lagging.get(key, report.reached))
        return complete

    @property
    def all_complete(self) -> int:
        """The last epoch that all dataflows have completed; -1 if a new one has not reported yet."""
        if any(report.after < self.last_install for report in self._reports):
            return -1
        return min([self._db.epoch - 1, *[report.complete for report in self._reports]])

    def note_install(self) -> int:
        """Record that the last command has installed something; return its number. Call it under the lock."""
        self.last_install = self._db.coordinator.last_number
        self._unfinished |= self.lags
        return self.last_install

    def leave_work(self) -> None:
        """Record that the clock has moved, and that ranks do the work that follows from it."""
        if not self.lags and self._db.epoch > 1:
            self.sealed = Frontier.at((self._db.epoch - 2,))
        self._unfinished = True
        if self.requests is not None:
            self.requests.note_write(self._db.epoch - 1)

    def finish(self) -> None:
        """Record that all ranks have done all work."""
        self._unfinished = False

    def serve(self, requests: WaitingRequests) -> None:
        """Serve requests between slices from now on; everything is complete."""
        self.requests, self._unfinished = requests, False
        if self._db.epoch > 0:
            self.sealed = Frontier.at((self._db.epoch - 1,))
        self._reports = [RankReport(reached=self._db.epoch - 1, complete=self._db.epoch - 1)] * self._db.workers

    def begin_generation(self) -> None:
        """Forget what the ranks of the last generation have reported."""
        self._reports = [NO_REPORT] * self._db.workers
        self._told = -1
        self._unfinished |= self.lags

    # Work

    def work(self, seconds: float) -> bool:
        """Wait up to this long for reports, and pass on what they say. Return whether ranks still work."""
        if self._unfinished and self._take_reports():
            self._unfinished = self.all_complete < self._db.epoch - 1  # before another wait
        elif self._unfinished:
            self.alarm.is_set = True
            self._db.coordinator.wait_for_reports(max(seconds, MIN_WAIT_SECONDS), [self.alarm])
            self.alarm.clear()
            self._take_reports()
            self._unfinished = self.all_complete < self._db.epoch - 1
        is_over = not self._unfinished
        if is_over and self.requests is not None:
            self.requests.forget_writes(self._db.epoch - 1)
        self._seal(tell=is_over)
        if is_over or monotonic() >= self._next_follow:
            self._next_follow = monotonic() + FOLLOWER_SECONDS
            self._db.notify_followers()
        return not is_over

    def _take_reports(self) -> bool:
        """Receive reports and act on them; return whether there were any."""
        try:
            reports = self._db.coordinator.take_reports()
        except WorkerLost:
            self._db.recover_or_fail()
            return True
        for rank, report in reports:
            self._take(rank, report)
        self.notify()
        return bool(reports)

    def take_replies(self, replies: list[RankReply[RankReport]]) -> None:
        """Keep what ranks have replied to an advance, in order with reports that have arrived before or since."""
        reports = [*enumerate(replies), *self._db.coordinator.received_reports()]
        for rank, report in sorted(reports, key=lambda entry: entry[1].value.number):
            self._take(rank, report)

    def _take(self, rank: int, reply: RankReply[RankReport]) -> None:
        """Keep what a rank has reported: its progress, and changes and failures of outputs."""
        report = self._reports[rank] = reply.value
        self._lag.note(report)
        self._db.pending.admission.note_spare(rank, report.spare_bytes)
        for name, values in report.circulating.items():
            if (output := self._reported(name, report)) is not None:
                output.note_circulating(values)
        for name, block, failure in zip(report.changed, reply.blocks, report.failures, strict=True):
            if (output := self._reported(name, report)) is not None:
                output.take(rank, block, failure)

    def _reported(self, name: str, report: RankReport) -> ClusterOutput | None:
        """Return the output that a report is about; None if it was released, and perhaps another has its name now."""
        output = self._db.outputs.get(name)
        return None if output is None or report.after < output.reported_from else output

    def notify(self) -> None:
        """Call the listeners of outputs with changes that all ranks have completed, then act on failures and lag."""
        self._call_listeners()
        while self._db.failed:  # what replaces an answer may fail as well
            self._db.failed.pop().fail()
            self._call_listeners()
        self._lag.relieve()

    def _call_listeners(self) -> None:
        for output in tuple(self._db.changed):
            output.notify()

    def _seal(self, tell: bool) -> None:
        """Advance `sealed`; tell the ranks, if no advance is about to."""
        complete = self.all_complete
        if complete >= 0 and (self.sealed is None or complete > self.sealed.elements[0][0]):
            self.sealed = Frontier.at((complete,))
        if tell and self.requests is not None and self.sealed_epoch > self._told:
            try:
                self._db.coordinator.tell_all(SealCommand(self.take_sealed()))
            except KpgError:
                pass  # the next call notices that a worker is lost

    def hold_seal(self, hold: bool) -> None:
        """Before an advance that waits: keep its time open to queries that replace one that fails in it, or do not."""
        self.is_held = hold
        if hold:
            self.sealed = Frontier.at((self._db.epoch - 1,)) if self._db.epoch > 0 else None

    def release_seal(self) -> None:
        """Let the ranks seal the time of the last advance, if it was held."""
        if self.is_held:
            self.is_held = False
            self._db.coordinator.tell_all(SealCommand(self._db.epoch - 1), hold=True)  # with the next command

    @property
    def sealed_epoch(self) -> int:
        """The last sealed epoch; -1 if there is none."""
        return -1 if self.sealed is None else self.sealed.elements[0][0]

    def take_sealed(self) -> int:
        """Return the sealed epoch, for a command to all ranks."""
        self._told = self.sealed_epoch
        return self._told


def raise_trouble(reports: list[RankReply[RankReport]]) -> None:
    """Raise if a worker has reached a limit."""
    for reply in reports:
        if reply.value.trouble is not None:
            raise error_of(reply.value.trouble)
