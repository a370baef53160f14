"""Run a worker in slices: fair shares among dataflows, and steps that are left when the slice is over.

    run.work(0.002)        step for about two milliseconds; return whether work is left
    run.finish()           complete the paused steps, and give all ready operators back to the worker
    run.work_on(dataflow)  do all work of one dataflow that is ready

A slice ends early when something arrives, and when light dataflows have completed an answer: its readers do not wait
for the turn of a heavy one. The next slice does not end for that reason before a heavy one had a turn, so that light
work without end does not starve it.

Between two slices the caller may do anything with the worker: feed sources, advance the clock, install, drop. A slice
is longer than asked for by at most the longest part between two pauses (kpg.columns.pause_points).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from kpg.columns.pause_points import taking_turns
from kpg.dataflow.fair_shares import FairShares
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.operator import Operator
from kpg.dataflow.pausable_step import PausableStep

if TYPE_CHECKING:
    from kpg.dataflow.worker import Worker

TURN_SECONDS = 0.002  # that a dataflow runs before the shares are compared again
NEVER = float("inf")


class SlicedRun:
    """The slices of one worker."""

    def __init__(self, worker: Worker) -> None:
        self.shares = FairShares()
        self._worker = worker
        self._end = self._turn_end = NEVER
        self._running: PausableStep | None = None
        self._heavy_waits = False  # whether a slice ended in place of the turn of a heavy dataflow

    def work(self, seconds: float) -> bool:
        """Step for about this long, or until nothing is left to do for now. Return whether work may be left."""
        self._end = perf_counter() + seconds
        if self._worker.peers > 1:
            self._worker.exchange()  # peers, and lighter dataflows than those that are busy, wait at most for a slice
            self._worker.wake(sparingly=True)
        turns = 0  # of this slice
        with taking_turns(self):
            while True:
                self._collect()
                chosen = self.shares.choose()
                if turns and chosen is not None and self._should_wait(chosen):
                    self.shares.enter(chosen)
                    return True
                if chosen is None:
                    if not self._worker.find_work():
                        if not self.shares:
                            return False
                        wait(self.shares.awaited(), max(0.0, self._end - perf_counter()), FIRST_COMPLETED)
                else:
                    self._take_turn(chosen)
                    turns += 1
                self._end_if_called()
                if perf_counter() >= self._end:
                    return True

    def _should_wait(self, dataflow: Dataflow) -> bool:
        """Decide whether a dataflow that was chosen waits for the next slice, because readers of others do not."""
        if not self.shares.is_heavy(dataflow):
            return False
        self._heavy_waits = not self._heavy_waits and self._worker.has_news()
        return self._heavy_waits

    def run_directly(self) -> None:
        """Run the epoch of few rows that was fed directly. A step that pauses, and those after it, are left."""
        self._end = self._turn_end = perf_counter() + TURN_SECONDS
        direct = self._worker.direct
        with taking_turns(self):
            try:
                direct.step_all(self._step_directly)
            finally:
                for operator, action in direct.take_deferred():
                    self._do_deferred(operator, action)

    def _step_directly(self, operator: Operator) -> bool | None:
        """Step an operator whose messages were not counted; return None if the step has paused."""
        dataflow, began = operator.dataflow, perf_counter()
        step = PausableStep(operator, partial(operator.step_queued, can_pause=True))
        again = self._resume(dataflow, step)
        now = perf_counter()
        self.shares.use(dataflow, now - began)
        if dataflow.paused_step is not None:
            self.shares.enter(dataflow)
        elif now >= self._turn_end:
            self._worker.direct.end()
        return again

    def _do_deferred(self, operator: Operator, action: Callable[[], None]) -> None:
        """Merge for an operator as a step, which later slices continue if it takes long.

        One step of a dataflow is in progress at a time. If another has paused, perhaps in a merge of the same trace,
        this one is left to idle work and to the next insert: its fuel stays saved.
        """
        dataflow = operator.dataflow
        if dataflow.paused_step is None and not dataflow.dropped:
            self._continue(dataflow, PausableStep(operator, partial(without_result, action)))
            self.shares.enter(dataflow)

    def _end_if_called(self) -> None:
        """End this slice and its turn if something has arrived."""
        if self._worker.is_called():
            self._end = self._turn_end = 0.0

    def _take_turn(self, dataflow: Dataflow) -> None:
        began = perf_counter()
        self._turn_end = min(self._end, began + TURN_SECONDS)
        try:
            while True:  # at least one part of a step, so that a slice always makes progress
                self._step(dataflow)
                self._end_if_called()
                if not dataflow.is_busy or perf_counter() >= self._turn_end:
                    break
        finally:
            self.shares.charge(dataflow, perf_counter() - began)
        if not dataflow.is_busy:
            self._worker.find_work_after(dataflow)

    def _step(self, dataflow: Dataflow) -> None:
        """Continue the paused step of a dataflow, or step its next operator."""
        step, dataflow.paused_step = dataflow.paused_step, None
        if step is None:
            operator = dataflow.ready.take()
            operator.scheduled = False
            operator = operator.stand_in
            step = PausableStep(operator, partial(operator.run, can_pause=True))
        self._continue(dataflow, step)

    def work_when_idle(self, operator: Operator, fuel: int) -> bool:
        """Begin idle work of an operator, and return whether more is left. Later slices continue it after a turn."""
        work = IdleWork(operator, fuel)
        with taking_turns(self):
            self._turn_end = perf_counter() + TURN_SECONDS
            self._continue(operator.dataflow, PausableStep(operator, work.do))
        self.shares.enter(operator.dataflow)
        return work.is_left

    def _continue(self, dataflow: Dataflow, step: PausableStep) -> None:
        if self._resume(dataflow, step):
            self._worker.schedule(step.operator, later=True)
        self._collect()

    def _resume(self, dataflow: Dataflow, step: PausableStep) -> bool | None:
        """Run a step until it ends or pauses. Return whether to step again; None after a pause."""
        outer, self._running = self._running, step
        try:
            again = self._worker.attempt(step.operator, step.resume)
        finally:
            self._running = outer
        if dataflow.dropped:
            step.stop()
            return False
        if again is None:
            dataflow.paused_step = step
        return again

    def _collect(self) -> None:
        """Take the operators that were scheduled."""
        for ready in self._worker.take_ready():
            if not ready[2].dataflow.dropped:
                self.shares.add(ready)

    # Called by the steps: see kpg.columns.pause_points.Turns

    def pause(self) -> None:
        """Leave the current step if its turn is over."""
        step = self._running
        if step is None or not step.is_current:
            return
        self._end_if_called()
        if perf_counter() >= self._turn_end:
            step.pause()

    def wait(self, future: Future[Any]) -> bool:
        """Leave the current step until the helper thread has a result."""
        step = self._running
        if step is None or not step.is_current:
            return False
        step.pause(future)
        return True

    def charge(self, seconds: float) -> None:
        """Count CPU time of the helper thread for the dataflow of the current step."""
        if self._running is not None:
            dataflow = self._running.operator.dataflow
            self.shares.use(dataflow, seconds)
            if dataflow.usage is not None:
                dataflow.usage.seconds += seconds

    def finish(self) -> None:
        """Complete the paused steps without a pause; then the worker has all ready operators, in its own order."""
        for dataflow in self.shares.clear():
            while dataflow.paused_step is not None:
                self._step(dataflow)
            for operator in dataflow.ready.clear():
                operator.scheduled = False
                self._worker.schedule(operator)
        if self.shares:  # steps that ended have scheduled operators
            self.finish()

    def work_on(self, dataflow: Dataflow) -> None:
        """Do all work of one dataflow that is ready, without a pause."""
        while True:
            self._collect()
            while dataflow.is_busy:
                self._step(dataflow)
            self._worker.wake()
            self._collect()
            if not dataflow.is_busy:
                return


def without_result(action: Callable[[], None]) -> bool:
    """Do something, and ask for no other step."""
    action()
    return False


class IdleWork:
    """Idle work of an operator as a step, which asks for no other step."""

    def __init__(self, operator: Operator, fuel: int) -> None:
        self.is_left = True
        self._operator, self._fuel = operator, fuel

    def do(self) -> bool:
        """Do the work."""
        self.is_left = self._operator.idle_merge(self._fuel)
        return False
