"""The asyncio connection: `kpg.connect_async`. It has the methods of the blocking one, as coroutines.

    async with await kpg.connect_async("ws://localhost:8340", token=...) as db:
        t = await db.insert("edge", [(1, 2)])
        async for step in await db.interest("path"): ...

One task reads the socket; any number of tasks may send requests and follow answers at the same time. If the connection
is lost, that task connects again at once and continues the subscriptions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kpg.client.backoff import Backoff
from kpg.client.change_feed import ChangeFeed, Step
from kpg.client.client_methods import ConnectionMethods, SubscriptionMethods
from kpg.client.connection import RECONNECT_SECONDS
from kpg.client.conversation import Call, Conversation
from kpg.client.driven_methods import AwaitingDriver
from kpg.client.end_reasons import is_final, no_change_in_time, unreachable
from kpg.client.procedures import Procedure, Receive, Send, ask, open_session
from kpg.client.server_address import address, token_of, trust
from kpg.errors import Closed, KpgError, Unreachable
from kpg.extras import require
from kpg.protocol.replies import WelcomeReply

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.exceptions import ConnectionClosed

Result = TypeVar("Result")


class AsyncConnection(ConnectionMethods, AwaitingDriver):
    """A client's connection to a server; made by `kpg.connect_async`."""

    welcome: WelcomeReply

    def __init__(
        self,
        url: str,
        open_socket: Callable[[], Awaitable[ClientConnection]],
        token: str | None,
        timeout: float,
        reconnect: float,
    ) -> None:
        self.url = url
        self.conversation = Conversation(resumes=reconnect > 0)
        self._open_socket = open_socket
        self._token = token
        self._timeout_seconds = timeout
        self._reconnect_seconds = reconnect
        self._received = asyncio.Event()
        self._end: KpgError | None = None  # the reason, once it does not connect again
        self._reader: asyncio.Task[None] | None = None

    async def _open(self) -> None:
        """Connect, and read the socket until the connection is closed."""
        await self._connect()
        self._reader = asyncio.create_task(self._serve())

    async def run(self, call: Call[Result]) -> Result:
        """Send the request of a call and wait for its result."""
        return await self.drive(ask(self.conversation, call))

    def subscription(self, feed: ChangeFeed) -> AsyncSubscription:
        """Return the subscription of an answer that is followed."""
        return AsyncSubscription(self, feed)

    async def drive(self, procedure: Procedure[Result]) -> Result:
        """Perform a procedure; other tasks run meanwhile."""
        try:
            return await self._drive(procedure, self._perform)
        finally:
            self._wake()  # a task may wait for changes of an interest that this procedure has ended

    async def _drive(
        self, procedure: Procedure[Result], perform: Callable[[Send | Receive], Awaitable[None]]
    ) -> Result:
        try:
            instruction = next(procedure)
            while True:
                try:
                    await perform(instruction)
                except BaseException as error:
                    instruction = procedure.throw(error)
                else:
                    instruction = next(procedure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def _perform(self, instruction: Send | Receive) -> None:
        """Perform an instruction. If the connection is lost, the task that reads the socket connects again."""
        from websockets.exceptions import ConnectionClosed

        if self._end is not None:
            raise self._end.with_traceback(None)  # it is raised again and again
        if isinstance(instruction, Receive):
            await self._wait(instruction.deadline)
        elif self.conversation.connected:
            with suppress(ConnectionClosed):
                await self._socket.send(instruction.text)

    async def _wait(self, deadline: float | None) -> None:
        """Wait until something arrives."""
        try:
            async with asyncio.timeout(None if deadline is None else max(0.0, deadline - time.monotonic())):
                await self._received.wait()
        except TimeoutError:
            raise no_change_in_time() from None
        if self._end is not None:
            raise self._end.with_traceback(None)  # it is raised again and again

    def _wake(self) -> None:
        """Wake all tasks that wait for something to arrive."""
        self._received.set()
        self._received = asyncio.Event()

    # The task that reads the socket

    async def _serve(self) -> None:
        """Receive messages, over one connection after the other, until the last one has ended."""
        try:
            while True:
                error = await self._read_socket()
                self.conversation.disconnect()
                self._wake()
                if self._reconnect_seconds <= 0 or is_final(error):
                    raise unreachable(self.url, error)
                await self._reconnect()
                self._wake()
        except KpgError as error:
            self.conversation.disconnect()
            self._end = self._end or error
        finally:
            self._wake()

    async def _read_socket(self) -> ConnectionClosed:
        """Receive messages until the connection ends; return the socket's error."""
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                self.conversation.receive(await self._socket.recv())
                self._wake()
        except ConnectionClosed as error:
            return error

    async def _reconnect(self) -> None:
        """Connect again, until it succeeds or the time for it is over."""
        pauses = Backoff(self._reconnect_seconds)
        while True:
            try:
                await self._connect()
                return
            except Unreachable as error:
                await asyncio.sleep(pauses.after(error))

    async def _connect(self) -> None:
        """Open a socket and a session on it; its feeds continue those of the session before."""
        from websockets.exceptions import ConnectionClosed, WebSocketException

        try:
            self._socket = await self._open_socket()
        except (OSError, WebSocketException) as error:
            raise unreachable(self.url, error) from None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                self.welcome = await self._drive(open_session(self.conversation, self._token), self._exchange)
        except BaseException as error:
            self.conversation.disconnect()
            await self._socket.close()
            if isinstance(error, ConnectionClosed | TimeoutError):
                raise unreachable(self.url, error) from None
            raise

    async def _exchange(self, instruction: Send | Receive) -> None:
        """Send a text or receive one; raise the socket's error if the connection has ended."""
        if isinstance(instruction, Send):
            await self._socket.send(instruction.text)
        else:
            self.conversation.receive(await self._socket.recv())
            self._wake()

    async def close(self) -> None:
        """Close the connection and end its interests; may be repeated."""
        self._end = self._end or Unreachable(f"the connection to {self.url} is closed", hint="Connect again.")
        if self._reader is not None:
            self._reader.cancel()
            with suppress(asyncio.CancelledError):
                await self._reader
        await self._socket.close()
        self._wake()

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncConnection({self.url!r})"


class AsyncSubscription(SubscriptionMethods, AwaitingDriver):
    """An answer that a client follows: iterate for each step, or await the current rows."""

    def __init__(self, connection: AsyncConnection, feed: ChangeFeed) -> None:
        super().__init__(connection.conversation, feed)
        self._connection = connection

    async def drive(self, procedure: Procedure[Result]) -> Result:
        """Perform a procedure on the connection."""
        return await self._connection.drive(procedure)

    async def __aiter__(self) -> AsyncIterator[Step]:
        while True:
            try:
                yield await self.next()
            except Closed:
                return


async def connect_async(
    url: str,
    *,
    token: str | None = None,
    timeout: float = 10.0,
    authorities: str | Path | None = None,
    reconnect: float = RECONNECT_SECONDS,
) -> AsyncConnection:
    """Connect to a server; the parameters are those of `kpg.connect`."""
    require("websockets", "kpg.connect_async")
    from websockets.asyncio.client import connect as open_socket

    full = address(url)
    trusted = trust(full, authorities)

    async def open_one() -> ClientConnection:
        return await open_socket(
            full, ssl=trusted, open_timeout=timeout, compression=None, max_size=None, max_queue=None, proxy=None,
        )  # fmt: skip

    connection = AsyncConnection(url, open_one, token_of(token), timeout, reconnect)
    await connection._open()
    return connection
