"""A db on a thread of its own, used from any thread and from asyncio.

    db = kpg.open(background=True)
    edges = db.input("edges", src=int, dst=int)       # called here, done there; waits for the result
    future = db.submit(lambda db: db.advance())       # does not wait
    await db.aio(lambda db: db.advance())             # waits without blocking the event loop

What the db hands out stays with its thread; callers hold a `Remote` of it, whose methods are calls of the same name on
that thread, one after the other in the order they arrive. Functions given to it (`on_change`, the step of `iterate`,
reducers) run on that thread too: be short there, and hand what takes long to another. Plain values (tables, numbers,
schemas, expressions) cross as they are. A call costs two switches of threads, so insert many rows at a time.

When nothing is asked for, the thread merges and compacts.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from inspect import isfunction
from queue import SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

from kpg.api.capture import Capture
from kpg.api.changes import Changes
from kpg.api.collection import Collection
from kpg.api.contracts import Database, Output, Probe
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.group import Group
from kpg.api.recursion import Recursion
from kpg.api.transactions import TransactionRequest, as_origin
from kpg.api.transactions import perform as perform_together
from kpg.columns.expression import Expression
from kpg.columns.functions import UserFunction, WhenBuilder
from kpg.errors import Closed

Result = TypeVar("Result")
Work = tuple[Callable[[EmbeddedDatabase], Any], "Future[Any]"]

STAYS = (Database, Collection, Output, Probe, Group, Recursion, Changes, Capture)  # with the thread of the db
PLAIN = (type, Expression, UserFunction, WhenBuilder)  # callable or not, they cross as they are


class Owner:
    """The thread that a db belongs to, and the queue of what it is asked to do."""

    def __init__(self, make: Callable[[], EmbeddedDatabase]) -> None:
        self._queue: SimpleQueue[Work | TransactionRequest | None] = SimpleQueue()
        self._next_work: list[Work | TransactionRequest | None] = []  # taken from the queue, but not its turn yet
        self._lock = threading.Lock()
        self._closed = False
        self._db: EmbeddedDatabase
        opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._serve, args=(make, opened), name="kpg", daemon=True)
        self._thread.start()
        opened.result()

    @property
    def here(self) -> bool:
        """Whether the caller is on this thread."""
        return threading.current_thread() is self._thread

    def submit(self, function: Callable[[EmbeddedDatabase], Result]) -> Future[Result]:
        """Have `function(db)` done; on this thread itself, at once."""
        future: Future[Result] = Future()
        if self.here:
            perform(function, self._db, future)
            return future
        with self._lock:
            if self._closed:
                raise Closed("the db is closed")
            self._queue.put((function, future))
        return future

    def close(self) -> None:
        """Close the db after all that was asked for before; may be repeated."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        if not self.here:
            self._thread.join()

    def transact(self, asked: TransactionRequest) -> Future[int]:
        """Have a transaction done, together with others that wait; on this thread itself, at once."""
        if self.here:
            perform_together(self._db, [asked])
            return asked.future
        with self._lock:
            if self._closed:
                raise Closed("the db is closed")
            self._queue.put(asked)
        return asked.future

    def _serve(self, make: Callable[[], EmbeddedDatabase], opened: Future[None]) -> None:
        try:
            self._db = make()
        except BaseException as error:
            opened.set_exception(error)
            return
        opened.set_result(None)
        while (work := self._next()) is not None:
            if isinstance(work, TransactionRequest):
                perform_together(self._db, [work, *self._more_transactions()])
            else:
                perform(work[0], self._db, work[1])
            del work  # not to keep alive, while waiting, what was asked last
        self._db.close()

    def _next(self) -> Work | TransactionRequest | None:
        """What is asked for next; idle work is done while nothing is."""
        if self._next_work:
            return self._next_work.pop()
        while self._queue.empty() and self._db.idle(self._db.merge_policy.idle_fuel):
            pass
        return self._queue.get()

    def _more_transactions(self) -> Iterator[TransactionRequest]:
        """The transactions that wait directly behind the one that was taken."""
        while not self._queue.empty():
            work = self._queue.get()
            if not isinstance(work, TransactionRequest):
                self._next_work.append(work)
                return
            yield work


def perform(function: Callable[[EmbeddedDatabase], Result], db: EmbeddedDatabase, future: Future[Result]) -> None:
    """Call a function, and keep its result or error for whoever asked."""
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(function(db))
        except BaseException as error:
            future.set_exception(error)


class Remote:
    """Something that lives on the thread of a db; its attributes and methods are looked up and called there."""

    def __init__(self, owner: Owner, target: Any) -> None:
        self._owner = owner
        self._target = target

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "_repr_html_":
            raise AttributeError(name)
        if isfunction(getattr(type(self._target), name, None)):  # a method: one call there, not two
            return function_of(self._owner, getattr(self._target, name))
        return self._ask(lambda target: getattr(target, name))

    def _ask(self, function: Callable[[Any], Any]) -> Any:
        """What a function of the target comes to."""
        return self._owner.submit(lambda db: outward(self._owner, function(self._target))).result()

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


class Background(Remote):
    """A db that a thread of its own runs; made by `kpg.open(background=True)`."""

    def __init__(self, make: Callable[[], EmbeddedDatabase]) -> None:
        owner = Owner(make)
        super().__init__(owner, owner._db)

    def submit(self, function: Callable[[EmbeddedDatabase], Result]) -> Future[Result]:
        """Have `function(db)` done on the thread of the db, with the db itself; the result comes with the future."""
        return self._owner.submit(lambda db: outward(self._owner, function(db)))

    def run(self, function: Callable[[EmbeddedDatabase], Result]) -> Result:
        """Have `function(db)` done on the thread of the db, as one piece, and wait for its result."""
        return self.submit(function).result()

    def transact(self, fill: Callable[[EmbeddedDatabase], Any], *, origin: tuple[str, int] | None = None) -> int:
        """Let `fill(db)` insert on the thread of the db, and advance; those that wait together share an epoch."""
        return self._owner.transact(TransactionRequest(fill, as_origin(origin))).result()

    def aio(self, function: Callable[[EmbeddedDatabase], Result]) -> Awaitable[Result]:
        """Have `function(db)` done on the thread of the db; await its result."""
        return asyncio.wrap_future(self.submit(function))

    def close(self) -> None:
        """Finish what was asked for, close the db and end its thread; may be repeated."""
        self._owner.close()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def outward(owner: Owner, value: Any) -> Any:
    """A result as callers may hold it."""
    if isinstance(value, STAYS):
        return Remote(owner, value)
    if isinstance(value, Iterator):
        return [outward(owner, each) for each in value]
    if isinstance(value, dict):
        return {key: outward(owner, each) for key, each in value.items()}
    if is_function(value):
        return function_of(owner, value)
    return value


def inward(owner: Owner, value: Any) -> Any:
    """An argument as the db takes it."""
    if isinstance(value, Remote):
        return value._target
    if isinstance(value, (list, tuple)) and any(isinstance(each, Remote) for each in value):
        return type(value)(inward(owner, each) for each in value)
    if is_function(value):
        return callback_of(owner, value)
    return value


def is_function(value: Any) -> bool:
    """Whether a value is there to be called."""
    return callable(value) and not isinstance(value, (*PLAIN, Mapping))


def function_of(owner: Owner, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the db, to be called from anywhere."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        given = [inward(owner, each) for each in arguments]
        given_named = {name: inward(owner, each) for name, each in named.items()}
        return owner.submit(lambda db: outward(owner, function(*given, **given_named))).result()

    return call


def callback_of(owner: Owner, function: Callable[..., Any]) -> Callable[..., Any]:
    """A caller's function, to be called by the db."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return inward(owner, function(*[outward(owner, each) for each in arguments]))

    return call
