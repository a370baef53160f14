"""The asyncio connection: `kpg.connect_async`. It has the methods of the blocking one, as coroutines.

    async with await kpg.connect_async("ws://localhost:8340", token=...) as db:
        t = await db.insert("edge", [(1, 2)])
        async for step in await db.interest("path"): ...

One task reads the socket; any number of tasks may send requests and follow answers at the same time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kpg.client import calls
from kpg.client.change_feed import ChangeFeed, Step
from kpg.client.client_methods import ConnectionMethods, SubscriptionMethods
from kpg.client.conversation import Call, Conversation
from kpg.client.driven_methods import AwaitingDriver
from kpg.client.end_reasons import unreachable
from kpg.client.procedures import Procedure, Receive, Send, ask
from kpg.client.server_address import address, token_of, trust
from kpg.errors import Closed, KpgError, TimeNotReached
from kpg.extras import require
from kpg.protocol.replies import WelcomeReply

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

Result = TypeVar("Result")


class AsyncConnection(ConnectionMethods, AwaitingDriver):
    """A client's connection to a server; made by `kpg.connect_async`."""

    welcome: WelcomeReply

    def __init__(self, url: str, socket: ClientConnection) -> None:
        self.url = url
        self.conversation = Conversation()
        self._socket = socket
        self._received = asyncio.Event()
        self._end: KpgError | None = None
        self._reader = asyncio.create_task(self._read_socket())

    async def run(self, call: Call[Result]) -> Result:
        """Send the request of a call and wait for its result."""
        return await self.drive(ask(self.conversation, call))

    def subscription(self, feed: ChangeFeed) -> AsyncSubscription:
        """Return the subscription of an answer that is followed."""
        return AsyncSubscription(self, feed)

    async def drive(self, procedure: Procedure[Result]) -> Result:
        """Perform a procedure; other tasks run meanwhile."""
        try:
            instruction = next(procedure)
            while True:
                try:
                    await self._perform(instruction)
                except BaseException as error:
                    instruction = procedure.throw(error)
                else:
                    instruction = next(procedure)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            self._wake()  # a task may wait for changes of an interest that this procedure has ended

    async def _perform(self, instruction: Send | Receive) -> None:
        if isinstance(instruction, Send):
            await self._send(instruction.text)
        else:
            await self._wait(instruction.deadline)

    async def _read_socket(self) -> None:
        """Receive messages until the connection ends."""
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                self.conversation.receive(await self._socket.recv())
                self._wake()
        except ConnectionClosed as error:
            self._end = unreachable(self.url, error)
        except KpgError as error:
            self._end = error
        finally:
            self._wake()

    def _wake(self) -> None:
        """Wake all tasks that wait for something to arrive."""
        self._received.set()
        self._received = asyncio.Event()

    async def _wait(self, deadline: float | None) -> None:
        """Wait until something arrives."""
        if self._end is not None:
            raise self._end
        try:
            async with asyncio.timeout(None if deadline is None else max(0.0, deadline - time.monotonic())):
                await self._received.wait()
        except TimeoutError:
            raise TimeNotReached("no change came in time", hint="Wait longer, or without a timeout.") from None

    async def _send(self, text: str) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._socket.send(text)
        except ConnectionClosed as error:
            raise self._end or unreachable(self.url, error) from None

    async def close(self) -> None:
        """Close the connection and end its interests; may be repeated."""
        await self._socket.close()
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader

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
    url: str, *, token: str | None = None, timeout: float = 10.0, authorities: str | Path | None = None
) -> AsyncConnection:
    """Connect to a server; the parameters are those of `kpg.connect`."""
    require("websockets", "kpg.connect_async")
    from websockets.asyncio.client import connect as open_socket
    from websockets.exceptions import WebSocketException

    full = address(url)
    try:
        socket = await open_socket(
            full, ssl=trust(full, authorities), open_timeout=timeout, compression=None, max_size=None,
            max_queue=None, proxy=None,
        )  # fmt: skip
    except (OSError, WebSocketException) as error:
        raise unreachable(url, error) from None
    connection = AsyncConnection(url, socket)
    try:
        connection.welcome = await connection.run(calls.hello(token_of(token)))
    except BaseException:
        await connection.close()
        raise
    return connection
