"""How far the dataflows of this process are complete, and the work that completes them.

`advance()` does all work at once. After `advance(wait=False)`, and in a db that serves requests
(kpg.api.waiting_requests), `work` does it in slices, and `wait_until` works until something is complete. After each
slice, listeners get the changes at times that their own answer has completed; answers that lag do not delay them.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from kpg.algebra.frontier import Frontier
from kpg.api.answer_lag import LagLimit
from kpg.api.completion import Completion
from kpg.dataflow.graph import Dataflow

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase

FOLLOWER_SECONDS = 0.01  # between two calls of the followers while work goes on


class EmbeddedCompletion(Completion[Dataflow]):
    """The completion of the dataflows of one worker."""

    _db: EmbeddedDatabase

    def __init__(self, db: EmbeddedDatabase) -> None:
        super().__init__(db)
        self.unfinished = False  # whether some work was left to later slices
        self._clock_before: Frontier = db.worker.clock.now  # before it moved last
        self._next_follow = 0.0
        self.lag_limit = LagLimit(db.config)
        db.worker.has_news = self.has_news

    @property
    def lags(self) -> bool:
        return self.requests is not None or self.unfinished

    @property
    def has_work(self) -> bool:
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
        if now.elements != before.elements:  # otherwise no more times are complete
            single = self._db.config.coordinates == 1 and now.elements
            self.sealed = Frontier.at((now.elements[0][0] - 1,)) if single else before

    def complete_through(self, subject: Dataflow) -> int:
        if not self._db.time:  # the clock has ended
            return -1 if self.sealed is None or self.unfinished else self.sealed.elements[0][0]
        least = subject.least_epoch()
        return (self._db.epoch if least is None else min(self._db.epoch, least)) - 1

    # Work

    def work(self, seconds: float) -> bool:
        if not self._db.worker.run_slice(seconds):
            self.finish()
            return False
        self._seal_completed()
        self._limit_lag()
        self._pass_on(monotonic() >= self._next_follow)
        return True

    def _limit_lag(self) -> None:
        """Rebuild or stop the answers that lag too far."""
        for output, lag in self.lag_limit.exceeded(self._db.outputs.values()):
            if not output.rebuild():
                self._db.worker.fail(output.dataflow, self.lag_limit.error(output.name, lag))

    def finish(self) -> None:
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
            complete = self._db.epoch - 1
            for dataflow in self._db.worker.dataflows.values():
                complete = min(complete, self.complete_through(dataflow))
                if complete <= last:
                    return
            self.sealed = Frontier.at((complete,))

    def pass_on(self) -> None:
        """Pass new changes of completed times to listeners."""
        self._pass_on(follow=False)

    def has_news(self) -> bool:
        """Return whether listeners can get changes now, or a request has what it waits for."""
        if self.requests is not None and self.requests.some_are_due:
            return True
        return any(output.has_news for output in tuple(self._db.changed))

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
