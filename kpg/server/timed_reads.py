"""Reads as of times that are not complete: each runs when its time is closed, or fails at its deadline.

    reads.add(moment, deadline, request)    the request waits for a time
    reads.take_runnable(open_time)          those whose time is closed, and whose client can take rows
    reads.take_late(now)                    those that have passed their deadline
    reads.remove(matches)                   those that end for another reason
    reads.first_moment                      the earliest time that one waits for, or runs at

Until a read is finished, the db keeps the history from its time on (`AwaitedHistory`): others may close later times
before its answer is complete. A read whose client takes no rows keeps none.

A client that sends many such reads and reads no reply holds its budget and one reply beyond it, as with other reads: of
one client, the next read runs when the one before is finished and the budget is not full. Its deadline is over then.
Used on the engine's thread only. Cost: a heap operation for each read, and a pass over those that wait for a client.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from kpg.api.temporary_readers import TEMPORARY
from kpg.errors import TimeTooEarly
from kpg.server.flow_control import SendBudget
from kpg.service import Service

HOLDER: Final = "reads of a server"
MAX_MORE_EPOCHS: Final = 64  # that are kept although nothing reads them: a change costs a request to all workers


class EngineRequest(NamedTuple):
    """A function of the service, the future of its result, the session that asks for it, and its id in the log."""

    work: Callable[[Service], Any]
    future: Future[Any]
    session: Hashable
    label: str = ""


class TimedRead(NamedTuple):
    """A request that waits for a time until a deadline; ordered by the time, then by arrival."""

    moment: int
    order: int
    deadline: float
    request: EngineRequest


class AwaitedHistory:
    """Keeps the history of a db from the earliest time on that reads wait for, or run at."""

    def __init__(self) -> None:
        self._from: int | None = None  # the time that was asked for last

    def is_due(self, moment: int | None) -> bool:
        """Return whether another time is to be kept: an earlier one, a much later one, or none."""
        if moment is None or self._from is None:
            return moment is not self._from
        return moment < self._from or moment > self._from + MAX_MORE_EPOCHS

    def keep(self, service: Service, moment: int | None) -> None:
        """Keep the history from a time on; None to keep none."""
        if moment is None:
            self._from = None
            service.db.drop_reader(TEMPORARY + HOLDER)
        else:
            self._from = moment
            try:
                service.db.set_reader(TEMPORARY + HOLDER, moment)
            except TimeTooEarly:  # the read at that time will fail; others are at later times
                service.db.set_reader(TEMPORARY + HOLDER, service.time)


class TimedReads:
    """The reads that wait for a time, and those whose time is closed but whose client takes no more rows yet."""

    def __init__(self, budget_of: Callable[[Any], SendBudget | None]) -> None:
        self._budget_of = budget_of  # by session; None if its rows are not counted
        self._order = itertools.count()
        self._waiting: list[TimedRead] = []  # a heap
        self._due: list[TimedRead] = []
        self._running: dict[Hashable, Future[Any]] = {}  # by session with a budget: its read that ran last
        self._unfinished: list[TimedRead] = []  # those that run, or have just ended

    def add(self, moment: int, deadline: float, request: EngineRequest) -> None:
        """Add a request that waits until a time is closed."""
        heapq.heappush(self._waiting, TimedRead(moment, next(self._order), deadline, request))

    @property
    def deadlines(self) -> list[float]:
        """The deadlines of the reads that wait for a time."""
        return [read.deadline for read in self._waiting]

    def has_runnable(self) -> bool:
        """Return whether a read whose time is closed can run now."""
        return any(self._can_run(read.request) for read in self._due)

    @property
    def first_moment(self) -> int | None:
        """The earliest time that a read waits for or runs at; None if there is none."""
        self._unfinished = [read for read in self._unfinished if not read.request.future.done()]
        return min((read.moment for read in (*self._waiting[:1], *self._unfinished)), default=None)

    def take_runnable(self, open_time: int) -> list[EngineRequest]:
        """Remove and return the reads at earlier times than the open one that can run now."""
        while self._waiting and self._waiting[0].moment < open_time:
            self._due.append(heapq.heappop(self._waiting))
        runnable, rest = [], []
        for read in self._due:
            if self._can_run(read.request):
                runnable.append(read)
                if self._budget_of(read.request.session) is not None:
                    self._running[read.request.session] = read.request.future
            else:
                rest.append(read)
        self._due = rest
        self._unfinished += runnable
        return [read.request for read in runnable]

    def _can_run(self, request: EngineRequest) -> bool:
        budget, running = self._budget_of(request.session), self._running.get(request.session)
        return budget is None or not (budget.is_full or (running is not None and not running.done()))

    def take_late(self, now: float) -> list[TimedRead]:
        """Remove and return the reads whose time has not come before their deadline."""
        late = [read for read in self._waiting if read.deadline <= now]
        if late:
            self._waiting = [read for read in self._waiting if read.deadline > now]
            heapq.heapify(self._waiting)
        return late

    def remove(self, matches: Callable[[EngineRequest], bool]) -> list[EngineRequest]:
        """Remove and return the reads that match."""
        removed = [read.request for read in (*self._waiting, *self._due) if matches(read.request)]
        self._waiting = [read for read in self._waiting if not matches(read.request)]
        heapq.heapify(self._waiting)
        self._due = [read for read in self._due if not matches(read.request)]
        return removed

    def forget(self, session: Hashable) -> None:
        """Drop the state of a session that has ended."""
        self._running.pop(session, None)
