"""A db on a thread of its own, used from any thread and from asyncio.

    db = kpg.open(background=True)
    edges = db.input("edges", src=int, dst=int)       # runs on the db's thread; waits for the result
    future = db.submit(lambda db: db.advance())       # does not wait
    await db.aio(lambda db: db.advance())             # waits without blocking the event loop

Objects of the db stay on its thread. A caller holds a `Remote` of each, and its methods run on that thread, in the
order of arrival. A method that waits for an answer lets others run meanwhile, and so does long work, which is done in
slices of SLICE_SECONDS. Functions given to `submit`, `run`, `aio` and `transact` run without interruption. Functions
that are passed in (`on_change`, the step of `iterate`, reducers) run on that thread too: they should be short, and hand
long work to another thread. Plain values (tables, numbers, schemas, expressions) cross as they are. A call costs two
thread switches, so insert many rows at a time.

While no call comes for some milliseconds, the thread merges and compacts traces.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import types
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from inspect import isfunction
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from kpg.api.capture import Capture
from kpg.api.changes import Changes
from kpg.api.collection import Collection
from kpg.api.contracts import Database, Probe, Releasable
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.exit_order import end_at_exit
from kpg.api.group import Group
from kpg.api.ordered_read import OrderedRead
from kpg.api.recursion import Recursion
from kpg.api.transactions import TransactionRequest, as_origin
from kpg.api.transactions import perform as perform_together
from kpg.api.uncopyable import Uncopyable
from kpg.api.waiting_requests import WaitingRequests
from kpg.columns.expression import Expression
from kpg.columns.functions import UserFunction, WhenBuilder
from kpg.errors import Closed

Result = TypeVar("Result")
LOGGER = logging.getLogger("kpg")
SLICE_SECONDS = 0.002  # of work between two calls
IDLE_DELAY_SECONDS = 0.002  # without a call before idle work begins: a client that calls often does not wait for it


@dataclass(frozen=True, slots=True, eq=False)
class OwnerCall:
    """A call for the thread of a db: a function, the future of its result, and the thread that waits for it."""

    function: Callable[[EmbeddedDatabase], Any]
    future: Future[Any]
    session: int
    interruptible: bool


class NoCall:
    """Stands for the absence of a call: the db is busy, or a call can continue."""


NO_CALL = NoCall()

THREAD_BOUND = (
    Database,
    Collection,
    Probe,
    Releasable,
    Group,
    Recursion,
    Changes,
    Capture,
    OrderedRead,
)  # stay on the db's thread
CALLER_METHODS = ("live",)  # run on the caller's thread, on the proxy: they read the answer from threads of their own
PLAIN = (type, Expression, UserFunction, WhenBuilder)  # cross as they are, although some are callable


class OwnerThread:
    """The thread that owns a db, and the queue of calls to execute there."""

    def __init__(self, make: Callable[[], EmbeddedDatabase]) -> None:
        self._queue: SimpleQueue[OwnerCall | TransactionRequest | NoCall | None] = SimpleQueue()
        self._next_work: list[
            OwnerCall | TransactionRequest | NoCall | None
        ] = []  # at most one: a call that `_more_transactions` took from the queue
        self._lock = threading.Lock()
        self._closed = False
        self._requests = WaitingRequests(lambda: self._queue.put(NO_CALL), lambda: not self._queue.empty())
        self._db: EmbeddedDatabase
        opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._serve, args=(make, opened), name="kpg", daemon=True)
        self._thread.start()
        opened.result()
        end_at_exit(self.close)

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on this thread."""
        return threading.current_thread() is self._thread

    def submit(self, function: Callable[[EmbeddedDatabase], Result], interruptible: bool = False) -> Future[Result]:
        """Queue `function(db)`; called on this thread itself, execute it immediately.

        An interruptible function lets others run while it waits for an answer.
        """
        future: Future[Result] = Future()
        if self.is_current:
            perform(function, self._db, future)
            return future
        with self._lock:
            if self._closed:
                raise Closed("the db is closed")
            self._queue.put(OwnerCall(function, future, threading.get_ident(), interruptible))
        return future

    def close(self, timeout_seconds: float | None = None) -> None:
        """Close the db after all queued calls, and wait for that; may be repeated."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        if not self.is_current:
            self._thread.join(timeout_seconds)

    def transact(self, transaction: TransactionRequest) -> Future[int]:
        """Queue a transaction, to execute with others that wait; called on this thread itself, execute it now."""
        transaction.session = threading.get_ident()
        if self.is_current:
            perform_together(self._db, [transaction])
            return transaction.future
        with self._lock:
            if self._closed:
                raise Closed("the db is closed")
            self._queue.put(transaction)
        return transaction.future

    def _serve(self, make: Callable[[], EmbeddedDatabase], opened: Future[None]) -> None:
        try:
            self._db = make()
        except BaseException as error:
            opened.set_exception(error)
            return
        self._db.serve_requests(self._requests)
        opened.set_result(None)
        while (work := self._next()) is not None:
            if isinstance(work, TransactionRequest):
                perform_together(self._db, [work, *self._more_transactions()])
            elif isinstance(work, OwnerCall):
                call = functools.partial(perform, work.function, self._db, work.future)
                self._requests.start(call, work.session, work.interruptible)
                del call
            del work  # else the last call's objects would live until the next call
            self._work()
        while self._requests:  # calls that were queued before the end
            self._work()
        self._requests.cancel_all(Closed("the db is closed"))
        self._db.close()

    def _work(self) -> None:
        """Work for a slice if there is something to do, and continue calls that waited for it."""
        busy = self._run_slice()
        self._requests.resume(idle=not busy)

    def _run_slice(self) -> bool:
        """Work for a slice, and return whether work is left. What fails there must not end the thread."""
        try:
            with self._requests.during_slice():
                return self._db.completion.has_work and self._db.completion.work(SLICE_SECONDS)
        except Exception:  # of a function of the user, or a defect, which ends its dataflow
            LOGGER.exception("work beside the calls of a db failed")
            return True

    def _next(self) -> OwnerCall | TransactionRequest | NoCall | None:
        """Return the next call; if none waits, NO_CALL while the db is busy, else wait for one and do idle work."""
        if self._next_work:
            return self._next_work.pop()
        if self._db.completion.has_work:
            return NO_CALL if self._queue.empty() else self._queue.get()
        with suppress(Empty):
            return self._queue.get(timeout=IDLE_DELAY_SECONDS)
        while self._queue.empty() and self._db.idle(self._db.merge_policy.idle_fuel):
            if self._db.worker.is_busy:
                return NO_CALL  # slices continue what takes long
        return self._queue.get()

    def _more_transactions(self) -> Iterator[TransactionRequest]:
        """Yield the transactions that wait directly behind the one that was taken."""
        while not self._queue.empty():
            work = self._queue.get()
            if not isinstance(work, TransactionRequest):
                self._next_work.append(work)
                return
            yield work


def perform(function: Callable[[EmbeddedDatabase], Result], db: EmbeddedDatabase, future: Future[Result]) -> None:
    """Call a function, and resolve the future with its result or error."""
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(function(db))
        except BaseException as error:
            future.set_exception(error)


class Remote(Uncopyable):
    """A proxy of an object on the thread of a db; attributes are looked up, and methods called, on that thread."""

    def __init__(self, owner: OwnerThread, target: Any) -> None:
        self._owner = owner
        self._target = target

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "_repr_html_":
            raise AttributeError(name)
        if name in CALLER_METHODS and hasattr(type(self._target), name):
            return types.MethodType(getattr(type(self._target), name), self)
        if isfunction(getattr(type(self._target), name, None)):  # a method: one switch of threads instead of two
            return function_of(self._owner, getattr(self._target, name))
        return self._ask(lambda target: getattr(target, name))

    def _ask(self, function: Callable[[Any], Any]) -> Any:
        """Return the result of a function of the target."""
        return self._owner.submit(lambda db: outward(self._owner, function(self._target)), True).result()

    def __getitem__(self, key: Any) -> Any:
        return self._ask(lambda target: target[key])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._ask(list))

    def __len__(self) -> int:
        return int(self._ask(len))

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Remote({self._ask(repr)})"

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ask(lambda target: target.__exit__(kind, error, at))


# A type checker sees the whole contract of a db: the proxy has all of it, and so have the proxies that it returns.
if TYPE_CHECKING:
    RemoteDatabase = Database
else:
    RemoteDatabase = Remote


class Background(RemoteDatabase):
    """A db on a thread of its own; `kpg.open(background=True)` returns one."""

    _owner: OwnerThread

    def __init__(self, make: Callable[[], EmbeddedDatabase]) -> None:
        self._owner = OwnerThread(make)
        self._target = self._owner._db

    def submit(self, function: Callable[[EmbeddedDatabase], Result]) -> Future[Result]:
        """Queue `function(db)` for the thread of the db, and return the future of its result."""
        return self._owner.submit(lambda db: outward(self._owner, function(db)))

    def run(self, function: Callable[[EmbeddedDatabase], Result]) -> Result:
        """Call `function(db)` on the thread of the db, uninterrupted by other calls, and return its result."""
        return self.submit(function).result()

    def transact(self, fill: Callable[[EmbeddedDatabase], Any], *, origin: tuple[str, int] | None = None) -> int:
        """Call `fill(db)`, which inserts, on the thread of the db, and advance; waiting transactions share an epoch."""
        return self._owner.transact(TransactionRequest(fill, as_origin(origin))).result()

    def aio(self, function: Callable[[EmbeddedDatabase], Result]) -> Awaitable[Result]:
        """Call `function(db)` on the thread of the db; return an awaitable of its result."""
        return asyncio.wrap_future(self.submit(function))

    def close(self) -> None:
        """Execute all queued calls, close the db and end its thread; may be repeated."""
        self._owner.close()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def outward(owner: OwnerThread, value: Any) -> Any:
    """Return a result for callers on other threads: objects of the db become proxies."""
    if isinstance(value, THREAD_BOUND):
        return Remote(owner, value)
    if isinstance(value, Iterator):
        return [outward(owner, element) for element in value]
    if isinstance(value, Mapping):
        return {key: outward(owner, element) for key, element in value.items()}
    if is_function(value):
        return function_of(owner, value)
    return value


def inward(owner: OwnerThread, value: Any) -> Any:
    """Return an argument for the db: proxies become its own objects."""
    if isinstance(value, Remote):
        return value._target
    if isinstance(value, (list, tuple)) and any(isinstance(element, Remote) for element in value):
        return type(value)(inward(owner, element) for element in value)
    if is_function(value):
        return callback_of(owner, value)
    return value


def is_function(value: Any) -> bool:
    """Return whether a value is a function to call, and not a value that happens to be callable."""
    return callable(value) and not isinstance(value, (*PLAIN, Mapping))


def function_of(owner: OwnerThread, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the db that any thread may call."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        positional = [inward(owner, argument) for argument in arguments]
        keywords = {name: inward(owner, argument) for name, argument in named.items()}
        return owner.submit(lambda db: outward(owner, function(*positional, **keywords)), True).result()

    return call


def callback_of(owner: OwnerThread, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a caller's function that the db may call."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return inward(owner, function(*[outward(owner, argument) for argument in arguments]))

    return call
