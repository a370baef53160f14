"""The thread that owns the service: runs requests in order, and takes changes for clients that can receive them.

    future = engine.run(lambda service: ...)     run a function on the engine's thread
    engine.take_when_changed(interest)           take the interest's next changes once, and pass them to `deliver`

The thread alternates between requests, changes and work. It starts up to MAX_REQUESTS_PER_POLL requests, takes changes
that are complete, works for SLICE_SECONDS on answers that are not, continues the requests that waited for these, and
takes changes again. A request that arrives meanwhile ends the slice. So a burst of transactions becomes one
consolidated step for subscribers, and an expensive query of one client delays others by a part of a slice. A failed
request affects only its caller. After some milliseconds without work it merges and compacts. After a second it frees
the texts that no row uses any more, and between requests if these are many (kpg.server.symbol_upkeep).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from kpg.api.background import IDLE_DELAY_SECONDS, SLICE_SECONDS
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.waiting_requests import WaitingRequests
from kpg.columns.full_collections import collect_all_when_due
from kpg.errors import Closed, KpgError, TimeNotReached
from kpg.kernels.warm import load
from kpg.server.awaited_interests import AwaitedInterests
from kpg.server.change_payload import MAX_REQUESTS_PER_POLL, ChangePayload, take_payload
from kpg.server.flow_control import SendBudget
from kpg.server.server_log import LOGGER, MEMBERS
from kpg.server.symbol_upkeep import SymbolUpkeep
from kpg.server.timed_reads import AwaitedHistory, EngineRequest, TimedReads
from kpg.service import Interest, Service

Result = TypeVar("Result")
Work = Callable[[Service], Any]

MAX_SLEEP_SECONDS: Final = 3600.0  # any request ends the sleep
MAX_SWITCH_SECONDS: Final = 0.0001  # after which Python lets the thread of the connections run; its default is 5 ms
FETCH: Final = "fetch"  # the label of reads that wait for changes of a cursor
ROWS_PER_TAKE: Final = 1 << 12  # of changes that are taken without a request: a millisecond or two, if they have texts
PAUSE_AFTER_FAILURE_SECONDS: Final = 0.05  # between requests, so that one that lasts does not fill the log
SILENCE_SECONDS: Final = 1.0  # without a request, until kernels are loaded and symbols reclaimed
LEAST_SPARE_BYTES: Final = 256 << 20  # of the memory limit, for the code of kernels to be loaded in advance
IDLE_MERGE_ROWS: Final = 100_000  # merged in one idle moment; a request that arrives meanwhile waits for it


class EngineThread:
    """Runs a service on a thread of its own."""

    def __init__(
        self,
        make: Callable[[], Service],
        deliver: Callable[[list[ChangePayload]], None],
        budget_of: Callable[[Any], SendBudget | None] = lambda owner: None,
    ) -> None:
        self._queue: SimpleQueue[EngineRequest | None] = SimpleQueue()
        self._requests = WaitingRequests(
            lambda: self._queue.put(EngineRequest(do_nothing, Future(), None)), lambda: not self._queue.empty()
        )
        self._service: Service | None = None
        self._deliver = deliver
        self._budget_of = budget_of  # by session; None if it has ended
        self._awaited = AwaitedInterests()  # interests to take changes of, when they have some
        self._failed: set[int] = set()  # interests with an error that was sent to the client
        self._served: set[int] = set()  # interests with a first payload that was sent to the client
        self._taking: dict[int, Future[None]] = {}  # by interest whose changes a request is taking: done at its end
        self._timed_reads = TimedReads(budget_of)
        self._history = AwaitedHistory()
        self._lock = threading.Lock()
        self._closed = False
        self._started = False  # whether requests were started since the last slice
        self._computing = True  # whether to work on answers that are not complete
        self._kernels = load()  # yields after each
        opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._serve, args=(make, opened), name="kpg-engine", daemon=True)
        self._thread.start()
        opened.result()

    # Called on any thread

    def run(self, work: Callable[[Service], Result], session: Hashable = None, label: str = "") -> Future[Result]:
        """Queue a function of the service. One that waits for an answer lets others run meanwhile."""
        future: Future[Result] = Future()
        with self._lock:
            if self._closed:
                raise Closed("the server is shutting down")
            self._queue.put(EngineRequest(work, future, session, label))
        if self._service is not None:
            self._service.db.wake()
        return future

    def run_as_of(
        self,
        moment: int,
        timeout_seconds: float,
        work: Callable[[Service], Result],
        session: Hashable = None,
        label: str = "",
    ) -> Future[Result]:
        """Queue a function that runs when a time is closed, and fails if that takes longer than the timeout."""
        future: Future[Result] = Future()
        deadline = time.monotonic() + timeout_seconds
        request = EngineRequest(work, future, session, label)
        self.run(lambda service: self._add_timed_read(service, moment, deadline, request))
        return future

    def cancel(self, session: Hashable, error: KpgError | None = None) -> None:
        """End the waiting requests of a session; called on the engine's thread."""
        error = error or Closed("the client has disconnected")
        self._requests.cancel(session, error)
        self._end_timed_reads(error, lambda read: read.session == session)
        self._timed_reads.forget(session)

    def stop_requests(self, session: Hashable, error: KpgError, label: str | None = None) -> None:
        """Raise an error in the waiting requests of a session, which continues, or in those with a label.

        Called on the engine's thread.
        """
        self._requests.stop(session, error, label)
        self._end_timed_reads(error, lambda read: read.session == session and label in (None, read.label))

    def run_fetches(self, session: Hashable) -> None:
        """Run each FETCH of a session that waits for changes now; called on the engine's thread."""
        assert self._service is not None
        for request in self._timed_reads.remove(lambda read: (read.session, read.label) == (session, FETCH)):
            self._start(request, self._service)

    def take_when_changed(self, interest: Interest) -> None:
        """Take this interest's changes once, when there are any, and pass them to `deliver`."""
        self.run(lambda service: self._await(interest))

    def end_work(self) -> None:
        """Work on answers no more: requests that wait for one fail, and all others are still finished."""
        self._computing = False
        self.wake()

    def close(self) -> None:
        """Process the queue, close the service and end the thread; repeating it has no effect."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    # Called on the engine's thread

    def _await(self, interest: Interest) -> None:
        if not interest.ended:  # it may have ended while this call was queued
            self._awaited.add(interest)

    def pause(self, interest: int) -> None:
        """Take no changes of an interest before the next `take_when_changed`: its client has lost the connection."""
        self._awaited.remove(interest)

    def include_writes(self, service: Service, session: Hashable) -> None:
        """Let reads of a session include all writes so far: some may be its own, over a connection that was lost."""
        self._requests.note_write(service.time - 1, session)

    def forget(self, interest: int) -> None:
        """Drop the state of an interest that has ended."""
        self._awaited.remove(interest)
        self._failed.discard(interest)
        self._served.discard(interest)

    def take(self, interest: Interest) -> ChangePayload:
        """Take the unread changes of an interest, record what its client was sent, and count it in its budget.

        Changes delayed to the end of an interval are included, so that `upto` is correct. Others run between two parts
        of large changes. Raise Closed if the client disconnects meanwhile, or while this waits for the answer; nothing
        was taken then.
        """
        while interest.id in self._taking:
            self._requests.wait_for_future(self._taking[interest.id])
        return self._take(interest, wait=True)

    def _take(self, interest: Interest, wait: bool) -> ChangePayload:
        """Take the unread changes of an interest, which nothing else takes now; see `take`."""
        taken = self._taking[interest.id] = Future[None]()
        try:
            interest.release_delayed()
            payload = take_payload(interest, wait)
        finally:
            del self._taking[interest.id]
            taken.set_result(None)
        if isinstance(payload.failed, Closed):
            raise payload.failed
        if not interest.ended:  # while it was taken
            self._served.add(interest.id)
            (self._failed.discard if payload.failed is None else self._failed.add)(interest.id)
        budget = self._budget_of(payload.owner)
        if budget is not None:
            budget.add(payload.nbytes)
        return payload

    def _serve(self, make: Callable[[], Service], opened: Future[None]) -> None:
        try:
            service = make()
        except BaseException as error:
            opened.set_exception(error)
            return
        service.db.serve_requests(self._requests)
        self._symbols = SymbolUpkeep(service.db, self._requests, lambda: not self._queue.empty())
        self._service = service
        sys.setswitchinterval(min(MAX_SWITCH_SECONDS, sys.getswitchinterval()))
        opened.set_result(None)
        running = True
        while running:
            try:
                running = self._process_requests(service)
                self._run_timed_reads(service)
                self._expire_snapshots(service)
                self._work(service)
                self._take_changes()
                self._symbols.between_requests()
            except Exception:  # a defect: requests get errors, and all clients are still served
                LOGGER.exception("the engine failed between requests")
                time.sleep(PAUSE_AFTER_FAILURE_SECONDS)
        self._end_requests()
        service.close()
        service.db.close()

    def _process_requests(self, service: Service) -> bool:
        """Run some queued functions; return False after the last."""
        is_busy = self._is_busy(service) or self._timed_reads.has_runnable()
        if is_busy and self._computing and self._symbols.holds_back():
            return True
        for count in range(MAX_REQUESTS_PER_POLL):
            try:
                request = self._queue.get_nowait() if count or is_busy else self._wait(service)
            except Empty:
                return True
            if request is None:
                return False
            self._start(request, service)
            self._run_due_reads(service)  # before a request that closes the next time
        return True

    def _start(self, request: EngineRequest, service: Service) -> None:
        self._started = True
        self._requests.start(partial(run_work, request, service), request.session, label=request.label)

    def _is_busy(self, service: Service) -> bool:
        return self._computing and service.db.has_work

    def _work(self, service: Service) -> None:
        """Work for a slice, and continue the requests that waited for it."""
        if not self._computing:
            self._end_requests()
        elif service.db.has_work:
            if self._started:  # what they have changed may be complete already
                self._take_changes()
            busy = self._run_slice(service)
            self._started = False
            self._requests.resume(idle=not busy)
        else:
            self._requests.resume(idle=False)

    def _run_slice(self, service: Service) -> bool:
        """Work for a slice, and return whether work is left. A defect ends the dataflow in which it shows."""
        try:
            with self._requests.during_slice():
                return service.db.work(SLICE_SECONDS)
        except Exception:
            LOGGER.exception("a dataflow failed")
            return True

    def _wait(self, service: Service) -> EngineRequest | None:
        """Return the next queue entry; merge and compact while there is none for some time."""
        with suppress(Empty):
            return self._queue.get(timeout=min(IDLE_DELAY_SECONDS, self._sleep_seconds()))
        while self._computing and self._queue.empty() and service.db.idle(IDLE_MERGE_ROWS):
            if service.db.has_work:
                raise Empty  # slices continue what takes long
        self._symbols.free()
        if self._sleep_seconds() > SILENCE_SECONDS:
            with suppress(Empty):
                return self._queue.get(timeout=SILENCE_SECONDS)
            self._use_silence(service)
        to_reclaim = self._symbols.seconds_to_check or MAX_SLEEP_SECONDS
        return self._queue.get(timeout=min(self._sleep_seconds(), to_reclaim))

    def _use_silence(self, service: Service) -> None:
        """Use a second without requests for what later requests then need not wait for.

        Load kernels until a request arrives, collect garbage and reclaim symbols if these are due.
        """
        if "numba" in sys.modules and not is_short_of_memory(service):
            while self._queue.empty() and next(self._kernels, None) is not None:
                pass
        if self._queue.empty():
            collect_all_when_due()
        self._symbols.in_silence()

    def _sleep_seconds(self) -> float:
        """Return the time until the next deadline of a timed read or the next delayed change is due."""
        now = time.monotonic()
        deadlines = [deadline - now for deadline in self._timed_reads.deadlines]
        delays = (interest.due_in for interest in self._awaited.active() if interest.id not in self._failed)
        check = None if self._service is None else self._service.sql.snapshots.seconds_to_check(now)
        due = [*deadlines, *(delay for delay in (check, *delays) if delay is not None)]
        return max(0.0, min(due, default=MAX_SLEEP_SECONDS))

    def _run_timed_reads(self, service: Service) -> None:
        """Run the reads at times that are complete, and fail the reads that have passed their deadline."""
        self._run_due_reads(service)
        for read in self._timed_reads.take_late(time.monotonic()):
            what, detail = f"time {read.moment} did not come", f"The open time is {service.time}."
            fail(read.request.future, TimeNotReached(what, detail=detail, hint="Ask again later."))
        if self._history.is_due(self._timed_reads.first_moment):
            self._start(EngineRequest(self._keep_history, Future(), None), service)

    def _add_timed_read(self, service: Service, moment: int, deadline: float, request: EngineRequest) -> None:
        """Let a read wait for a time, and keep the history that it needs before the next request closes that time."""
        self._timed_reads.add(moment, deadline, request)
        self._keep_history(service)

    def _keep_history(self, service: Service) -> None:
        """Keep the history that timed reads need, and no more."""
        first = self._timed_reads.first_moment
        if self._history.is_due(first):
            self._history.keep(service, first)

    def _run_due_reads(self, service: Service) -> None:
        """Run the reads at times that are complete."""
        for request in self._timed_reads.take_runnable(service.time):
            self._start(request, service)

    def _expire_snapshots(self, service: Service) -> None:
        """Let the db forget what transactions have not read for too long."""
        snapshots, now = service.sql.snapshots, time.monotonic()
        due = snapshots.seconds_to_check(now)
        if due is not None and due <= 0:
            self._start(EngineRequest(lambda service: snapshots.expire(now), Future(), snapshots), service)

    def _end_timed_reads(self, error: KpgError, matches: Callable[[EngineRequest], bool]) -> None:
        """Fail the matching reads that wait for a time."""
        for request in self._timed_reads.remove(matches):
            fail(request.future, error)

    def _end_requests(self) -> None:
        """Fail the requests that wait for an answer or for a time."""
        error = Closed("the server is shutting down")
        self._requests.cancel_all(error)
        self._end_timed_reads(error, lambda read: True)

    def _take_changes(self) -> None:
        """Take the changes of all awaited interests that have some."""
        looked_at = self._awaited.to_look_at()
        changed = [interest for interest in looked_at if self._has_news(interest)]
        if len(changed) < len(looked_at):
            self._rest(looked_at)
        payloads = []
        for interest in changed:
            budget = self._budget_of(interest.owner)
            if budget is not None and budget.is_full:
                continue  # the client is slow: its changes wait, consolidated
            self._awaited.remove(interest.id)
            if interest.waiting > ROWS_PER_TAKE:
                self._requests.start(partial(self._take_in_turns, interest), None)
                continue
            with suppress(Closed):
                payloads.append(self._take(interest, wait=True))
        if payloads:
            self._deliver(payloads)

    def _take_in_turns(self, interest: Interest) -> None:
        """Take large changes of an interest in a request of their own, so that others do not wait for them.

        It belongs to no session: changes that are taken go to the next connection, if the client has lost this one.
        """
        with suppress(Closed):
            self._deliver([self._take(interest, wait=False)])

    def _rest(self, interests: list[Interest]) -> None:
        """Look at interests that were served and now have neither changes nor an error only when something happens."""
        for interest in interests:
            if interest.id in self._served and interest.id not in self._failed and interest.is_idle:
                self._awaited.rest(interest)

    def wake(self) -> None:
        """Look for changes again; called on any thread when a budget is no longer full."""
        with suppress(Closed):
            self.run(do_nothing)

    def _has_news(self, interest: Interest) -> bool:
        """Whether an interest has rows, was never served, or its answer failed or recovered."""
        if interest.ended or interest.id in self._taking:
            return False
        fails = interest.error is not None
        failure_sent = interest.id in self._failed
        if interest.id not in self._served:
            try:
                return (
                    fails or interest.ready or interest.error is not None
                )  # to ask may close a time; then it may fail
            except KpgError:
                return True  # to take its rows raises the same error, for its client
        return (fails != failure_sent or (interest.waiting > 0 and not fails)) and interest.can_take


def is_short_of_memory(service: Service) -> bool:
    """Return whether this process is so near its limit that it should use no memory to be faster later."""
    db = service.db
    spare = db.memory.spare_bytes if isinstance(db, EmbeddedDatabase) else None
    return spare is not None and spare < LEAST_SPARE_BYTES


def do_nothing(service: Service) -> None:
    """Wake the engine's thread, which then continues requests."""


def without_tracebacks(error: KpgError) -> KpgError:
    """Return an error without references to frames: they would keep the request, and its answer, until a collection."""
    chain: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in chain:
        found.__traceback__ = None
        chain.append(found)
        found = found.__cause__ or found.__context__
    return error


def fail(future: Future[Any], reason: KpgError) -> None:
    """Set the exception of a future, unless its caller cancelled it."""
    if future.set_running_or_notify_cancel():
        future.set_exception(reason)


def run_work(request: EngineRequest, service: Service) -> None:
    """Run a function and set the result or exception of its future."""
    future = request.future
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(request.work(service))
        except KpgError as error:
            future.set_exception(without_tracebacks(error))
        except Exception as error:  # a bug: its caller gets an error, and the engine continues
            LOGGER.exception("a request failed", extra={MEMBERS: {"request": request.label}})
            future.set_exception(error)
