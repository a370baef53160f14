"""How far the answers of a db are complete, and how to wait for them.

    an answer is complete through epoch t  ⇔  nothing at or before t is in flight in it or may still enter it
    sealed                                 =   the last time through which all dataflows were complete

The clock is one, completion is per answer. This is what dbs of one worker and of several have in common; the first
work themselves (kpg.api.embedded_completion), the others learn from their workers (kpg.cluster.cluster_completion).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, wait
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from kpg.algebra.frontier import Frontier
    from kpg.api.contracts import Database
    from kpg.api.waiting_requests import WaitingRequests

WAIT_SLICE_SECONDS = 0.02  # of a caller that waits for an answer: nothing else can happen on its thread


class Completed(Protocol):
    """What completes epochs: a dataflow, or an answer of several workers."""

    first_epoch: int  # that readers may ask for: the last one that was closed when it was installed

    @property
    def dropped(self) -> bool:
        """Whether it has ended."""


Subject = TypeVar("Subject", bound=Completed)


class Completion(ABC, Generic[Subject]):
    """The completion of one db's answers."""

    def __init__(self, db: Database) -> None:
        self.sealed: Frontier | None = None
        self.requests: WaitingRequests | None = None  # if the db serves requests between slices
        self._db = db

    @property
    @abstractmethod
    def lags(self) -> bool:
        """Whether answers may be complete to different times."""

    @property
    @abstractmethod
    def has_work(self) -> bool:
        """Whether a slice has something to do, or a request waits for one."""

    @abstractmethod
    def complete_through(self, subject: Subject) -> int:
        """Return the last epoch that a dataflow has completed; -1 if there is none. For times of one coordinate."""

    @abstractmethod
    def work(self, seconds: float) -> bool:
        """Work for about this long, and pass on the changes of completed times. Return whether work is left."""

    def newest(self, subject: Subject, asked: int = -1) -> int:
        """Return the newest epoch to read; wait for the first answer, and for the last write of the same session.

        `asked` is the epoch of the reader's newest arguments, which another session may have closed. The thread that
        serves requests does not wait for it between two of them.

        A request also waits for the writes of others, but not longer than a moment: the answer may lag.
        """
        last, requests = self._db.epoch - 1, self.requests
        own = asked if requests is None or requests.is_serving else -1
        own = own if requests is None else max(own, requests.last_write)
        self.wait_for(subject, min(last, max(0, subject.first_epoch, own)))
        if requests is not None and requests.is_serving and self.complete_through(subject) < last:
            end = monotonic() + requests.read_wait_seconds
            self.wait_until(lambda: subject.dropped or self.complete_through(subject) >= last or monotonic() >= end)
        return self.complete_through(subject)

    def wait_for(self, subject: Subject, epoch: int) -> None:
        """Wait until a dataflow is complete through an epoch, or has ended."""
        self.wait_until(lambda: subject.dropped or self.complete_through(subject) >= epoch)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Work until a condition holds or nothing is left to do; in a request, let the thread serve others."""
        if self.requests is not None and self.requests.in_request:
            self.requests.wait(condition)
            return
        while not condition() and self.work(WAIT_SLICE_SECONDS):
            pass

    def wait_for_future(self, future: Future[Any]) -> None:
        """Wait for a future that others work on; in a request, let the thread serve others."""
        if self.requests is None:
            wait([future])
        else:
            self.requests.wait_for_future(future)
