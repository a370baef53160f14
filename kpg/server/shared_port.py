"""One port for WebSocket and HTTP: the head of the first request decides which of them a connection is.

    Upgrade: websocket     the WebSocket library takes the connection over
    anything else          `kpg.server.http_connection` does, with bodies and streams

Each byte of the head is inspected once. A head that does not come within `timeout_seconds` ends the connection.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from websockets.asyncio.server import ServerConnection

END_OF_HEAD: Final = b"\r\n\r\n"
MAX_HEAD_BYTES: Final = 1 << 16  # more is passed on as it is, and refused there
UPGRADE: Final = re.compile(rb"\r\nupgrade:[ \t]*websocket[ \t]*\r\n", re.IGNORECASE)
ServeHttp = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class PortConnection(ServerConnection):
    """A connection that is not known yet to be a WebSocket; it becomes one, or leaves its transport to HTTP."""

    def __init__(
        self,
        *arguments: Any,
        serve_http: ServeHttp,
        timeout_seconds: float,
        tasks: set[asyncio.Task[Any]],
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._tasks = tasks  # of the server, which cancels them when it ends
        self._serve_http = serve_http
        self._timeout_seconds = timeout_seconds
        self._head = b""
        self._is_websocket = False
        self._is_decided = False
        self._timer: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the head before the WebSocket library learns of the connection."""
        self._undecided = cast(asyncio.Transport, transport)
        timer = self._timer = self.loop.create_task(self._abort_in_time())
        self._tasks.add(timer)
        timer.add_done_callback(self._tasks.discard)

    async def _abort_in_time(self) -> None:
        """End a connection that sends no whole head in time, or when the server ends."""
        try:
            await asyncio.sleep(self._timeout_seconds)
        finally:
            if not self._is_decided:
                self._undecided.abort()

    def _end_timer(self) -> None:
        """Cancel the timer and forget it: its error would refer to this connection."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Pass data on; at the end of the head, decide."""
        if self._is_websocket:
            super().data_received(data)
            return
        searched = max(0, len(self._head) - len(END_OF_HEAD))
        self._head += data
        if self._head.find(END_OF_HEAD, searched) < 0 and len(self._head) <= MAX_HEAD_BYTES:
            return
        self._is_decided = True
        self._end_timer()
        if UPGRADE.search(self._head.partition(END_OF_HEAD)[0] + b"\r\n"):
            self._is_websocket = True
            super().connection_made(self._undecided)
            super().data_received(self._head)
        else:
            reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES, loop=self.loop)
            protocol = asyncio.StreamReaderProtocol(reader, self._serve_http, loop=self.loop)
            self._undecided.set_protocol(protocol)
            protocol.connection_made(self._undecided)
            protocol.data_received(self._head)

    def eof_received(self) -> None:
        """End a connection that has sent no whole head."""
        if self._is_websocket:
            super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Record the end of the connection."""
        self._end_timer()
        if self._is_websocket:
            super().connection_lost(exc)
