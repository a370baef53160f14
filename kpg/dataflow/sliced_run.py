"""Run a worker in slices: fair shares among dataflows, and steps that are left when the slice is over.

    run.work(0.002)        step for about two milliseconds; return whether work is left
    run.finish()           complete the paused steps, and give all ready operators back to the worker
    run.work_on(dataflow)  do all work of one dataflow that is ready

Between two slices the caller may do anything with the worker: feed sources, advance the clock, install, drop. A slice
is longer than asked for by at most the longest part between two pauses (kpg.columns.pause_points).
"""

from __future__ import annotations

import heapq
from time import perf_counter
from typing import TYPE_CHECKING

from kpg.columns.pause_points import taking_turns
from kpg.dataflow.fair_shares import FairShares
from kpg.dataflow.graph import Dataflow
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
        self._turn_end = NEVER
        self._running: PausableStep | None = None

    def work(self, seconds: float) -> bool:
        """Step for about this long, or until nothing is left to do for now. Return whether work may be left."""
        end = perf_counter() + seconds
        with taking_turns(self._pause_if_over):
            while True:
                self._collect()
                chosen = self.shares.choose()
                if chosen is None:
                    if not self._worker.find_work():
                        return False
                else:
                    self._take_turn(chosen, end)
                if perf_counter() >= end:
                    return True

    def _take_turn(self, dataflow: Dataflow, end: float) -> None:
        began = perf_counter()
        self._turn_end = min(end, began + TURN_SECONDS)
        try:
            while True:  # at least one part of a step, so that a slice always makes progress
                self._step(dataflow)
                if not dataflow.is_busy or perf_counter() >= self._turn_end:
                    break
        finally:
            self.shares.charge(dataflow, perf_counter() - began)
        if not dataflow.is_busy:
            self._worker.find_work()  # its frontiers may have advanced, and those of its readers

    def _step(self, dataflow: Dataflow) -> None:
        """Continue the paused step of a dataflow, or step its next operator."""
        step, dataflow.paused_step = dataflow.paused_step, None
        if step is None:
            operator = heapq.heappop(dataflow.ready)[2]
            operator.scheduled = False
            step = PausableStep(operator)
        outer, self._running = self._running, step
        try:
            again = self._worker.attempt(step.operator, step.resume)
        finally:
            self._running = outer
        if dataflow.dropped:
            step.stop()
        elif again is None:
            dataflow.paused_step = step
        elif again:
            self._worker.schedule(step.operator, later=True)
        self._collect()

    def _collect(self) -> None:
        """Take the operators that were scheduled."""
        for ready in self._worker.take_ready():
            if not ready[2].dataflow.dropped:
                self.shares.add(ready)

    def _pause_if_over(self) -> None:
        step = self._running
        if step is not None and perf_counter() >= self._turn_end and step.is_current:
            step.pause()

    def finish(self) -> None:
        """Complete the paused steps without a pause; then the worker has all ready operators, in its own order."""
        for dataflow in self.shares.clear():
            while dataflow.paused_step is not None:
                self._step(dataflow)
            ready, dataflow.ready = dataflow.ready, []
            for _, _, operator in ready:
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
