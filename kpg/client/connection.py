"""The connection that waits: `kpg.connect`.

    with kpg.connect("ws://localhost:8340", token=...) as db:
        db.create_relation("edge", {"x": int, "y": int})
        db.register("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).")
        path = db.interest("path")
        db.insert("edge", [(1, 2), (2, 3)])
        path.rows()                         # exact as of now
        for step in path: ...               # each change as it comes

A connection may be used from several threads, one call at a time. When it ends, calls raise Unreachable; connecting
again is up to you, and what was followed is then followed anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from kpg.client import calls
from kpg.client.change_feed import Feed, Followed, Row, Step
from kpg.client.conversation import NOT_YET, Call, Conversation
from kpg.client.end_reasons import ended, unreachable
from kpg.client.server_address import address, token_of, trust
from kpg.errors import Closed, TimeNotReached, UndefinedName
from kpg.protocol.replies import WelcomeReply

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

Given = ParamSpec("Given")
Result = TypeVar("Result")


def waits(function: Callable[Given, Call[Result]]) -> Callable[Concatenate[Connection, Given], Result]:
    """A method that asks and waits for the result."""

    @wraps(function)
    def method(self: Connection, /, *given: Given.args, **named: Given.kwargs) -> Result:
        return self.run(function(*given, **named))

    return method


class Connection:
    """A server, as one client sees it; made by `kpg.connect`."""

    def __init__(self, url: str, socket: ClientConnection, token: str | None) -> None:
        self.url = url
        self._socket = socket
        self._talk = Conversation()
        self._lock = threading.RLock()
        self.welcome: WelcomeReply = self.run(calls.hello(token))

    ping = waits(calls.ping)
    create_relation = waits(calls.create_relation)
    create_attribute = waits(calls.create_attribute)
    transact = waits(calls.transact)
    insert = waits(calls.insert)
    remove = waits(calls.remove)
    register = waits(calls.register)
    unregister = waits(calls.unregister)
    query = waits(calls.query)
    explain = waits(calls.explain)
    catalog = waits(calls.catalog)
    observe = waits(calls.observe)
    advance = waits(calls.advance)
    close_input = waits(calls.close_input)
    sink = waits(calls.sink)
    uninterest = waits(calls.uninterest)
    shutdown = waits(calls.shutdown)

    def interest(
        self,
        name: str,
        *,
        arguments: calls.Arguments | None = None,
        sharing: str = "auto",
        joins: str = "auto",
        granularity: float | None = None,
        log: bool = True,
        credit: int = 8,
    ) -> Subscription:
        """Follow a rule or relation; `credit` steps may come ahead of what is read."""
        made = self.run(
            calls.follow(
                name, arguments=arguments, sharing=sharing, joins=joins, granularity=granularity, log=log, credit=credit
            )
        )
        return Subscription(self, self._talk.feeds[made.interest])

    def run(self, call: Call[Result]) -> Result:
        """Ask, and wait for the result."""
        with self._lock:
            number, text = self._talk.ask(call)
            try:
                self._send(text)
                while (found := self._talk.result(number, call)) is NOT_YET:
                    self._receive(None)
            except BaseException:
                self._talk.give_up(number)
                raise
            return found  # type: ignore[return-value]

    def next_step(self, feed: Feed, timeout: float | None) -> Step:
        """The next step of an answer; wait for it."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while not feed.waiting:
                if feed.ended:
                    raise ended(feed)
                self._receive(None if until is None else max(0.0, until - time.monotonic()))
            return self._read(feed)

    def catch_up(self, feed: Feed) -> None:
        """Read all there is of an answer, up to now."""
        with self._lock:
            self._ask_of(feed, calls.take(feed.interest))
            while feed.waiting:
                self._read(feed)

    def drop(self, feed: Feed) -> None:
        """Follow an answer no longer."""
        with self._lock:
            if self._talk.feeds.get(feed.interest) is feed:
                self._ask_of(feed, calls.uninterest(feed.interest))
                self._talk.drop(feed)
            feed.ended = feed.ended or True

    def _ask_of(self, feed: Feed, call: Call[Any]) -> None:
        """Ask something of an interest, unless it has ended, be it while we ask."""
        if feed.ended:
            return
        try:
            self.run(call)
        except UndefinedName:
            if not feed.ended:
                raise

    def _read(self, feed: Feed) -> Step:
        step = self._talk.read(feed)
        for text in self._talk.outgoing():
            self._send(text)
        return step

    def _send(self, text: str) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            self._socket.send(text)
        except ConnectionClosed as error:
            self._drain()
            raise unreachable(self.url, error) from None

    def _receive(self, timeout: float | None) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            self._talk.receive(self._socket.recv(timeout))
        except TimeoutError:
            raise TimeNotReached("no change came in time", hint="Wait longer, or without a timeout.") from None
        except ConnectionClosed as error:
            raise unreachable(self.url, error) from None

    def _drain(self) -> None:
        """What the server said before it hung up; it may say why."""
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                self._talk.receive(self._socket.recv(0.1))
        except (ConnectionClosed, TimeoutError):
            return

    def close(self) -> None:
        """End the connection; all that was followed ends. May be repeated."""
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({self.url!r})"


class Subscription(Followed):
    """An answer that is followed: iterate for each step, or ask for the rows of now."""

    def __init__(self, connection: Connection, feed: Feed) -> None:
        super().__init__(feed)
        self._connection = connection

    def next(self, timeout: float | None = None) -> Step:
        """The next step; with a timeout in seconds, TimeNotReached if none comes."""
        return self._connection.next_step(self._feed, timeout)

    def __iter__(self) -> Iterator[Step]:
        while True:
            try:
                yield self.next()
            except Closed:
                return

    def add(self, arguments: calls.Arguments) -> None:
        """Ask for more arguments: an update on the server, not a new dataflow."""
        self._connection.run(calls.add_arguments(self.id, arguments))

    def remove(self, arguments: calls.Arguments) -> None:
        """Ask for fewer arguments; the rows that go come as changes."""
        self._connection.run(calls.remove_arguments(self.id, arguments))

    def rows(self) -> list[Row]:
        """The rows of now, each as often as it is there; reads all steps that wait."""
        self._connection.catch_up(self._feed)
        return self._feed.rows()

    def table(self) -> pa.Table:
        """The same as an Arrow table."""
        self._connection.catch_up(self._feed)
        return self._feed.table()

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        return self.table().to_pandas()

    def close(self) -> None:
        """Follow no longer; may be repeated."""
        self._connection.drop(self._feed)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def connect(
    url: str, *, token: str | None = None, timeout: float = 10.0, authorities: str | Path | None = None
) -> Connection:
    """Connect to a server.

    url           ws://host:port, or wss:// if it has a certificate
    token         what the server wants to see; that of KPG_TOKEN if not given
    timeout       seconds to wait for the connection
    authorities   a file of certificates to trust beside none of the system's
    """
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect as open_socket

    place = address(url)
    try:
        socket = open_socket(
            place, ssl=trust(place, authorities), open_timeout=timeout, compression=None, max_size=None,
            max_queue=None, proxy=None,
        ).__enter__()  # fmt: skip  # as a context: releases differ in what a bare call gives
    except (OSError, WebSocketException) as error:
        raise unreachable(url, error) from None
    try:
        return Connection(url, socket, token_of(token))
    except BaseException:
        socket.close()
        raise
