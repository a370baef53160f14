"""Requests to the thread of a db: one that waits for an answer lets the thread serve others meanwhile.

    requests.start(function, session)    call a function; return when it has ended or waits
    requests.wait(condition)             called in it: return when the condition holds, or no work is left
    requests.pause()                     called in it: let others run once
    requests.in_turns()                  called in it: let others run at the pauses of long computations in a block
    requests.resume(idle)                continue the requests whose condition holds; all, if the worker is idle
    requests.cancel(session, error)      raise an error in all waiting requests of a session that ends

Each request has a stack of its own (a greenlet) on the same thread, so its code is a plain sequence of calls. State may
have changed after a wait. A function that must see no change between its calls is started with `interruptible=False`:
its waits do the work themselves, and other requests wait for it. A request that computes much itself, such as a plan or
the rows of a statement, does so in turns of TURN_SECONDS: `pause()` of kpg.columns.pause_points leaves it there.

A *session* is a client of the db: a thread or a connection. A read waits until its answer includes the last write of
the same session.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import Any

from greenlet import getcurrent, greenlet

from kpg.columns.memory_budget import budget
from kpg.columns.pause_points import can_pause, taking_turns
from kpg.dataflow.work_share import WorkShare
from kpg.errors import KpgError

Condition = Callable[[], bool]

MIN_SLICE_SECONDS = 0.0005  # before a request that has arrived ends a slice
TURN_SECONDS = 0.001  # that a request computes before others run
READ_WAIT_SECONDS = 1.0  # that a read waits for the last writes of other sessions: far longer than an answer needs
NEVER = float("inf")


@dataclass(slots=True, eq=False)
class WaitingRequest:
    """A request that has begun: its stack, its session, and the condition that it waits for."""

    stack: greenlet
    session: Hashable
    interruptible: bool
    label: str = ""  # that names it among the requests of its session
    condition: Condition | None = None
    outside: bool = False  # whether it waits for something that the worker does not do
    paused: bool = False  # whether it waits for nothing
    in_turns: bool = False  # whether it was left in the middle of a computation, which has changed nothing
    waits_for_writes: bool = False  # whether its reads include all writes, however long that takes
    seconds: float = 0.0  # of CPU time that it has used, without its present turn

    @property
    def has_result(self) -> bool:
        """Whether it has what it waits for."""
        return self.condition is not None and self.condition()


class WaitingRequests:
    """The requests of one db that have begun and not ended."""

    def __init__(
        self, wake: Callable[[], object] = lambda: None, has_arrived: Callable[[], bool] = lambda: False
    ) -> None:
        self._wake = wake  # makes the thread resume requests; called on any thread
        self._has_arrived = has_arrived  # whether a request waits to be started
        self._can_end_from = NEVER  # when a request that has arrived may end the present slice
        self._share = WorkShare()
        self._current: WaitingRequest | None = None
        self._waiting: list[WaitingRequest] = []
        self._writes: dict[Hashable, int] = {}  # the last epoch that each session wrote
        self._turn_began = self._cpu_began = 0.0  # of the current request: wall time, and CPU time of the thread
        self._turns = RequestTurns(self)

    def __bool__(self) -> bool:
        """Return whether a request waits for the worker."""
        return any(not request.outside for request in self._waiting)

    @property
    def is_empty(self) -> bool:
        """Whether no request is under way."""
        return not self._waiting

    def wake(self) -> None:
        """Make the thread look for work; called on any thread."""
        self._wake()

    @contextmanager
    def during_slice(self) -> Iterator[None]:
        """Let `ends_slice` end the work in this block early, but not before work has had its share of the time."""
        began = perf_counter()
        self._can_end_from = began + max(MIN_SLICE_SECONDS, self._share.least_seconds)
        try:
            yield
        finally:
            self._can_end_from = NEVER
            self._share.slice_took(perf_counter() - began)

    def ends_slice(self) -> bool:
        """Return whether the slice that runs should end now: a request has arrived."""
        return perf_counter() >= self._can_end_from and self._has_arrived()

    # Sessions

    @property
    def last_write(self) -> int:
        """The last epoch that the session of the current request wrote; -1 if there is none."""
        return -1 if self._current is None else self._writes.get(self._current.session, -1)

    def note_write(self, epoch: int, session: Hashable = None) -> None:
        """Record a write of a session, by default that of the current request."""
        if session is None and self._current is not None:
            session = self._current.session
        if session is not None:
            self._writes[session] = max(epoch, self._writes.get(session, -1))

    def forget_writes(self, complete: int) -> None:
        """Drop the records of writes that all answers include."""
        if len(self._writes) and min(self._writes.values()) <= complete:
            self._writes = {session: epoch for session, epoch in self._writes.items() if epoch > complete}

    # Requests

    def start(
        self, function: Callable[[], None], session: Hashable, interruptible: bool = True, label: str = ""
    ) -> None:
        """Call a function, which must not raise; return when it has ended or waits."""
        self._switch(WaitingRequest(greenlet(function), session, interruptible, label))

    def start_another(self, function: Callable[[], None]) -> None:
        """Call a function, which must not raise, as a request of no session; the caller may run in a request itself."""
        with taking_turns(None), budget(None):
            self.start(function, None)

    def _switch(self, request: WaitingRequest, error: KpgError | None = None) -> None:
        outer, self._current = self._current, request
        before = self._turn_began, self._cpu_began
        request.stack.parent = getcurrent()
        self._turn_began, self._cpu_began = perf_counter(), thread_time()
        try:
            if error is None:
                request.stack.switch()
            else:
                request.stack.throw(error)
        finally:
            request.seconds += thread_time() - self._cpu_began
            if outer is None:
                self._share.requests_took(perf_counter() - self._turn_began)
            self._current = outer
            self._turn_began, self._cpu_began = before
        if not request.stack.dead:
            self._waiting.append(request)

    @property
    def is_serving(self) -> bool:
        """Whether the caller runs in a request."""
        return self._current is not None and self._current.stack is getcurrent()

    @property
    def in_request(self) -> bool:
        """Whether the caller runs in a request that may let others run."""
        request = self._current
        return request is not None and request.interruptible and request.stack is getcurrent()

    @contextmanager
    def uninterrupted(self) -> Iterator[None]:
        """Let no other request run while the current one waits in this block."""
        request = self._current
        before = request is not None and request.interruptible
        if request is not None:
            request.interruptible = False
        try:
            with taking_turns(None):
                yield
        finally:
            if request is not None:
                request.interruptible = before

    @contextmanager
    def in_turns(self) -> Iterator[None]:
        """Let others run at the pauses of this block (kpg.columns.pause_points), if the request may be left."""
        with taking_turns(self._turns if self.in_request else None):
            yield

    @contextmanager
    def including_writes(self) -> Iterator[None]:
        """Let the reads of the current request in this block include all writes, however long that takes."""
        request = self._current
        before = request is not None and request.waits_for_writes
        if request is not None:
            request.waits_for_writes = True
        try:
            yield
        finally:
            if request is not None:
                request.waits_for_writes = before

    @property
    def read_wait_seconds(self) -> float:
        """The time that a read of the current request waits for the last writes of other sessions."""
        return NEVER if self._current is not None and self._current.waits_for_writes else READ_WAIT_SECONDS

    @property
    def turn_is_over(self) -> bool:
        """Whether the current request has computed for long enough to let others run."""
        return perf_counter() >= self._turn_began + TURN_SECONDS

    @property
    def used_seconds(self) -> float:
        """The CPU time that the current request has used."""
        used = 0.0 if self._current is None else self._current.seconds
        return used + thread_time() - self._cpu_began

    def charge(self, seconds: float) -> None:
        """Count CPU time of another thread for the current request."""
        if self._current is not None:
            self._current.seconds += seconds

    @property
    def some_in_turns(self) -> bool:
        """Whether a request is in the middle of a computation that it has left."""
        return any(request.in_turns for request in self._waiting)

    @property
    def some_are_due(self) -> bool:
        """Whether a request has what it waits for."""
        return any(request.has_result and not request.paused for request in self._waiting)

    def wait(self, condition: Condition) -> None:
        """Let others run until a condition holds, or no work is left."""
        request = self._current
        assert request is not None and request.stack.parent is not None
        if not condition():
            request.condition = condition
            leave(request)

    def pause(self) -> None:
        """Let others run between two parts of a long request, if it may be left."""
        if self.in_request:
            request = self._current
            assert request is not None
            request.paused, request.condition = True, lambda: True
            try:
                leave(request)
            finally:
                request.paused = False

    def wait_for_future(self, future: Future[Any]) -> None:
        """Let others run until a future is done, which other threads or processes work on."""
        if not self.in_request:
            wait([future])
            return
        request = self._current
        assert request is not None
        request.outside, request.condition = True, future.done
        future.add_done_callback(lambda done: self._wake())
        try:
            while not future.done():
                leave(request)
        finally:
            request.outside = False

    def resume(self, idle: bool) -> None:
        """Continue the requests whose condition holds, in the order in which they began to wait.

        Of those that compute in turns it continues one, so that another request does not wait for all of them.
        """
        turn_is_free = True
        for request in tuple(self._waiting):
            computes = request.paused and request.in_turns
            is_due = (idle and not request.outside) or request.has_result
            if is_due and (turn_is_free or not computes) and request in self._waiting:  # it may have been cancelled
                turn_is_free &= not computes
                self._waiting.remove(request)
                self._switch(request)  # if it waits again, it is the last

    def cancel(self, session: Hashable, error: KpgError) -> None:
        """Raise an error in all waiting requests of a session that ends."""
        self._writes.pop(session, None)
        self.stop(session, error)

    def stop(self, session: Hashable, error: KpgError, label: str | None = None) -> None:
        """Raise an error in all waiting requests of a session that continues, or in those with a label."""
        own = [request for request in self._waiting if request.session == session]
        self._cancel([request for request in own if label in (None, request.label)], error)

    def cancel_all(self, error: KpgError) -> None:
        """Raise an error in all requests that wait or compute in turns, and finish the others."""
        while any(request.paused and not request.in_turns for request in self._waiting):
            self.resume(idle=False)
        self._cancel(list(self._waiting), error)

    def _cancel(self, requests: list[WaitingRequest], error: KpgError) -> None:
        for request in requests:
            self._waiting.remove(request)
            request.interruptible = False  # what it does to end must not wait for others
            self._switch(request, error)


class RequestTurns:
    """The turns of requests that compute: see kpg.columns.pause_points.Turns."""

    def __init__(self, requests: WaitingRequests) -> None:
        self._requests = requests

    def pause(self) -> None:
        """Let other requests run if the turn of the current one is over."""
        if self._requests.turn_is_over:
            self._requests.pause()

    def wait(self, future: Future[Any]) -> bool:
        """Let other requests run until the helper thread has a result."""
        if not self._requests.in_request:
            return False
        self._requests.wait_for_future(future)
        return True

    def charge(self, seconds: float) -> None:
        """Count CPU time of the helper thread for the current request."""
        self._requests.charge(seconds)


def leave(request: WaitingRequest) -> None:
    """Return to the thread's loop until it continues this request, which is the current one."""
    assert request.stack.parent is not None
    request.in_turns = can_pause()
    try:
        with taking_turns(None), budget(None):
            request.stack.parent.switch()
    finally:
        request.in_turns = False
