"""The two directions of one connection: messages that arrive, and bytes to send, with bounds on both.

A message that is larger than the limit is dropped as it arrives, and ends the connection. Bytes to send wait for the
socket in `flush`, so a client that does not read delays itself only. `lost` is set when the client has disconnected.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Final

from kpg.errors import ProtocolError, ResourceError
from kpg.pgwire.startup_packets import MAX_STARTUP_BYTES
from kpg.pgwire.wire_format import INT32

FLUSH_BYTES: Final = 1 << 16  # collected before the socket is asked whether it takes more
DISCARD_BYTES: Final = 1 << 16  # of a message over the limit that are read at a time
SMALLER_MESSAGES: Final = (
    "Send smaller messages; COPY splits its rows into many. Or raise the limit: kpg serve --max-message-bytes N."
)
MAX_DISCARDED_BYTES: Final = 1 << 26  # of a message over the limit; a client that sends more may miss the error


class ConnectionEnded(Exception):
    """The client has closed the connection, or lost it."""


class DroppedProtocol(asyncio.StreamReaderProtocol):
    """A stream that says when the connection is lost."""

    def __init__(self, reader: asyncio.StreamReader, connected: object) -> None:
        super().__init__(reader, connected)  # type: ignore[arg-type]
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the loss."""
        self.lost.set()
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:
        """Note that the client sends nothing any more: PostgreSQL's clients never close one direction only."""
        self.lost.set()
        return super().eof_received()


class WireChannel:
    """Reads and writes the messages of one client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: asyncio.Event) -> None:
        self._reader = reader
        self._writer = writer
        self.lost = lost
        self._unsent = bytearray()
        self.max_bytes = MAX_STARTUP_BYTES

    async def read_startup(self) -> bytes:
        """Return the body of a packet without a kind."""
        length = int(INT32.unpack(await self._exactly(4))[0]) - 4
        if not 4 <= length <= MAX_STARTUP_BYTES:
            raise ProtocolError("invalid length of startup packet")
        return await self._exactly(length)

    async def read_message(self) -> tuple[bytes, bytes]:
        """Return the kind and the body of the next message."""
        head = await self._exactly(5)
        kind, length = head[:1], int(INT32.unpack(head[1:])[0]) - 4
        if length < 0:
            raise ProtocolError("invalid message length")
        if length > self.max_bytes:
            what = f"a message of {length:,} bytes: this session may send {self.max_bytes:,}"
            await self._discard(min(length, MAX_DISCARDED_BYTES))
            raise ResourceError(what, hint=SMALLER_MESSAGES)
        return kind, await self._exactly(length)

    async def _exactly(self, count: int) -> bytes:
        try:
            return await self._reader.readexactly(count)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError, TimeoutError):
            raise ConnectionEnded from None

    async def _discard(self, count: int) -> None:
        """Read bytes and drop them: a client that is still sending would not see the error before the end."""
        while count:
            received = await self._reader.read(min(count, DISCARD_BYTES))
            if not received:
                raise ConnectionEnded
            count -= len(received)

    def send(self, data: bytes) -> None:
        """Queue bytes."""
        self._unsent += data

    async def send_much(self, data: bytes) -> None:
        """Queue bytes, and wait for the socket if they are many."""
        self._unsent += data
        if len(self._unsent) >= FLUSH_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Send what is queued, and wait until the socket takes more."""
        if self._unsent:
            self._writer.write(bytes(self._unsent))
            self._unsent.clear()
        try:
            await self._writer.drain()
        except (ConnectionError, ssl.SSLError, TimeoutError):
            raise ConnectionEnded from None

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self._writer.get_extra_info("ssl_object") is not None

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Continue with TLS. Bytes that a client sent before it are refused, because they are not authenticated."""
        if self._reader._buffer:  # type: ignore[attr-defined]
            raise ProtocolError("received unencrypted data after SSL request")
        try:
            await self._writer.start_tls(context)
        except (OSError, ssl.SSLError, TimeoutError):
            raise ConnectionEnded from None

    async def close(self) -> None:
        """Send what is queued, and close the connection."""
        with contextlib.suppress(ConnectionEnded, ConnectionError, OSError, TimeoutError):
            await asyncio.wait_for(self.flush(), 2.0)
        self._writer.close()
        with contextlib.suppress(ConnectionError, OSError, TimeoutError, ssl.SSLError):
            await asyncio.wait_for(self._writer.wait_closed(), 2.0)
