"""The connection that is awaited: `kpg.connect_async`. The same methods as the one that waits, as coroutines.

    async with await kpg.connect_async("ws://localhost:8340", token=...) as db:
        t = await db.insert("edge", [(1, 2)])
        async for step in await db.interest("path"): ...

One task reads the socket and sorts what comes; any number of tasks may ask and follow at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
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
from kpg.errors import Closed, KpgError, UndefinedName
from kpg.protocol.replies import WelcomeReply

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

Given = ParamSpec("Given")
Result = TypeVar("Result")


def awaits(function: Callable[Given, Call[Result]]) -> Callable[Concatenate[AsyncConnection, Given], Awaitable[Result]]:
    """A method that asks; await it for the result."""

    @wraps(function)
    async def method(self: AsyncConnection, /, *given: Given.args, **named: Given.kwargs) -> Result:
        return await self.run(function(*given, **named))

    return method


class AsyncConnection:
    """A server, as one client sees it; made by `kpg.connect_async`."""

    welcome: WelcomeReply

    def __init__(self, url: str, socket: ClientConnection) -> None:
        self.url = url
        self._socket = socket
        self._talk = Conversation()
        self._news = asyncio.Event()
        self._end: KpgError | None = None
        self._reader = asyncio.create_task(self._read_all())

    ping = awaits(calls.ping)
    create_relation = awaits(calls.create_relation)
    create_attribute = awaits(calls.create_attribute)
    transact = awaits(calls.transact)
    insert = awaits(calls.insert)
    remove = awaits(calls.remove)
    register = awaits(calls.register)
    unregister = awaits(calls.unregister)
    query = awaits(calls.query)
    explain = awaits(calls.explain)
    catalog = awaits(calls.catalog)
    observe = awaits(calls.observe)
    advance = awaits(calls.advance)
    close_input = awaits(calls.close_input)
    sink = awaits(calls.sink)
    uninterest = awaits(calls.uninterest)
    shutdown = awaits(calls.shutdown)

    async def interest(
        self,
        name: str,
        *,
        arguments: calls.Arguments | None = None,
        sharing: str = "auto",
        joins: str = "auto",
        granularity: float | None = None,
        log: bool = True,
        credit: int = 8,
    ) -> AsyncSubscription:
        """Follow a rule or relation; `credit` steps may come ahead of what is read."""
        made = await self.run(
            calls.follow(
                name, arguments=arguments, sharing=sharing, joins=joins, granularity=granularity, log=log, credit=credit
            )
        )
        return AsyncSubscription(self, self._talk.feeds[made.interest])

    async def run(self, call: Call[Result]) -> Result:
        """Ask, and wait for the result."""
        number, text = self._talk.ask(call)
        try:
            await self._send(text)
            while (found := self._talk.result(number, call)) is NOT_YET:
                await self._more()
        except BaseException:
            self._talk.give_up(number)
            raise
        return found  # type: ignore[return-value]

    async def next_step(self, feed: Feed) -> Step:
        """The next step of an answer."""
        while not feed.waiting:
            if feed.ended:
                raise ended(feed)
            await self._more()
        return await self._read(feed)

    async def catch_up(self, feed: Feed) -> None:
        """Read all there is of an answer, up to now."""
        await self._ask_of(feed, calls.take(feed.interest))
        while feed.waiting:
            await self._read(feed)

    async def drop(self, feed: Feed) -> None:
        """Follow an answer no longer."""
        if self._talk.feeds.get(feed.interest) is feed:
            await self._ask_of(feed, calls.uninterest(feed.interest))
            self._talk.drop(feed)
        feed.ended = feed.ended or True
        self._tell()

    async def _ask_of(self, feed: Feed, call: Call[Any]) -> None:
        """Ask something of an interest, unless it has ended, be it while we ask."""
        if feed.ended:
            return
        try:
            await self.run(call)
        except UndefinedName:
            if not feed.ended:
                raise

    async def _read(self, feed: Feed) -> Step:
        step = self._talk.read(feed)
        for text in self._talk.outgoing():
            await self._send(text)
        return step

    async def _read_all(self) -> None:
        """Sort what comes until the end."""
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                self._talk.receive(await self._socket.recv())
                self._tell()
        except ConnectionClosed as error:
            self._end = unreachable(self.url, error)
        except KpgError as error:
            self._end = error
        finally:
            self._tell()

    def _tell(self) -> None:
        """Wake all who wait for something."""
        self._news.set()
        self._news = asyncio.Event()

    async def _more(self) -> None:
        """Wait until something comes."""
        if self._end is not None:
            raise self._end
        await self._news.wait()

    async def _send(self, text: str) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._socket.send(text)
        except ConnectionClosed as error:
            raise self._end or unreachable(self.url, error) from None

    async def close(self) -> None:
        """End the connection; all that was followed ends. May be repeated."""
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


class AsyncSubscription(Followed):
    """An answer that is followed: iterate for each step, or await the rows of now."""

    def __init__(self, connection: AsyncConnection, feed: Feed) -> None:
        super().__init__(feed)
        self._connection = connection

    async def next(self) -> Step:
        """The next step."""
        return await self._connection.next_step(self._feed)

    async def __aiter__(self) -> AsyncIterator[Step]:
        while True:
            try:
                yield await self.next()
            except Closed:
                return

    async def add(self, arguments: calls.Arguments) -> None:
        """Ask for more arguments: an update on the server, not a new dataflow."""
        await self._connection.run(calls.add_arguments(self.id, arguments))

    async def remove(self, arguments: calls.Arguments) -> None:
        """Ask for fewer arguments; the rows that go come as changes."""
        await self._connection.run(calls.remove_arguments(self.id, arguments))

    async def rows(self) -> list[Row]:
        """The rows of now, each as often as it is there; reads all steps that wait."""
        await self._connection.catch_up(self._feed)
        return self._feed.rows()

    async def table(self) -> pa.Table:
        """The same as an Arrow table."""
        await self._connection.catch_up(self._feed)
        return self._feed.table()

    async def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        return (await self.table()).to_pandas()

    async def close(self) -> None:
        """Follow no longer; may be repeated."""
        await self._connection.drop(self._feed)


async def connect_async(
    url: str, *, token: str | None = None, timeout: float = 10.0, authorities: str | Path | None = None
) -> AsyncConnection:
    """Connect to a server; what is given means the same as for `kpg.connect`."""
    from websockets.asyncio.client import connect as open_socket
    from websockets.exceptions import WebSocketException

    place = address(url)
    try:
        socket = await open_socket(
            place, ssl=trust(place, authorities), open_timeout=timeout, compression=None, max_size=None,
            max_queue=None, proxy=None,
        )  # fmt: skip
    except (OSError, WebSocketException) as error:
        raise unreachable(url, error) from None
    made = AsyncConnection(url, socket)
    try:
        made.welcome = await made.run(calls.hello(token_of(token)))
    except BaseException:
        await made.close()
        raise
    return made
