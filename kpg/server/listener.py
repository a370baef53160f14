"""The sockets of a server: WebSocket and HTTP on one port, with or without TLS.

Each client has a reader task and a writer task. The reader pauses while the client's outbox is full, and the writer
waits for the socket, so a client that sends too much or never reads delays only itself. A client that does not answer
pings, or takes nothing of what is sent to it, is disconnected after a minute. Web pages of other sites cannot connect:
an Origin header is refused unless it is allowed.
"""

from __future__ import annotations

import asyncio
import http
import logging
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from websockets.datastructures import Headers

from kpg.errors import InputError, Unavailable
from kpg.protocol.message_codec import encode
from kpg.server.client_connection import ClientConnection
from kpg.server.http_connection import (
    BadRequest,
    HttpRequest,
    Response,
    close_connection,
    read_request,
    write_response,
)
from kpg.server.http_endpoints import respond
from kpg.server.hub import Hub
from kpg.server.server_log import LOGGER
from kpg.server.session import MAX_LOOP_CHARACTERS, decode_request
from kpg.server.session_limits import too_many_sessions
from kpg.server.socket_progress import SocketProgress

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.http11 import Request
    from websockets.http11 import Response as HttpResponse

GOING_AWAY, TRY_LATER = 1001, 1013  # close codes of WebSocket
DELIBERATE = (1000, 1001)  # close codes of a client that will not come back
PING_INTERVAL_SECONDS = 20.0
PING_TIMEOUT_SECONDS = 60.0  # a busy client answers late; a dead one is dropped after this
STOPPED_SECONDS = 60.0  # the same of one that takes nothing: its pings wait for room in the socket
CLOSE_TIMEOUT_SECONDS = 2.0
MAX_REASON_BYTES = 120  # a closing frame holds 123 bytes of text
OTHER_SITES = "web pages of other sites may not connect"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
SOCKETS = logging.getLogger("kpg.server.sockets")  # malformed handshakes are logged only if asked for


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address to listen on, its certificate, and the allowed origins."""

    host: str = "127.0.0.1"
    port: int = 8340
    tls_cert: Path | None = None
    tls_key: Path | None = None
    origins: Sequence[str] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        return self.host in LOOPBACK

    def context(self) -> ssl.SSLContext | None:
        """Load the certificate; return None without TLS."""
        if self.tls_cert is None and self.tls_key is None:
            return None
        if self.tls_cert is None or self.tls_key is None:
            raise InputError("TLS needs both a certificate and its key", hint="Give --tls-cert and --tls-key.")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise Unavailable(f"cannot use the certificate {self.tls_cert}", detail=str(error)) from None
        return context


class Listener:
    """Accepts connections and runs their tasks."""

    def __init__(self, hub: Hub, address: ListenAddress) -> None:
        self.hub = hub
        self.address = address
        self._server: Server | None = None
        self._http_tasks: set[asyncio.Task[Any]] = set()
        self._sockets: set[ServerConnection] = set()

    async def open(self) -> str:
        """Listen, and return the URL for clients."""
        from websockets.asyncio.server import serve

        from kpg.server.shared_port import PortConnection

        context = self.address.context()
        create_connection: Any = partial(
            PortConnection,
            serve_http=self._serve_http,
            timeout_seconds=self.hub.limits.greeting_seconds,
            tasks=self._http_tasks,
        )
        if SOCKETS.level == logging.NOTSET:
            SOCKETS.setLevel(logging.CRITICAL)
        try:
            self._server = await serve(
                self._client,
                self.address.host,
                self.address.port,
                ssl=context,
                process_request=self._handshake,
                create_connection=create_connection,
                compression=None,
                max_size=self.hub.limits.message_bytes,
                open_timeout=self.hub.limits.greeting_seconds,
                ping_interval=PING_INTERVAL_SECONDS,
                ping_timeout=PING_TIMEOUT_SECONDS,
                close_timeout=CLOSE_TIMEOUT_SECONDS,
                server_header="kpg",
                logger=SOCKETS,
            )
        except OSError as error:
            address = f"{self.address.host}:{self.address.port}"
            hint = "Choose another --port, or 0 for any free port."
            raise Unavailable(f"cannot listen on {address}", detail=str(error), hint=hint) from None
        port = self._server.sockets[0].getsockname()[1]
        host = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        return f"{'wss' if context else 'ws'}://{host}:{port}"

    async def close(self) -> None:
        """Stop accepting clients, close all connections, and cut those that are not closed after the close timeout."""
        for task in tuple(self._http_tasks):
            task.cancel()
        if self._server is not None:
            self._server.close(code=GOING_AWAY, reason="the server is shutting down")
            closed = asyncio.ensure_future(self._server.wait_closed())
            await asyncio.wait([closed], timeout=CLOSE_TIMEOUT_SECONDS)
            for socket in self._sockets:  # a close frame waits for room in the socket of a client that does not read
                socket.transport.abort()
            await closed

    def _handshake(self, connection: ServerConnection, request: Request) -> HttpResponse | None:
        """Check a WebSocket handshake; return the refusal, if any."""
        headers = request.headers
        if any(len(headers.get_all(name)) > 1 for name in ("Host", "Origin", "Sec-Fetch-Site", "Upgrade")):
            return connection.respond(http.HTTPStatus.BAD_REQUEST, "a header occurs twice\n")
        reason = self._refusal(headers) or self._refused_origin(headers)
        if reason is not None:
            return connection.respond(http.HTTPStatus.FORBIDDEN, f"{reason}\n")
        if request.path.split("?")[0] != "/":
            return connection.respond(http.HTTPStatus.NOT_FOUND, "the path for WebSocket is /\n")
        return None

    def _refusal(self, headers: Headers) -> str | None:
        """Return why a request may not come from where it comes, if so: web pages of other sites may not connect."""
        if not self.hub.tokens.digests and not is_local(headers.get("Host", "")):
            return "without a token, only this machine may connect"
        if is_cross_site(headers.get("Sec-Fetch-Site")) and not self.address.origins:
            return OTHER_SITES
        return None

    def _refused_origin(self, headers: Headers) -> str | None:
        """Return why a web page may not connect, if so: only the console and pages of allowed origins may."""
        origin, host = headers.get("Origin"), headers.get("Host", "")
        if origin is None or origin in self.address.origins:
            return None
        own = (f"http://{host}", f"https://{host}")  # TLS may end at a proxy
        return None if host and origin in own else OTHER_SITES

    async def _serve_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one HTTP request until it is answered or its client disconnects."""
        task = asyncio.current_task()
        assert task is not None
        self._http_tasks.add(task)
        try:
            await self._answer(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            writer.transport.abort()
        except asyncio.CancelledError:  # the task ends here: asyncio would report the error of one that was cancelled
            writer.transport.abort()
        except Exception:
            LOGGER.exception("an HTTP connection failed")
            writer.transport.abort()
        finally:
            self._http_tasks.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        limits, head_only = self.hub.limits, False
        try:
            async with asyncio.timeout(limits.greeting_seconds):
                request = await read_request(reader, writer, limits.message_bytes)
            head_only = request.method == "HEAD"
            response = await self._respond(request, reader)
        except BadRequest as refusal:
            response = Response(refusal.status, f"{refusal}\n", "text/plain; charset=utf-8")
        if response is None:
            writer.transport.abort()
            return
        writing = asyncio.ensure_future(write_response(writer, response, head_only))
        if response.events is None:
            await writing
            await close_connection(reader, writer)
            return
        try:
            await until_end(reader, writing)
        finally:
            await response.events.aclose()
            writer.close()

    async def _respond(self, request: HttpRequest, reader: asyncio.StreamReader) -> Response | None:
        """Return the response to a request; None if its client disconnects before."""
        is_navigation = request.method == "GET" and request.target == "/"  # a link of another site to the console
        headers = Headers(request.headers)
        if is_navigation and headers.get("Sec-Fetch-Mode") == "navigate":
            del headers["Sec-Fetch-Site"]
        reason = self._refusal(headers) or self._refused_origin(headers)
        if reason is not None:
            raise BadRequest(http.HTTPStatus.FORBIDDEN, reason)
        responding = asyncio.ensure_future(respond(self.hub, request))
        return responding.result() if await until_end(reader, responding) else None

    async def _client(self, socket: ServerConnection) -> None:
        """Serve one client until it disconnects."""
        if self.hub.is_ending:
            await socket.close(GOING_AWAY, "the server is shutting down")
            return
        if self.hub.session_count >= self.hub.limits.sessions:
            self.hub.metrics.add("kpg_refused_total", reason="sessions")
            await socket.close(TRY_LATER, too_many_sessions(self.hub.limits).what)
            return
        client, progress = self.hub.connect(), SocketProgress(socket.transport)
        work = (self._read(socket, client), self._write(socket, client, progress), self._cut_stopped(socket, progress))
        tasks = [asyncio.create_task(task) for task in work]
        self._sockets.add(socket)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)  # the others may then wait forever
        finally:
            self._sockets.discard(socket)
            client.close(lost=socket.close_code not in DELIBERATE)
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception):
                    LOGGER.error("a connection failed", exc_info=result)

    async def _read(self, socket: ServerConnection, client: ClientConnection) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed, TimeoutError):
            hello = await asyncio.wait_for(socket.recv(), self.hub.limits.greeting_seconds)
            client.execute(client.session.receive(hello))
            async for data in socket:
                decoded = None
                if isinstance(data, str) and self.hub.limits.message_bytes >= len(data) > MAX_LOOP_CHARACTERS:
                    decoded = await self.hub.loop.run_in_executor(self.hub.decoder, decode_request, data)
                client.execute(client.session.receive(data, decoded))
                await client.outbox.wait_for_room()

    async def _cut_stopped(self, socket: ServerConnection, progress: SocketProgress) -> None:
        """Cut the connection of a client that takes nothing of what is sent to it."""
        await progress.stopped(STOPPED_SECONDS)
        socket.transport.abort()

    async def _write(self, socket: ServerConnection, client: ClientConnection, progress: SocketProgress) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            while True:
                messages, on_sent = await client.outbox.next()
                for number, message in enumerate(messages):
                    if number:  # serve others in between: `send` does not wait while the socket takes everything
                        await asyncio.sleep(0)
                    await socket.send(await self.hub.written(encode, message))
                    progress.note_sent()
                    self.hub.metrics.add("kpg_messages_sent_total")
                if on_sent is not None:
                    on_sent()
                if client.closing is not None and not len(client.outbox):
                    await socket.close(client.closing.code, shorten(client.closing.reason))
                    return


async def until_end(reader: asyncio.StreamReader, work: asyncio.Future[Any]) -> bool:
    """Wait for work, but no longer than the client is connected; return whether it was finished."""
    reading = asyncio.ensure_future(reader.read(1 << 16))
    try:
        while not work.done():
            await asyncio.wait([work, reading], return_when=asyncio.FIRST_COMPLETED)
            if reading.done() and not work.done():
                if not reading.result():  # the end; what a client sends after its request is dropped
                    return False
                reading = asyncio.ensure_future(reader.read(1 << 16))
        return True
    finally:
        for task in (reading, work):
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError, OSError):
                    await task


def is_cross_site(site: str | None) -> bool:
    """Whether a browser marks a request as caused by a page of another site."""
    return site in ("cross-site", "same-site")


def is_local(host: str) -> bool:
    """Whether a Host header names this machine. A page of a site that rebinds its DNS entry to it names that site."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return name.strip("[]") in LOOPBACK


def shorten(reason: str) -> str:
    """Cut a reason so that it fits into a closing frame."""
    return reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
