"""Run an epoch of few rows directly: one pass over the operators, without progress counts.

Operators are numbered so that each comes after those it reads. With one worker and times of one coordinate, an operator
has received all messages of the epoch when a pass in this order reaches it. So the pass needs no counts of messages:
while an operator is stepped, the frontier of its inputs is that of the clock.

- A step sends at the time of the epoch only.                                                              [checked]
- A frontier behind an operator that is not stepped yet is too late during the pass. Only merges read it, as the since
  of a trace, so they wait until the pass is over (`defer`).                                               [trusted]
- The operators of a loop are one unit (kpg.operators.small_loop), which runs all rounds at once. First messages of a
  new dataflow may enter a loop, too.
- An operator that holds a time, asks for another step, or pauses (where the worker runs in slices) ends the pass: the
  messages that are queued are counted, and the worker continues in general. The worker also runs all dataflows with
  loops that have no such unit, and those that read them, afterwards.

Cost: a heap operation and two calls for each operator with messages, instead of about twenty calls.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING

from kpg.dataflow.operator import Operator

if TYPE_CHECKING:
    from kpg.dataflow.worker import Worker

MAX_DIRECT_ROWS = 256  # of an epoch; beyond, counting messages takes a small part of the time


class DirectRun:
    """The direct run of one worker; `active` from the first message of an epoch to the last step."""

    __slots__ = ("active", "_worker", "_ready", "_times", "_deferred")

    def __init__(self, worker: Worker) -> None:
        self.active = False
        self._worker = worker
        self._ready: list[tuple[int, Operator]] = []  # a heap
        self._times: list[tuple[int, ...]] = []
        self._deferred: list[tuple[Operator, Callable[[], None]]] = []

    def begin(self) -> bool:
        """Begin a direct run at the time of the clock, if nothing else is in flight. Return whether it began.

        The first messages of a dataflow that was installed just now take part in it.
        """
        worker = self._worker
        times = list(worker.clock.now.elements)
        if worker.peers > 1 or worker.waiting or len(times) != 1 or len(times[0]) != 1:
            return False
        if worker.is_busy and not worker.may_run_directly:
            return False
        self._times, self.active = times, True
        for _, _, operator in worker.take_ready():
            self._take_first_messages(operator)
        return True

    def _take_first_messages(self, operator: Operator) -> None:
        """Let an operator read its messages in this run: they are counted no more."""
        update = operator.dataflow.tracker.update
        for location, messages in zip(operator.input_locations, operator.queues, strict=True):
            for message in messages:
                for time in message.times:
                    update(location, time, -1)
                    self._times.append(time)
        operator.scheduled = False
        self.schedule(operator.unit or operator)

    def schedule(self, unit: Operator) -> None:
        """Schedule an operator that has messages, or the loop that it is a member of."""
        if not unit.scheduled:
            unit.scheduled = True
            heapq.heappush(self._ready, (unit.order, unit))

    def defer(self, operator: Operator, action: Callable[[], None]) -> None:
        """Merge for an operator after the pass, because a merge reads frontiers; what is not done now is done later."""
        self._deferred.append((operator, action))

    def run(self) -> None:
        """Step all scheduled operators in order, then do what was deferred, unless an interrupt ends the run."""
        try:
            self.step_all()
        finally:
            for _, action in self.take_deferred():
                if not self._worker.interrupted:
                    action()

    def step_all(self, attempt: Callable[[Operator], bool | None] | None = None) -> None:
        """Step all scheduled operators in order, or let `attempt` do it.

        It returns whether the operator asks for another step; None if the step has paused, and the caller continues it.
        """
        worker, ready = self._worker, self._ready
        try:
            while ready and not worker.interrupted:
                operator = heapq.heappop(ready)[1]
                operator.scheduled = False
                operator.current = self._times
                if operator.dataflow.dropped:
                    continue
                if attempt is not None:
                    again = attempt(operator)
                elif worker.guard is not None or worker.counts is not None or operator.dataflow.events is not None:
                    again = worker.attempt(operator, operator.step_queued)
                else:  # what `worker.attempt` does, without its calls
                    worker.steps += 1
                    worker.current = worker.stepped = operator
                    try:
                        again = operator.step_queued()
                    except BaseException as error:
                        if not worker.end_failed(operator, error):
                            raise
                        again = False
                    finally:
                        worker.stepped = None
                if again is not False:
                    self.end()
                    if again:
                        worker.schedule(operator, later=True)
        finally:
            self.end()

    def take_deferred(self) -> list[tuple[Operator, Callable[[], None]]]:
        """Remove and return what was deferred, with the operators that it is for."""
        deferred, self._deferred = self._deferred, []
        return deferred

    def end(self) -> None:
        """End the pass: count the messages that are queued, and let the worker continue."""
        self.active = False
        ready, self._ready[:] = self._ready[:], []
        for _, operator in ready:
            operator.scheduled = False
            if not operator.dataflow.dropped:
                operator.return_to_worker()
