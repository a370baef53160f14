"""One HTTP request on a connection: its head and body are read, a response or a stream of events is written.

A connection carries one request. Heads have at most 64 KiB, bodies at most `message_bytes`, with a `Content-Length`.
A request that could be read in two ways is refused: a repeated `Host`, `Content-Length` or `Authorization`, both a
length and an encoding, folded lines, characters that headers do not have.
"""

from __future__ import annotations

import asyncio
import http
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from websockets.datastructures import Headers

REQUEST_LINE: Final = re.compile(r"([A-Z]{1,20}) ([!-~]{1,8192}) HTTP/1\.[01]")
HEADER_LINE: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")
DIGITS: Final = re.compile(r"[0-9]{1,15}")
MAX_HEADERS: Final = 100
DRAIN_SECONDS: Final = 2.0  # to read the rest of a refused request, so that its sender sees the reason
DRAIN_BYTES: Final = 64 << 20
WRITE_SECONDS: Final = 60.0  # for a reader that does not read; then the connection ends


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request with its whole body."""

    method: str
    target: str
    headers: Headers
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """The reply to an HTTP request; `events` continue a body without an end."""

    status: int
    body: str = ""
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    events: AsyncGenerator[str, None] | None = None


class BadRequest(Exception):
    """A request that cannot be read: the status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_bytes: int) -> HttpRequest:
    """Read a request; raise BadRequest, or IncompleteReadError if the connection ends before."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise BadRequest(431, "the head of the request is too large") from None
    request = parse_head(head)
    length = body_length(request)
    if not length:
        return request
    if request.method in ("GET", "HEAD"):
        raise BadRequest(413, "a GET request has no body here")
    if length > max_bytes:
        hint = "send less, or raise the limit: kpg serve --max-message-bytes N"
        raise BadRequest(413, f"the body has {length:,} bytes; {max_bytes:,} are allowed; {hint}")
    if request.headers.get("Expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return HttpRequest(request.method, request.target, request.headers, await reader.readexactly(length))


def parse_head(head: bytes) -> HttpRequest:
    """Return the request line and the headers."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    line = REQUEST_LINE.fullmatch(first)
    if line is None:
        raise BadRequest(400, "this is not a request of HTTP/1.1")
    if len(lines) > MAX_HEADERS:
        raise BadRequest(431, "the request has too many headers")
    headers = Headers()
    for text in lines:
        header = HEADER_LINE.fullmatch(text)
        if header is None:
            raise BadRequest(400, "a header is malformed")
        headers[header[1]] = header[2]
    for name in ("Host", "Origin", "Sec-Fetch-Site", "Upgrade", "Content-Length", "Authorization", "Last-Event-ID"):
        if len(headers.get_all(name)) > 1:
            raise BadRequest(400, "a header occurs twice")
    return HttpRequest(line[1], line[2], headers)


def body_length(request: HttpRequest) -> int:
    """Return the number of bytes of the body."""
    length = request.headers.get("Content-Length", "0")
    if "Transfer-Encoding" in request.headers:
        if request.method in ("GET", "HEAD"):
            raise BadRequest(413, "a GET request has no body here")
        raise BadRequest(411, "the header Content-Length is needed")
    if not DIGITS.fullmatch(length):
        raise BadRequest(400, "Content-Length is not a number")
    return int(length)


async def write_response(writer: asyncio.StreamWriter, response: Response, head_only: bool) -> None:
    """Write a response; one with events until they end or the connection does."""
    body = response.body.encode()
    fields = {"Content-Type": response.kind, "Connection": "close", "Server": "kpg", **response.headers}
    if response.events is None:
        fields["Content-Length"] = str(len(body))
    status = http.HTTPStatus(response.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in fields.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    if not head_only:
        writer.write(body)
        await asyncio.wait_for(writer.drain(), WRITE_SECONDS)
        if response.events is not None:
            async for event in response.events:
                writer.write(event.encode())
                await asyncio.wait_for(writer.drain(), WRITE_SECONDS)


async def close_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close a connection after its response; first drop what its client still sends."""
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        if writer.can_write_eof():
            writer.write_eof()
        async with asyncio.timeout(DRAIN_SECONDS):
            dropped = 0
            while dropped < DRAIN_BYTES and (data := await reader.read(1 << 16)):
                dropped += len(data)
    writer.close()
    with suppress(OSError, TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), DRAIN_SECONDS)
