"""The blocking connection: `kpg.connect`.

    with kpg.connect("ws://localhost:8340", token=...) as db:
        db.create_relation("edge", {"x": int, "y": int})
        db.register("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).")
        path = db.interest("path")
        db.insert("edge", [(1, 2), (2, 3)])
        path.rows()                         # exact as of now
        for step in path: ...               # each change as it arrives

Several threads may use a connection, one call at a time. If it is lost, the next call, or the one that waits, connects
again and continues the subscriptions: no change is lost or repeated. A request whose reply was lost is sent again if it
is repeatable (reads, and transactions with an origin); otherwise it raises `Unreachable`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from kpg.client.backoff import Backoff
from kpg.client.change_feed import ChangeFeed, Step
from kpg.client.client_methods import ConnectionMethods, SubscriptionMethods
from kpg.client.conversation import Call, Conversation
from kpg.client.driven_methods import BlockingDriver
from kpg.client.end_reasons import is_final, no_change_in_time, unreachable
from kpg.client.procedures import Procedure, Receive, Send, ask, open_session, within
from kpg.client.server_address import address, token_of, trust
from kpg.errors import Closed, KpgError, TimeNotReached, Unreachable
from kpg.extras import require
from kpg.html_table import caption, table
from kpg.protocol.replies import WelcomeReply

if TYPE_CHECKING:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import ClientConnection

Result = TypeVar("Result")
RECONNECT_SECONDS = 60.0  # as long as a server holds interests by default
CLOSE_READ_SECONDS = 0.1  # to read messages that the server sent before it closed the connection


class Connection(ConnectionMethods, BlockingDriver):
    """A client's connection to a server; made by `kpg.connect`."""

    welcome: WelcomeReply

    def __init__(
        self, url: str, open_socket: Callable[[], ClientConnection], token: str | None, timeout: float, reconnect: float
    ) -> None:
        self.url = url
        self.conversation = Conversation(resumes=reconnect > 0)
        self._open_socket = open_socket
        self._token = token
        self._timeout_seconds = timeout
        self._reconnect_seconds = reconnect
        self._end: KpgError | None = None  # the reason, once it does not connect again
        self._lock = threading.RLock()
        self._connect()

    def run(self, call: Call[Result]) -> Result:
        """Send the request of a call and wait for its result."""
        return self.drive(ask(self.conversation, call))

    def subscription(self, feed: ChangeFeed) -> Subscription:
        """Return the subscription of an answer that is followed."""
        return Subscription(self, feed)

    def drive(self, procedure: Procedure[Result]) -> Result:
        """Perform a procedure; other threads wait meanwhile."""
        with self._lock:
            self._notice_loss()
            return self._drive(procedure, self._perform)

    def _drive(self, procedure: Procedure[Result], perform: Callable[[Send | Receive], None]) -> Result:
        try:
            instruction = next(procedure)
            while True:
                try:
                    perform(instruction)
                except BaseException as error:
                    instruction = procedure.throw(error)
                else:
                    instruction = next(procedure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _perform(self, instruction: Send | Receive) -> None:
        """Perform an instruction. Without a connection, one that waits connects again."""
        from websockets.exceptions import ConnectionClosed

        if self.conversation.connected:
            try:
                self._exchange(instruction)
            except ConnectionClosed as error:
                self._lose(error, drain=isinstance(instruction, Send))
        elif isinstance(instruction, Receive):
            self._reconnect(instruction.deadline)

    def _exchange(self, instruction: Send | Receive) -> None:
        """Send a text or receive one; raise the socket's error if the connection has ended."""
        if isinstance(instruction, Send):
            self._socket.send(instruction.text)
            return
        deadline = instruction.deadline
        try:
            text = self._socket.recv(None if deadline is None else max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise no_change_in_time() from None
        self.conversation.receive(text)

    # Connections that are lost

    def _connect(self) -> None:
        """Open a socket and a session on it; its feeds continue those of the session before."""
        from websockets.exceptions import ConnectionClosed, WebSocketException

        try:
            self._socket = self._open_socket()
        except (OSError, WebSocketException) as error:
            raise unreachable(self.url, error) from None
        deadline = time.monotonic() + self._timeout_seconds
        try:
            self.welcome = self._drive(
                open_session(self.conversation, self._token), lambda step: self._exchange(within(step, deadline))
            )
        except BaseException as error:
            self.conversation.disconnect()
            self._socket.close()
            if isinstance(error, ConnectionClosed | TimeNotReached):
                raise unreachable(self.url, error) from None
            raise

    def _notice_loss(self) -> None:
        """Record the loss of a connection that has ended since the last call: nothing is sent over it in vain."""
        from websockets.protocol import State

        if self.conversation.connected and self._end is None and self._socket.protocol.state is State.CLOSED:
            self._lose(self._socket.protocol.close_exc, drain=True)

    def _lose(self, error: ConnectionClosed, drain: bool) -> None:
        """Record that the connection has ended; raise if the client cannot connect again."""
        try:
            if drain:
                self._receive_remaining()
        finally:
            self.conversation.disconnect()
            if self._reconnect_seconds <= 0 or is_final(error):
                self._end = self._end or unreachable(self.url, error)
        if self._end is not None:
            raise self._end.with_traceback(None)  # it is raised again and again

    def _reconnect(self, deadline: float | None) -> None:
        """Connect again, until it succeeds, the deadline passes, or the time for it is over."""
        pauses = Backoff(self._reconnect_seconds)
        while self._end is None:
            try:
                self._connect()
                return
            except Unreachable as error:
                pause = pauses.after(error)
            if deadline is not None and time.monotonic() + pause >= deadline:
                raise no_change_in_time() from None
            time.sleep(pause)
        raise self._end.with_traceback(None)  # it is raised again and again

    def _receive_remaining(self) -> None:
        """Receive the messages that the server sent before it closed the connection; one may give the reason."""
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                self.conversation.receive(self._socket.recv(CLOSE_READ_SECONDS))
        except (ConnectionClosed, TimeoutError):
            return

    def close(self) -> None:
        """Close the connection and end its interests; may be repeated."""
        self._end = self._end or Unreachable(f"the connection to {self.url} is closed", hint="Connect again.")
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _repr_html_(self) -> str:
        rows = [
            (relation.role, relation.name, ", ".join(f"{column.name}: {column.type}" for column in relation.columns))
            for relation in self.catalog()
        ]
        return caption(f"{self.url}, complete to {self.ping()}") + table(("", "name", "columns"), rows)

    def __repr__(self) -> str:
        return f"Connection({self.url!r})"


class Subscription(SubscriptionMethods, BlockingDriver):
    """An answer that a client follows: iterate for each step, or ask for the current rows."""

    def __init__(self, connection: Connection, feed: ChangeFeed) -> None:
        super().__init__(connection.conversation, feed)
        self._connection = connection

    def drive(self, procedure: Procedure[Result]) -> Result:
        """Perform a procedure on the connection."""
        return self._connection.drive(procedure)

    def live(self, rows: int = 20, *, interval: float = 0.1) -> Any:
        """Return a table of the first rows that a notebook keeps up to date. It reads the steps."""
        return import_module("kpg.notebook.live_table").live_table(self, rows, interval)

    def __iter__(self) -> Iterator[Step]:
        while True:
            try:
                yield self.next()
            except Closed:
                return

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def connect(
    url: str,
    *,
    token: str | None = None,
    timeout: float = 10.0,
    authorities: str | Path | None = None,
    reconnect: float = RECONNECT_SECONDS,
) -> Connection:
    """Connect to a server.

    url           ws://host:port, or wss:// if it has a certificate
    token         the token that the server demands; that of KPG_TOKEN if not given
    timeout       seconds to wait for the connection
    authorities   a file of certificates to trust, instead of the system's
    reconnect     seconds for which a call tries to connect again after the connection was lost; 0 for not at all
    """
    require("websockets", "kpg.connect")
    from websockets.sync.client import connect as open_socket

    full = address(url)
    trusted = trust(full, authorities)

    def open_one() -> ClientConnection:
        return open_socket(
            full, ssl=trusted, open_timeout=timeout, compression=None, max_size=None, max_queue=None, proxy=None,
        ).__enter__()  # fmt: skip  # as a context: releases of websockets differ in what a bare call returns

    return Connection(url, open_one, token_of(token), timeout, reconnect)
