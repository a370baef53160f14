"""How far the answers of a db are complete, and the work that completes them.

    a dataflow is complete through epoch t  ⇔  nothing at or before t is in flight in it or may still enter it
    sealed                                  =   the last time through which all dataflows were complete

`advance()` does all work at once. After `advance(wait=False)`, and in a db that serves requests
(kpg.api.waiting_requests), `work` does it in slices, and `wait_until` works until something is complete. After each
slice, listeners get the changes at times that their own answer has completed; answers that lag do not delay them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from time import monotonic
from typing import TYPE_CHECKING, Any

from kpg.algebra.frontier import Frontier
from kpg.api.answer_lag import LagLimit
from kpg.dataflow.graph import Dataflow

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.waiting_requests import WaitingRequests

WAIT_SLICE_SECONDS = 0.02  # of a caller that waits for an answer: nothing else can happen on its thread
READ_WAIT_SECONDS = 1.0  # that a read waits for the last writes of other sessions: far longer than an answer needs
FOLLOWER_SECONDS = 0.01  # between two calls of the followers while work goes on


class Completion:
    """The completion of one db's answers."""

    def __init__(self, db: EmbeddedDatabase) -> None:
        self.sealed: Frontier | None = None
        self.requests: WaitingRequests | None = None  # if the db serves requests between slices
        self.unfinished = False  # whether some work was left to later slices
        self._db = db
        self._clock_before: Frontier = db.worker.clock.now  # before it moved last
        self._next_follow = 0.0
        self._limit = LagLimit(db)

    @property
    def lags(self) -> bool:
        """Whether answers may be complete to different times."""
        return self.requests is not None or self.unfinished

    @property
    def has_work(self) -> bool:
        """Whether a slice has something to do, or a request waits for one."""
        return self.unfinished or self._db.worker.is_busy or bool(self.requests)

    def leave_work(self, before: Frontier) -> None:
        """Record that the clock has moved on from `before`, and that slices do the work that follows from it."""
        self.unfinished, self._clock_before = True, before
        if self.requests is not None and self._db.time:
            self.requests.note_write(self._db.epoch - 1)

    def clean_up(self) -> None:
        """Do the work that follows from the end of an input, and release what no operator needs any more."""
        if self.requests is None:
            self._db.worker.clean_up()
        else:
            self._db.worker.cleanup_due = self.unfinished = True  # slices do it

    def seal(self, before: Frontier) -> None:
        """Declare all times before the clock complete; it was at `before` when their work began."""
        now, self.unfinished = self._db.time, False
        if now != before:  # otherwise no more times are complete
            single = self._db.config.coordinates == 1 and now
            self.sealed = Frontier.at((now.elements[0][0] - 1,)) if single else before

    # Epochs; for times of one coordinate

    def complete_through(self, dataflow: Dataflow) -> int:
        """Return the last epoch that a dataflow has completed; -1 if there is none."""
        if not self._db.time:  # the clock has ended
            return -1 if self.sealed is None or self.unfinished else self.sealed.elements[0][0]
        least = dataflow.least_epoch()
        return (self._db.epoch if least is None else min(self._db.epoch, least)) - 1

    def newest(self, dataflow: Dataflow) -> int:
        """Return the newest epoch to read; wait for the first answer, and for the last write of the same session.

        A request also waits for the writes of others, but not longer than a moment: the answer may lag.
        """
        last, requests = self._db.epoch - 1, self.requests
        own = -1 if requests is None else requests.last_write
        self.wait_for(dataflow, min(last, max(0, dataflow.first_epoch, own)))
        if requests is not None and requests.is_serving and self.complete_through(dataflow) < last:
            end = monotonic() + READ_WAIT_SECONDS
            self.wait_until(lambda: dataflow.dropped or self.complete_through(dataflow) >= last or monotonic() >= end)
        return self.complete_through(dataflow)

    def wait_for(self, dataflow: Dataflow, epoch: int) -> None:
        """Wait until a dataflow is complete through an epoch, or has ended."""
        self.wait_until(lambda: dataflow.dropped or self.complete_through(dataflow) >= epoch)

    # Work

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Work until a condition holds or nothing is left to do; in a request, let the thread serve others."""
        if self.requests is not None and self.requests.in_request:
            self.requests.wait(condition)
            return
        while not condition() and self.work(WAIT_SLICE_SECONDS):
            pass

    def wait_for_future(self, future: Future[Any]) -> None:
        """Wait for a future that others work on; in a request, let the thread serve others."""
        if self.requests is None:
            wait([future])
        else:
            self.requests.wait_for_future(future)

    def work(self, seconds: float) -> bool:
        """Work for about this long, and pass on the changes of completed times. Return whether work is left."""
        if not self._db.worker.run_slice(seconds):
            self._finish()
            return False
        self._seal_completed()
        self._limit.enforce()
        self._pass_on(monotonic() >= self._next_follow)
        return True

    def _finish(self) -> None:
        """Seal everything before the clock: no work is left."""
        if self.unfinished:
            self.seal(self._clock_before)
            if self.requests is not None:
                self.requests.forget_writes(self._db.epoch - 1)
            self._pass_on(follow=True)
            self._db.work_when_idle(busy=True)
        elif self._db.changed:
            self._pass_on(follow=False)

    def _seal_completed(self) -> None:
        """Advance `sealed` to the last epoch that all dataflows have completed."""
        last = -1 if self.sealed is None else self.sealed.elements[0][0]
        if self._db.config.coordinates == 1 and self._db.time and last < self._db.epoch - 1:
            complete = min(map(self.complete_through, self._db.worker.dataflows.values()), default=-1)
            if complete > last:
                self.sealed = Frontier.at((complete,))

    def _pass_on(self, follow: bool) -> None:
        """Pass new changes of completed times to listeners, captures and followers."""
        for output in tuple(self._db.changed):
            output.notify()
        if follow:
            self._next_follow = monotonic() + FOLLOWER_SECONDS
            for capture in tuple(self._db.captures):
                capture.advance()
            self._db.notify_followers()
            self._db.checkpoint_if_due()
