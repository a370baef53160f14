"""A worker: one thread of control that runs any number of dataflows.

A worker steps the scheduled operators in the order of dataflows, and within a dataflow in the order of construction. A
dataflow comes after the dataflows it reads, so an operator usually steps once for all messages of a transaction. When
no operator is scheduled, the worker schedules each operator that holds a time which the frontier has passed. If none is
due, it sends the progress that its peers may wait for, and processes their frames. It also sends progress after many
rows, and before a step that may take long, so that peers process their rows at the same time. `run` does all work in
this order; `run_slice` works for a limited time and divides it fairly among dataflows (kpg.dataflow.sliced_run).
Cost: nothing for operators and dataflows without work.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from time import perf_counter, perf_counter_ns, process_time_ns
from typing import TypeVar

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.columns.building_turns import building_in_turns, turns_of_building
from kpg.columns.memory_budget import Check, budget
from kpg.columns.pause_points import clear_interrupt, taking_turns
from kpg.dataflow.clock import Clock
from kpg.dataflow.direct_run import DirectRun
from kpg.dataflow.fair_shares import ReadyOperator
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.operator import Operator
from kpg.dataflow.sliced_run import SlicedRun
from kpg.dataflow.transport import DataFrame, FailureFrame, Frame, NoPeers, ProgressFrame, Transport
from kpg.dataflow.work_counts import WorkCounts
from kpg.errors import KpgError, ProgramError
from kpg.events import Events
from kpg.progress.tracker import Tracker

CLOCK = -1  # stands for the clock where progress frames name a dataflow
PROMPT_BYTES = 1 << 16  # of rows for peers: the counts of so many leave before the next step
LATER = 1 << 40  # added to the order of an operator that asks for another step, so that it runs after all others


Result = TypeVar("Result")


class Worker:
    """One of `peers` workers that run the same dataflows."""

    def __init__(self, index: int = 0, peers: int = 1, transport: Transport | None = None, start: Time = (0,)) -> None:
        self.index = index
        self.peers = peers
        self.transport: Transport = transport or NoPeers()
        self.coordinates = len(start)  # of times outside of loops
        self.clock = Clock(start, peers, index)
        self.dataflows: dict[int, Dataflow] = {}
        self.waiting: set[Dataflow] = set()  # with operators that hold a time until a frontier passes it
        self.events: Events | None = None  # None: events are not logged
        self.counts: WorkCounts | None = None  # None: work is not counted
        self.logging = True  # whether events of dataflows that are installed now are logged
        self.guard: Check | None = None  # called between steps; raises when a limit is exceeded
        self.when_idle: Callable[[Dataflow], None] | None = None  # called when all workers have completed a dataflow
        self.is_called: Callable[[], bool] = lambda: False  # whether a slice should end now: something has arrived
        self.has_news: Callable[[], bool] = lambda: False  # whether readers wait for results that are complete
        self.changed_trackers: set[Tracker] = set()  # their counts changed since they were last found settled
        self.sent_bytes = 0  # of rows for peers, since progress was sent last
        self.steps = 0
        self.current: Operator | None = None  # the operator that was stepped last
        self.stepped: Operator | None = None  # the operator that is in the middle of a step
        self.running = False  # whether a caller waits for all work, or a slice of it
        self.interrupted = False  # whether to raise KeyboardInterrupt after the present step
        self.cleanup_due = False  # an input was closed, and operators have not released unneeded state yet
        self._ready: list[ReadyOperator] = []
        self.direct = DirectRun(self)
        self._slices = SlicedRun(self)
        self._recoveries: list[Callable[[], None]] = []  # of dataflows that have failed
        self._idle_queue: deque[Operator] = deque()
        self._next_id = 0
        self._completed = 0  # the number of dataflows built so far
        self._building: set[int] = set()  # the dataflows that are being built
        self._early_frames: dict[int, list[Frame]] = {}  # for dataflows that a peer has built before this worker

    def set_events(self, events: Events | None) -> None:
        """Log events from now on, beginning with the present dataflows; None stops logging."""
        self.events = events
        for dataflow in self.dataflows.values():
            dataflow.set_events(events)

    # Building and dropping

    def install(self, name: str, build: Callable[[Dataflow], None], logged: bool | None = None) -> Dataflow:
        """Build a dataflow. Every worker must make the same calls in the same order."""
        dataflow = Dataflow(self, self._next_id, name, self.logging if logged is None else logged)
        self._next_id += 1
        dataflow.building = turns_of_building()
        self._building.add(dataflow.id)
        try:
            with building_in_turns(False), taking_turns(None), budget(None):
                build(dataflow)
            dataflow.building = None
            if dataflow.tracker.has_unsent:  # others may have looked for its dataflow meanwhile
                self.changed_trackers.add(dataflow.tracker)
            dataflow.order, self._completed = self._completed, self._completed + 1
            dataflow.start()
        except BaseException:
            dataflow.release()
            self._ready = [ready for ready in self._ready if ready[2].dataflow is not dataflow]
            heapq.heapify(self._ready)
            self._building.discard(dataflow.id)
            self._early_frames.pop(dataflow.id, None)
            raise
        self._building.discard(dataflow.id)
        self.dataflows[dataflow.id] = dataflow
        if dataflow.has_ended_source():
            self.cleanup_due = dataflow.may_have_ended = True
        for frame in self._early_frames.pop(dataflow.id, []):
            self._process(frame)
        return dataflow

    @property
    def next_id(self) -> int:
        """The id of the next dataflow."""
        return self._next_id

    def skip_dataflows(self, next_id: int) -> None:
        """Give the next dataflow a later id: peers have used those before it for dataflows that are gone."""
        for skipped in range(self._next_id, next_id):
            self._early_frames.pop(skipped, None)
        self._next_id = max(self._next_id, next_id)

    def drop(self, dataflow: Dataflow) -> None:
        """End a dataflow that has no readers any more, and free it."""
        self._end(dataflow)
        dataflow.forget_operators()

    def _end(self, dataflow: Dataflow) -> None:
        """End a dataflow and release everything it holds. What it was can still be explained."""
        if self.dataflows.pop(dataflow.id, None) is not None:
            dataflow.release()

    def fail(self, dataflow: Dataflow, error: KpgError, from_peer: bool = False) -> None:
        """End a dataflow and all dataflows that read from it, on this worker and its peers. Readers get the error."""
        if dataflow.failure is None:
            if self.peers > 1 and not from_peer:
                self.transport.broadcast(FailureFrame(dataflow.id, error, dataflow.circulating))
            dataflow.failure = error.with_traceback(None)  # the frames of a traceback would keep the state alive
            for reader in tuple(dataflow.readers):
                self.fail(reader, error, from_peer)
            self._end(dataflow)
            if dataflow.on_failure is not None:
                self._recoveries.append(dataflow.on_failure)

    # Running

    def schedule(self, operator: Operator, later: bool = False) -> None:
        """Schedule an operator; with `later`, after all that are scheduled now."""
        if not operator.scheduled:
            operator.scheduled = True
            order = operator.order + (LATER if later else 0)
            heapq.heappush(self._ready, (order, id(operator), operator))

    def take_ready(self) -> list[ReadyOperator]:
        """Remove and return the scheduled operators, to step them in another order."""
        ready, self._ready = self._ready, []
        return ready

    def run_slice(self, seconds: float) -> bool:
        """Step for about this long, in fair shares. Return False if nothing is left to do for now."""
        return self._run_guarded(partial(self._slices.work, seconds))

    def run_directly(self) -> bool:
        """Run an epoch that was fed directly, if there is one. Return False if later slices have to do more."""
        if not self.direct.active:
            return False
        self._run_guarded(self._slices.run_directly)
        if self._recoveries:  # of dataflows that have failed in this run, before its time is sealed
            self.wake()
        return not (self.is_busy or self.waiting or self._recoveries or self.cleanup_due)

    def _run_guarded(self, work: Callable[[], Result]) -> Result:
        self.running = True
        try:
            if self.guard is None:
                result = work()
            else:
                self._charge_nobody(self.guard)
                with budget(self.guard):
                    result = work()
        finally:
            self.running = False
        if self.interrupted:
            self._raise_interrupt()
        return result

    def _charge_nobody(self, guard: Check) -> None:
        """Let the guard charge the time before this run or slice to no dataflow."""
        self.current = None
        with suppress(KpgError):
            guard(0)

    def run_dataflow(self, dataflow: Dataflow) -> None:
        """Do all work of one dataflow that is ready, before that of others."""
        self._slices.work_on(dataflow)

    @property
    def is_busy(self) -> bool:
        """Whether an operator is scheduled or a step is paused."""
        return bool(self._ready) or bool(self._slices.shares)

    @property
    def may_run_directly(self) -> bool:
        """Whether all scheduled operators have messages, hold no time, and are outside of loops or enter one."""
        if self._slices.shares:
            return False
        operators = [operator for _, _, operator in self._ready]
        return all(
            o.dataflow.runs_directly and (o.unit is None or o.enters_loop) and not o.held and any(o.queues)
            for o in operators
        )

    def step(self) -> bool:
        """Step one operator, or exchange progress. Return False if nothing is left to do for now."""
        if self._ready:
            operator = heapq.heappop(self._ready)[2]
            if self.guard is None:
                self._run(operator)
            else:
                with budget(self.guard):
                    self._run(operator)
            return True
        return self.find_work(in_slices=False)

    def find_work(self, in_slices: bool = True) -> bool:
        """Schedule operators that wait for progress, and exchange it. Return whether there is work now.

        Operators that are due run first: what follows from their work is one set of changes with what came before. Not
        so in slices, where operators of one dataflow may be due all the time while peers wait for another.
        """
        busy = self.wake()
        if in_slices or not busy:
            busy |= self.exchange()
        if self.cleanup_due and not busy and not self.is_busy:
            self._clean_up()
        return busy

    @property
    def is_idle(self) -> bool:
        """Whether a run would do nothing at all."""
        left = self._ready or self.waiting or self._recoveries or self.direct.active or self.cleanup_due
        return not (left or self.interrupted or self._slices.shares or self.peers > 1)

    def run(self) -> None:
        """Step until nothing is left to do for now."""
        if self.is_idle:
            return
        self._run_guarded(self._run_until_idle)
        if self.cleanup_due:
            self._clean_up()

    def _run_until_idle(self) -> None:
        if self._slices.shares:
            self._slices.finish()
        if self.direct.active:
            self.direct.run()
        while not self.interrupted and (self._ready or self.wake() or self.exchange()):
            while self._ready and not self.interrupted:
                self._run(heapq.heappop(self._ready)[2])

    def _raise_interrupt(self) -> None:
        """Raise the interrupt that came during a step, or between two. Later runs continue the work that is left."""
        self.interrupted = False
        clear_interrupt()
        raise KeyboardInterrupt

    def _run(self, operator: Operator) -> None:
        operator.scheduled = False
        if operator.dataflow.dropped:
            return
        operator = operator.stand_in
        if self.attempt(operator, operator.run) and not operator.dataflow.dropped:
            self.schedule(operator, later=True)

    def attempt(self, operator: Operator, step: Callable[[], bool | None]) -> bool | None:
        """Return the result of a step or a part of one; if it fails, end the dataflow and return False."""
        dataflow = operator.dataflow
        if (operator.may_take_long or self.sent_bytes > PROMPT_BYTES) and self.peers > 1 and self._must_send():
            self._send_progress()
        self.steps += 1
        self.current = self.stepped = operator
        try:
            if self.guard is None and self.counts is None and dataflow.events is None:
                return step()
            return self._observe(operator, step)
        except BaseException as error:
            if not self.end_failed(operator, error):
                raise
            return False
        finally:
            self.stepped = None

    def end_failed(self, operator: Operator, error: BaseException) -> bool:
        """End the dataflow of an operator whose step failed. Return False if the error must be raised again."""
        dataflow = operator.dataflow
        if isinstance(error, KpgError):
            self.fail(dataflow, error)
            return True
        if isinstance(error, RecursionError):  # expressions are evaluated from the inside out
            hint = "Split the query into several views or rules."
            self.fail(dataflow, ProgramError(f"an expression of {dataflow.name} is nested too deeply", hint=hint))
            return True
        self.interrupted = False  # a defect of kpg, or Ctrl-C: the step is half done and cannot be repeated
        self.fail(dataflow, KpgError(f"{dataflow.name} was stopped in {operator.name}: {type(error).__name__}"))
        return False

    def _observe(self, operator: Operator, step: Callable[[], bool | None]) -> bool | None:
        """Return the result of a step or a part of one; check limits, count its work and log it."""
        dataflow, counts = operator.dataflow, self.counts
        events = dataflow.events
        cpu_began = 0 if counts is None else process_time_ns()
        if dataflow.is_relation and self.guard is not None:
            step = partial(without_budget, step)
        if events is None:
            again = step()
        else:
            began = perf_counter_ns()
            again = step()
            events.steps += (operator.entity, began, perf_counter_ns() - began)
        if counts is not None:
            counts.add_step(operator, cpu_began)
        if self.guard is not None:
            with suppress(KpgError) if dataflow.is_relation else nullcontext():
                self.guard(0)  # only the dataflow that exceeds a limit is dropped
        return again

    def wake(self, sparingly: bool = False) -> bool:
        """Schedule each operator that holds a time which the frontier has passed. Return whether there were any.

        Do it `sparingly` to leave out dataflows that are busy and were looked at shortly before.
        """
        found = bool(self._recoveries)
        if found:
            self._recover()
        for dataflow in tuple(self.waiting) if self.waiting else ():
            if sparingly and dataflow.is_busy and perf_counter() < dataflow.check_again_at:
                continue
            found |= self._wake_due(dataflow)
        return found

    def _wake_due(self, dataflow: Dataflow) -> bool:
        due = dataflow.due_operators()
        for operator in due:
            self.schedule(operator)
        return bool(due)

    def find_work_after(self, dataflow: Dataflow) -> None:
        """Schedule operators for which a dataflow that has done its work may have advanced a frontier.

        Without peers these are its own and those of its readers: to look at all would take longer than the work of one
        of many light dataflows.
        """
        if self.peers > 1 or self._recoveries:
            self.find_work()
            return
        looked_at = {dataflow}
        reached = [dataflow]
        for each in reached:
            if each in self.waiting:
                self._wake_due(each)
            new = [reader for reader in each.readers if reader not in looked_at]
            looked_at.update(new)
            reached += new

    def _recover(self) -> None:
        """Call the recoveries of failed dataflows, before the clock's next time is sealed: they may read the last one.

        What they build counts for no dataflow.
        """
        recoveries, self._recoveries = self._recoveries, []
        with taking_turns(None), budget(None):
            for recover in recoveries:
                recover()

    def queue_idle_work(self, operator: Operator) -> None:
        """Add an operator to the queue of idle work, until it has none left."""
        if not operator.in_idle_queue:
            operator.in_idle_queue = True
            self._idle_queue.append(operator)

    def idle_merge(self, fuel: int, max_operators: int, can_pause: bool = False, defer_interrupt: bool = False) -> bool:
        """Give idle work to at most `max_operators` operators, until one has used up `fuel` rows.

        Return False if no operator visited has idle work left to do now. If it `can_pause`, work that takes longer
        than a turn is left to later slices, and the worker is busy. An interrupt is raised afterwards, or by the next
        run if it is to be deferred.
        """
        outer, self.running = self.running, True
        try:
            more = self._idle_merge(fuel, max_operators, can_pause)
        finally:
            self.running = outer
        if self.interrupted and not outer and not defer_interrupt:
            self._raise_interrupt()
        return more

    def _idle_merge(self, fuel: int, max_operators: int, can_pause: bool) -> bool:
        more = False
        for _ in range(min(max_operators, len(self._idle_queue))):
            operator = self._idle_queue.popleft()
            if operator.dataflow.dropped:
                continue
            if operator.dataflow.is_busy:  # its trace may be in the middle of a change
                self._idle_queue.append(operator)
                continue
            if can_pause:
                more = self._slices.work_when_idle(operator, fuel)
            else:
                more = self._do_idle_work(operator, fuel)
            operator.in_idle_queue = more or operator.unsettled
            if operator.in_idle_queue:
                self._idle_queue.append(operator)
            if more:
                break
        return more

    def _do_idle_work(self, operator: Operator, fuel: int) -> bool:
        events = operator.dataflow.events
        began = 0 if events is None else perf_counter_ns()
        more = operator.idle_merge(fuel)
        if events is not None:
            events.steps += (operator.entity, began, perf_counter_ns() - began)
        return more

    def clean_up(self) -> None:
        """Finish due work, release state that operators no longer need, and drop finished dataflows.

        Called after an input was closed.
        """
        self.cleanup_due = True
        self.run()

    def _clean_up(self) -> None:
        """Clean up when no work is left; repeated while progress of peers is missing."""
        self.cleanup_due = False
        for dataflow in list(self.dataflows.values())[::-1]:  # readers before the dataflows they read
            for operator in dataflow.operators:
                operator.release_unneeded()
            if dataflow.is_finished:
                dataflow.retired = True
                self._end(dataflow)
            elif self.peers > 1 and 0 in dataflow.tracker.feeders.values():
                self.cleanup_due |= not dataflow.tracker.is_idle

    # Progress

    def advance_to(self, frontier: Frontier) -> None:
        """Advance the clock of this worker."""
        self.clock.advance_to(frontier)

    def exchange(self) -> bool:
        """Send progress changes if peers wait for them, and process frames of peers. Return whether there were any."""
        if self.peers == 1:
            return False
        sent = self._must_send()
        if sent:
            self._send_progress()
        frames = self.transport.receive()
        for frame in frames:
            self._process(frame)
        return sent or bool(frames)

    def _must_send(self) -> bool:
        if self.clock.has_unsent:
            return True
        for tracker in self.changed_trackers:  # often called, so not a generator
            if tracker.must_send():
                return True
        return False

    def _send_progress(self) -> None:
        """Send all unsent changes to the peers as one atomic set: one dataflow may feed another."""
        self.sent_bytes = 0
        changes = [(CLOCK, self.clock.take_changes())]
        changes += [(tracker.owner, tracker.take_changes()) for tracker in self.changed_trackers]
        unsent = tuple((dataflow_id, list_) for dataflow_id, list_ in changes if list_)
        size = self.transport.broadcast(ProgressFrame(unsent))
        if self.counts is not None:
            self.counts.add_progress(self.peers - 1, size)
        if self.events is not None:
            self.events.progress.append(sum(len(list_) for _, list_ in unsent))

    def forget_changes(self, tracker: Tracker) -> None:
        """Wait for no more progress of a dataflow that is idle, or has ended."""
        self.changed_trackers.discard(tracker)
        dataflow = self.dataflows.get(tracker.owner)
        if dataflow is not None and self.when_idle is not None:
            self.when_idle(dataflow)

    def is_settled(self) -> bool:
        """Return whether all workers have reached this one's clock and nothing before it is in flight anywhere."""
        now = self.clock.now
        if self.is_busy or self.clock.frontier != now:
            return False
        for tracker in tuple(self.changed_trackers):
            if tracker.owner not in self.dataflows or (tracker.is_idle and not tracker.has_unsent):
                self.forget_changes(tracker)
            elif tracker.must_send() or not tracker.is_settled(now):
                return False
        return True

    def _process(self, frame: Frame) -> None:
        if isinstance(frame, DataFrame):
            dataflow = self._find(frame.dataflow, frame)
            if dataflow is not None:
                dataflow.channels[frame.channel].deliver(frame.message)
            return
        if isinstance(frame, FailureFrame):
            dataflow = self._find(frame.dataflow, frame)
            if dataflow is not None:
                dataflow.circulating = frame.circulating
                self.fail(dataflow, frame.error, from_peer=True)
            return
        for dataflow_id, changes in frame.changes:
            if dataflow_id == CLOCK:
                self.clock.receive(changes)
            else:
                dataflow = self._find(dataflow_id, ProgressFrame(((dataflow_id, changes),)))
                if dataflow is not None:
                    dataflow.tracker.receive(changes)
                    self.cleanup_due |= 0 in dataflow.tracker.feeders.values()

    def _find(self, dataflow_id: int, frame: Frame) -> Dataflow | None:
        dataflow = self.dataflows.get(dataflow_id)
        if dataflow is None and (dataflow_id >= self._next_id or dataflow_id in self._building):
            self._early_frames.setdefault(dataflow_id, []).append(frame)  # a peer has built it before this worker
        return dataflow


def without_budget(step: Callable[[], Result]) -> Result:
    """Return the result of a step whose allocations no limit refuses."""
    with budget(None):
        return step()


@contextmanager
def event_logging(worker: Worker, enabled: bool) -> Iterator[None]:
    """Enable or disable event logging for the dataflows that are installed in this block."""
    before, worker.logging = worker.logging, enabled
    try:
        yield
    finally:
        worker.logging = before
