"""The service on a thread of its own, and who may be given changes.

    future = engine.run(lambda service: ...)     done there, in the order asked
    engine.allow(interest)                       when it has changes, take them once and hand them to `deliver`

What is asked in a burst is done before changes are taken, up to BURST pieces of work, so that a burst of transactions
is one consolidated step for those who follow. A piece of work that fails fails alone. When nothing is asked for, the
thread merges and compacts.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from kpg.errors import Closed, KpgError, TimeNotReached
from kpg.server.change_payload import BURST, ChangePayload, take
from kpg.service import Interest, Service

Result = TypeVar("Result")
Work = Callable[[Service], Any]

NEVER: Final = 3600.0
LOGGER = logging.getLogger("kpg.server")


class EngineThread:
    """The thread that owns a service."""

    def __init__(self, make: Callable[[], Service], deliver: Callable[[list[ChangePayload]], None]) -> None:
        self._queue: SimpleQueue[tuple[Work, Future[Any]] | None] = SimpleQueue()
        self._deliver = deliver
        self._willing: dict[int, Interest] = {}
        self._failed: set[int] = set()  # interests whose client knows that there is no answer
        self._told: set[int] = set()  # interests whose client has had something
        self._parked: list[tuple[int, int, float, Work, Future[Any]]] = []
        self._order = itertools.count()
        self._lock = threading.Lock()
        self._closed = False
        opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._serve, args=(make, opened), name="kpg-engine", daemon=True)
        self._thread.start()
        opened.result()

    # From any thread

    def run(self, work: Callable[[Service], Result]) -> Future[Result]:
        """Have something done with the service."""
        future: Future[Result] = Future()
        with self._lock:
            if self._closed:
                raise Closed("the server ends")
            self._queue.put((work, future))
        return future

    def run_at(self, moment: int, seconds: float, work: Callable[[Service], Result]) -> Future[Result]:
        """Have something done as soon as a time is complete, or fail when that takes too long."""
        future: Future[Result] = Future()
        until = time.monotonic() + seconds
        entry = (moment, next(self._order), until, work, future)
        self.run(lambda service: heapq.heappush(self._parked, entry))
        return future

    def allow(self, interest: Interest) -> None:
        """Take this interest's changes, once, when there are any."""
        self.run(lambda service: self._allow(interest))

    def close(self) -> None:
        """Do what was asked for, close the service and end the thread; may be repeated."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    # On the thread

    def _allow(self, interest: Interest) -> None:
        if not interest.ended:  # else it ended while this was on its way
            self._willing[interest.id] = interest

    def forget(self, interest: int) -> None:
        """An interest has ended; called on the engine's thread."""
        self._willing.pop(interest, None)
        self._failed.discard(interest)
        self._told.discard(interest)

    def _serve(self, make: Callable[[], Service], opened: Future[None]) -> None:
        try:
            service = make()
        except BaseException as error:
            opened.set_exception(error)
            return
        opened.set_result(None)
        going = True
        while going:
            going = self._burst(service)
            self._unpark(service)
            self._hand_out()
        for *_, future in self._parked:
            give_up(future, Closed("the server ends"))
        service.close()
        service.db.close()

    def _burst(self, service: Service) -> bool:
        """Do some of what is asked; False at the end."""
        for count in range(BURST):
            try:
                work = self._queue.get_nowait() if count else self._wait(service)
            except Empty:
                return True
            if work is None:
                return False
            perform(work[0], service, work[1])
        return True

    def _wait(self, service: Service) -> tuple[Work, Future[Any]] | None:
        """What is asked next; idle work is done while nothing is."""
        while self._queue.empty() and service.db.idle(service.db.merge_policy.idle_fuel):
            pass
        return self._queue.get(timeout=self._patience())

    def _patience(self) -> float:
        """How long to sleep at most: until something parked or delayed is due."""
        now = time.monotonic()
        waits = [until - now for _, _, until, *_ in self._parked]
        dues = (each.due_in for number, each in self._willing.items() if number not in self._failed)
        return max(0.0, min([*waits, *(due for due in dues if due is not None)], default=NEVER))

    def _unpark(self, service: Service) -> None:
        """Do what waited for a time that is complete now; give up on what waited too long."""
        while self._parked and self._parked[0][0] < service.time:
            _, _, _, work, future = heapq.heappop(self._parked)
            perform(work, service, future)
        now = time.monotonic()
        late = [entry for entry in self._parked if entry[2] <= now]
        if late:
            self._parked = [entry for entry in self._parked if entry[2] > now]
            heapq.heapify(self._parked)
        for moment, *_, future in late:
            detail = f"The open time is {service.time}."
            give_up(future, TimeNotReached(f"time {moment} did not come", detail=detail, hint="Ask again later."))

    def _hand_out(self) -> None:
        """Take from all who are willing and have something new."""
        ready = [each for each in self._willing.values() if self._has_news(each)]
        if not ready:
            return
        parcels = []
        for interest in ready:
            del self._willing[interest.id]
            parcels.append(self.take(interest))
        self._deliver(parcels)

    def take(self, interest: Interest) -> ChangePayload:
        """What waits of an interest, and remember what its client knows; called on the engine's thread.

        Changes that are held back for the next full interval come along, so that `upto` is true.
        """
        interest.release_delayed()
        parcel = take(interest)
        self._told.add(interest.id)
        (self._failed.discard if parcel.failed is None else self._failed.add)(interest.id)
        return parcel

    def _has_news(self, interest: Interest) -> bool:
        """Rows, the first word, or a failure that came or went."""
        if interest.ended:
            return False
        failed = interest.error is not None
        known = interest.id in self._failed
        return interest.id not in self._told or failed != known or (interest.waiting > 0 and not failed)


def give_up(future: Future[Any], reason: KpgError) -> None:
    """Tell whoever asked that it will not be done, unless they have gone."""
    if future.set_running_or_notify_cancel():
        future.set_exception(reason)


def perform(work: Work, service: Service, future: Future[Any]) -> None:
    """Do a piece of work, and keep its result or error for whoever asked."""
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(work(service))
        except KpgError as error:
            future.set_exception(error)
        except Exception as error:  # a bug: whoever asked is told, and the engine goes on
            LOGGER.exception("a request failed")
            future.set_exception(error)
