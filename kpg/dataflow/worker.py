"""A worker: one thread of control that runs any number of dataflows.

It steps operators that have something to do, those of the dataflow that was built first and of these the earliest, so
that what arrives together is processed together: what a dataflow reads was built before it. When nothing is queued it
exchanges progress and steps the operators whose frontier has passed a time they hold. Operators and dataflows with
nothing to do are never looked at.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.dataflow.clock import Clock
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.operator import Operator
from kpg.dataflow.transport import Alone, DataFrame, FailureFrame, Frame, ProgressFrame, Transport
from kpg.errors import KpgError
from kpg.events import Events
from kpg.progress.tracker import Tracker

CLOCK = -1
GUARD_STEPS = 16
LATER = 1 << 40  # a step asked for again comes after all that is queued


class Worker:
    """One of `peers` workers that run the same dataflows."""

    def __init__(self, index: int = 0, peers: int = 1, transport: Transport | None = None, start: Time = (0,)) -> None:
        self.index = index
        self.peers = peers
        self.transport: Transport = transport or Alone()
        self.clock = Clock(start, peers)
        self.dataflows: dict[int, Dataflow] = {}
        self.waiting: set[Operator] = set()
        self.events: Events | None = None  # what happens, if somebody listens
        self.logging = True  # whether what is installed now is listened to
        self.guard: Callable[[], None] | None = None  # asked now and then; raises when a limit is met
        self.touched: set[Tracker] = set()  # whose counts have changed since they were last found settled
        self.steps = 0
        self.untidy = False  # whether an input was closed somewhere, and what that frees was not let go of
        self._ready: list[tuple[int, int, Operator]] = []
        self._idle_queue: deque[Operator] = deque()
        self._next_id = 0
        self._built = 0  # dataflows, over all time
        self._early: dict[int, list[Frame]] = {}

    def listen(self, events: Events | None) -> None:
        """Have what happens told from here on; what is there is told first. None: to nobody any more."""
        self.events = events
        for dataflow in self.dataflows.values():
            dataflow.listen(events)

    # Building and dropping

    def install(self, name: str, build: Callable[[Dataflow], None], logged: bool | None = None) -> Dataflow:
        """Build a dataflow; the same calls in the same order on every worker."""
        dataflow = Dataflow(self, self._next_id, name, self.logging if logged is None else logged)
        self._next_id += 1
        try:
            build(dataflow)
            dataflow.order, self._built = self._built, self._built + 1
            dataflow.start()
        except BaseException:
            dataflow.release()
            self._ready = [entry for entry in self._ready if entry[2].dataflow is not dataflow]
            heapq.heapify(self._ready)
            raise
        self.dataflows[dataflow.id] = dataflow
        self.untidy |= not all(dataflow.tracker.now())
        for frame in self._early.pop(dataflow.id, []):
            self._take(frame)
        return dataflow

    def drop(self, dataflow: Dataflow) -> None:
        """End a dataflow and release everything it holds."""
        if self.dataflows.pop(dataflow.id, None) is not None:
            dataflow.release()

    def fail(self, dataflow: Dataflow, error: KpgError, heard: bool = False) -> None:
        """End a dataflow for a reason that its readers are told, here and at all peers, and all that read from it."""
        if dataflow.failure is None:
            if self.peers > 1 and not heard:
                self.transport.broadcast(FailureFrame(dataflow.id, error))
            dataflow.failure = error.with_traceback(None)  # whose frames would keep all that failed alive
            for reader in tuple(dataflow.readers):
                self.fail(reader, error, heard)
            self.drop(dataflow)

    # Running

    def schedule(self, operator: Operator, later: bool = False) -> None:
        """See that an operator is stepped."""
        if not operator.scheduled:
            operator.scheduled = True
            order = operator.dataflow.order * 65536 + operator.index + (LATER if later else 0)
            heapq.heappush(self._ready, (order, id(operator), operator))

    def step(self) -> bool:
        """Step one operator, or exchange progress; False when there is nothing left to do for now."""
        if self._ready:
            self._run(heapq.heappop(self._ready)[2])
            return True
        busy = self.exchange() | self.wake()
        if self.untidy and not busy:
            self._tidy()
        return busy

    def run(self) -> None:
        """Step until nothing is left to do for now."""
        while self._ready or self.exchange() | self.wake():
            while self._ready:
                self._run(heapq.heappop(self._ready)[2])
        if self.untidy:
            self._tidy()

    def _run(self, operator: Operator) -> None:
        operator.scheduled = False
        dataflow = operator.dataflow
        if dataflow.dropped:
            return
        self.steps += 1
        events = dataflow.events
        try:
            if events is None:
                again = operator.run()
            else:
                began = perf_counter_ns()
                again = operator.run()
                events.steps += (operator.entity, began, perf_counter_ns() - began)
            if self.guard is not None and self.steps % GUARD_STEPS == 0:
                self.guard()  # a dataflow that takes too much is dropped; the others go on
        except KpgError as error:
            self.fail(dataflow, error)
            return
        except BaseException as error:  # a mistake of ours, or Ctrl-C: half a step was done and cannot be done again
            self.fail(dataflow, KpgError(f"{dataflow.name} was stopped in {operator.name}: {type(error).__name__}"))
            raise
        if again and not dataflow.dropped:
            self.schedule(operator, later=True)

    def wake(self) -> bool:
        """Schedule the operators whose frontier has passed a time they hold."""
        due = [operator for operator in self.waiting if operator.due()] if self.waiting else []
        for operator in due:
            self.schedule(operator)
        return bool(due)

    def queue_idle_work(self, operator: Operator) -> None:
        """See that an operator is given idle work until it says that none is left."""
        if not operator.in_idle_queue:
            operator.in_idle_queue = True
            self._idle_queue.append(operator)

    def idle_merge(self, fuel: int, max_operators: int) -> bool:
        """Give idle work to some operators until one has used up `fuel` rows; False when none has any to do now."""
        more = False
        for _ in range(min(max_operators, len(self._idle_queue))):
            operator = self._idle_queue.popleft()
            if not operator.dataflow.dropped:
                events = operator.dataflow.events
                began = 0 if events is None else perf_counter_ns()
                more = operator.idle_merge(fuel)
                if events is not None:
                    events.steps += (operator.entity, began, perf_counter_ns() - began)
                operator.in_idle_queue = more or operator.unsettled
                if operator.in_idle_queue:
                    self._idle_queue.append(operator)
                if more:
                    break
        return more

    def tidy(self) -> None:
        """An input was closed: finish what is due, let operators drop what they do not need, retire dataflows."""
        self.untidy = True
        self.run()

    def _tidy(self) -> None:
        """Once all is quiet; again and again while peers have not told all."""
        self.untidy = False
        for dataflow in list(self.dataflows.values())[::-1]:  # readers before what they read
            for operator in dataflow.operators:
                operator.tidy()
            if dataflow.over:
                dataflow.retired = True
                self.drop(dataflow)
            elif self.peers > 1 and 0 in dataflow.tracker.feeders.values():
                self.untidy |= not dataflow.tracker.idle

    # Progress

    def advance_to(self, frontier: Frontier) -> None:
        """Move the clock of this worker."""
        self.clock.advance_to(frontier)

    def exchange(self) -> bool:
        """Tell the peers what changed here and hear what changed there."""
        if self.peers == 1:
            return False
        changes = [(CLOCK, self.clock.take_changes())]
        changes += [(tracker.owner, tracker.take_changes()) for tracker in self.touched]
        told = tuple((dataflow_id, list_) for dataflow_id, list_ in changes if list_)
        if told:
            self.transport.broadcast(ProgressFrame(told))
            if self.events is not None:
                self.events.progress.append(sum(len(list_) for _, list_ in told))
        frames = self.transport.receive()
        for frame in frames:
            self._take(frame)
        return bool(told or frames)

    def settled(self) -> bool:
        """Whether all workers have come to this one's clock and nothing before it is in flight anywhere."""
        now = self.clock.now
        if self._ready or self.clock.frontier != now:
            return False
        for tracker in tuple(self.touched):
            if tracker.owner not in self.dataflows or not (tracker.counts or tracker.untold):
                self.touched.discard(tracker)
            elif tracker.untold or not tracker.settled(now):
                return False
        return True

    def _take(self, frame: Frame) -> None:
        if isinstance(frame, DataFrame):
            dataflow = self._find(frame.dataflow, frame)
            if dataflow is not None:
                dataflow.channels[frame.channel].deliver(frame.message)
            return
        if isinstance(frame, FailureFrame):
            dataflow = self._find(frame.dataflow, frame)
            if dataflow is not None:
                self.fail(dataflow, frame.error, heard=True)
            return
        for dataflow_id, changes in frame.changes:
            if dataflow_id == CLOCK:
                self.clock.receive(changes)
            else:
                dataflow = self._find(dataflow_id, ProgressFrame(((dataflow_id, changes),)))
                if dataflow is not None:
                    dataflow.tracker.receive(changes)
                    self.untidy |= 0 in dataflow.tracker.feeders.values()

    def _find(self, dataflow_id: int, frame: Frame) -> Dataflow | None:
        dataflow = self.dataflows.get(dataflow_id)
        if dataflow is None and dataflow_id >= self._next_id:
            self._early.setdefault(dataflow_id, []).append(frame)  # a peer has built it before us
        return dataflow


@contextmanager
def logged(worker: Worker, wanted: bool) -> Iterator[None]:
    """Whether what is installed within is told of to those who listen."""
    before, worker.logging = worker.logging, wanted
    try:
        yield
    finally:
        worker.logging = before
