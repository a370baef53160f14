"""Sockets: WebSocket and HTTP on one port, with or without TLS.

Each client has a reader and a writer. The reader stops while the client's outbox is full, the writer waits for the
socket: a client that sends too much or never reads holds up nobody but itself. One that does not answer pings is gone.
Pages of other sites cannot connect from a browser: an Origin is refused unless it is allowed.
"""

from __future__ import annotations

import asyncio
import http
import logging
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kpg.errors import InputError, Unavailable
from kpg.protocol.message_codec import encode
from kpg.server.http import respond
from kpg.server.hub import Connected, Hub

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.http11 import Request
    from websockets.http11 import Response as HttpResponse

GOING_AWAY, TRY_LATER = 1001, 1013
PING_SECONDS, GONE_SECONDS, CLOSE_SECONDS = 20.0, 60.0, 2.0
LOOPBACK = ("127.0.0.1", "::1", "localhost")
LOGGER = logging.getLogger("kpg.server")
SOCKETS = logging.getLogger("kpg.server.sockets")  # strangers that speak nonsense are no news unless somebody asks


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where to listen, and how."""

    host: str = "127.0.0.1"
    port: int = 8340
    tls_cert: Path | None = None
    tls_key: Path | None = None
    origins: Sequence[str] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in LOOPBACK

    def context(self) -> ssl.SSLContext | None:
        """The certificate, loaded."""
        if self.tls_cert is None and self.tls_key is None:
            return None
        if self.tls_cert is None or self.tls_key is None:
            raise InputError("TLS needs both a certificate and its key", hint="Give --tls-cert and --tls-key.")
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            made.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise Unavailable(f"cannot use the certificate {self.tls_cert}", detail=str(error)) from None
        return made


class Listener:
    """An open port."""

    def __init__(self, hub: Hub, place: ListenAddress) -> None:
        self.hub = hub
        self.place = place
        self._server: Server | None = None

    async def open(self) -> str:
        """Begin to listen; the address that clients use."""
        from websockets.asyncio.server import serve

        context = self.place.context()
        if SOCKETS.level == logging.NOTSET:
            SOCKETS.setLevel(logging.CRITICAL)
        try:
            self._server = await serve(
                self._client,
                self.place.host,
                self.place.port,
                ssl=context,
                origins=[None, *self.place.origins],  # type: ignore[list-item]
                process_request=self._http,
                compression=None,
                max_size=self.hub.allowance.message_bytes,
                open_timeout=self.hub.allowance.greeting_seconds,
                ping_interval=PING_SECONDS,
                ping_timeout=GONE_SECONDS,
                close_timeout=CLOSE_SECONDS,
                server_header="kpg",
                logger=SOCKETS,
            )
        except OSError as error:
            place = f"{self.place.host}:{self.place.port}"
            hint = "Choose another --port, or 0 for any that is free."
            raise Unavailable(f"cannot listen on {place}", detail=str(error), hint=hint) from None
        port = self._server.sockets[0].getsockname()[1]
        host = f"[{self.place.host}]" if ":" in self.place.host else self.place.host
        return f"{'wss' if context else 'ws'}://{host}:{port}"

    async def close(self) -> None:
        """Take no more clients, say good-bye to all, and wait for them a little."""
        if self._server is not None:
            self._server.close(code=GOING_AWAY, reason="the server ends")
            await self._server.wait_closed()

    async def _http(self, connection: ServerConnection, request: Request) -> HttpResponse | None:
        """Answer what is not a WebSocket."""
        if any(len(request.headers.get_all(name)) > 1 for name in ("Host", "Sec-Fetch-Site", "Upgrade")):
            return connection.respond(http.HTTPStatus.BAD_REQUEST, "a header is given twice\n")
        if not self.hub.tokens.known and not is_local(request.headers.get("Host", "")):
            return connection.respond(http.HTTPStatus.FORBIDDEN, "without a token only this machine is served\n")
        if foreign(request.headers.get("Sec-Fetch-Site")) and not self.place.origins:
            return connection.respond(http.HTTPStatus.FORBIDDEN, "pages of other sites are not served\n")
        if request.headers.get("Upgrade", "").lower() == "websocket" and request.path.split("?")[0] == "/":
            return None
        found = await respond(self.hub, request.method, request.path, request.headers)
        made = connection.respond(http.HTTPStatus(found.status), found.body)
        del made.headers["Content-Type"]
        made.headers["Content-Type"] = found.kind
        for name, value in found.headers.items():
            made.headers[name] = value
        return made

    async def _client(self, socket: ServerConnection) -> None:
        """One client from beginning to end."""
        if len(self.hub.connected) >= self.hub.allowance.sessions:
            self.hub.metrics.add("kpg_refused_total", reason="sessions")
            await socket.close(TRY_LATER, f"{self.hub.allowance.sessions} sessions are all there may be")
            return
        client = self.hub.connect()
        sides = [asyncio.create_task(side(socket, client)) for side in (self._read, self._write)]
        try:
            await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)  # without one, the other may wait for ever
        finally:
            client.close()
            for side in sides:
                side.cancel()
            for found in await asyncio.gather(*sides, return_exceptions=True):
                if isinstance(found, Exception):
                    LOGGER.error("a connection failed", exc_info=found)

    async def _read(self, socket: ServerConnection, client: Connected) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed, TimeoutError):
            greeting = await asyncio.wait_for(socket.recv(), self.hub.allowance.greeting_seconds)
            client.do(client.session.receive(greeting))
            async for data in socket:
                client.do(client.session.receive(data))
                await client.outbox.room()

    async def _write(self, socket: ServerConnection, client: Connected) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            while True:
                messages, sent = await client.outbox.next()
                for message in messages:
                    await socket.send(encode(message))
                    self.hub.metrics.add("kpg_messages_sent_total")
                if sent is not None:
                    sent()
                if client.hanging is not None and not len(client.outbox):
                    await socket.close(client.hanging.code, short(client.hanging.reason))
                    return


def foreign(site: str | None) -> bool:
    """Whether a browser says that it asks for a page of another site: that page may not even cause work here."""
    return site in ("cross-site", "same-site")


def is_local(host: str) -> bool:
    """Whether a request names this machine: a page whose site is made to point here names its site."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return name.strip("[]") in LOOPBACK


def short(reason: str) -> str:
    """A reason that fits into a closing frame: 123 bytes."""
    return reason.encode()[:120].decode(errors="ignore")
