"""The blocking connection: `kpg.connect`.

    with kpg.connect("ws://localhost:8340", token=...) as db:
        db.create_relation("edge", {"x": int, "y": int})
        db.register("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).")
        path = db.interest("path")
        db.insert("edge", [(1, 2), (2, 3)])
        path.rows()                         # exact as of now
        for step in path: ...               # each change as it arrives

Several threads may use a connection, one call at a time. When it ends, calls raise Unreachable. It does not reconnect:
the caller must connect again and request its interests again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kpg.client import calls
from kpg.client.change_feed import ChangeFeed, Step
from kpg.client.client_methods import ConnectionMethods, SubscriptionMethods
from kpg.client.conversation import Call, Conversation
from kpg.client.driven_methods import BlockingDriver
from kpg.client.end_reasons import unreachable
from kpg.client.procedures import Procedure, Receive, Send, ask
from kpg.client.server_address import address, token_of, trust
from kpg.errors import Closed, TimeNotReached
from kpg.extras import require
from kpg.protocol.replies import WelcomeReply

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

Result = TypeVar("Result")
CLOSE_READ_SECONDS = 0.1  # to read messages that the server sent before it closed the connection


class Connection(ConnectionMethods, BlockingDriver):
    """A client's connection to a server; made by `kpg.connect`."""

    def __init__(self, url: str, socket: ClientConnection, token: str | None) -> None:
        self.url = url
        self.conversation = Conversation()
        self._socket = socket
        self._lock = threading.RLock()
        self.welcome: WelcomeReply = self.run(calls.hello(token))

    def run(self, call: Call[Result]) -> Result:
        """Send the request of a call and wait for its result."""
        return self.drive(ask(self.conversation, call))

    def subscription(self, feed: ChangeFeed) -> Subscription:
        """Return the subscription of an answer that is followed."""
        return Subscription(self, feed)

    def drive(self, procedure: Procedure[Result]) -> Result:
        """Perform a procedure; other threads wait meanwhile."""
        with self._lock:
            try:
                instruction = next(procedure)
                while True:
                    try:
                        self._perform(instruction)
                    except BaseException as error:
                        instruction = procedure.throw(error)
                    else:
                        instruction = next(procedure)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    def _perform(self, instruction: Send | Receive) -> None:
        if isinstance(instruction, Send):
            self._send(instruction.text)
        else:
            deadline = instruction.deadline
            self._receive(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _send(self, text: str) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            self._socket.send(text)
        except ConnectionClosed as error:
            self._receive_remaining()
            raise unreachable(self.url, error) from None

    def _receive(self, timeout: float | None) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            self.conversation.receive(self._socket.recv(timeout))
        except TimeoutError:
            raise TimeNotReached("no change came in time", hint="Wait longer, or without a timeout.") from None
        except ConnectionClosed as error:
            raise unreachable(self.url, error) from None

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
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

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
    url: str, *, token: str | None = None, timeout: float = 10.0, authorities: str | Path | None = None
) -> Connection:
    """Connect to a server.

    url           ws://host:port, or wss:// if it has a certificate
    token         the token that the server demands; that of KPG_TOKEN if not given
    timeout       seconds to wait for the connection
    authorities   a file of certificates to trust, instead of the system's
    """
    require("websockets", "kpg.connect")
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect as open_socket

    full = address(url)
    try:
        socket = open_socket(
            full, ssl=trust(full, authorities), open_timeout=timeout, compression=None, max_size=None,
            max_queue=None, proxy=None,
        ).__enter__()  # fmt: skip  # as a context: releases of websockets differ in what a bare call returns
    except (OSError, WebSocketException) as error:
        raise unreachable(url, error) from None
    try:
        return Connection(url, socket, token_of(token))
    except BaseException:
        socket.close()
        raise
