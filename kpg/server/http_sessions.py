"""Sessions of HTTP requests: each request is a client of its own, with the limits, rights and metrics of any client.

    await perform(hub, request, size, holder)      run one request; return its reply, rows of all pages together
    await follow(hub, request, holder)             begin or continue an interest; return its changes as events

An event has the id `KEY:STEP`. A client that reconnects sends the last one in `Last-Event-ID` and continues there: no
change is lost or repeated. When the task that waits for a reply or reads the events ends, so does the session.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kpg.errors import InputError, ResourceError
from kpg.protocol.error_messages import error_of
from kpg.protocol.message_codec import encode
from kpg.protocol.replies import AnyReply, ChangesMessage, EndedMessage, ErrorReply, RowsReply
from kpg.protocol.requests import InterestRequest, Request
from kpg.protocol.strict_decoder import build
from kpg.server.client_connection import ClientConnection
from kpg.server.hub import Hub
from kpg.server.tokens import TokenHolder

if TYPE_CHECKING:
    from collections.abc import Iterator

KEEP_ALIVE_SECONDS: Final = 15.0  # between comments in a stream without changes, so that a lost reader is noticed
KEY_BYTES: Final = 16


def open_client(hub: Hub, holder: TokenHolder) -> ClientConnection:
    """Return a new client with an open session."""
    if hub.session_count >= hub.limits.sessions:
        raise ResourceError(f"the server has {hub.limits.sessions} sessions, which is the maximum", hint="Try later.")
    client = hub.connect()
    client.session.admit(holder)
    return client


@contextmanager
def session_of(hub: Hub, holder: TokenHolder) -> Iterator[ClientConnection]:
    """A client for one request."""
    client = open_client(hub, holder)
    try:
        yield client
    finally:
        client.close()


async def perform(hub: Hub, request: Request, size: int, holder: TokenHolder) -> AnyReply:
    """Run a request and return its reply; raise the error of one that fails."""
    with session_of(hub, holder) as client:
        client.execute(client.session.submit(request, size))
        pages: list[Any] = []
        async for message in messages_of(client):
            pages.append(message)
            if isinstance(message, ErrorReply):
                raise error_of(message.failure)
            if not (isinstance(message, RowsReply) and message.more):
                break
            await asyncio.sleep(0)  # other clients run between two pages
        last: AnyReply = pages[-1]
        if isinstance(last, RowsReply):
            last = replace(last, rows=tuple(row for page in pages for row in page.rows))
        return last


async def messages_of(client: ClientConnection) -> AsyncIterator[AnyReply]:
    """Yield the messages to a client; those before the last one yielded count as sent."""
    while True:
        messages, on_sent = await client.outbox.next()
        for message in messages:
            client.hub.metrics.add("kpg_messages_sent_total")
            yield message
        if on_sent is not None:
            on_sent()


def interest_request(members: dict[str, Any], last_event: str | None) -> InterestRequest:
    """Return the request of an interest, which continues after the event received last, if there is one."""
    key, _, step = (last_event or f"{secrets.token_urlsafe(KEY_BYTES)}:0").rpartition(":")
    if not (step.isascii() and step.isdigit() and len(step) < 16):
        raise InputError("Last-Event-ID is not the id of an event of this server")
    return build(InterestRequest, {"id": 0, "key": key, "step": int(step), **members}, "$")


async def follow(hub: Hub, request: InterestRequest, holder: TokenHolder) -> tuple[str, AsyncGenerator[str, None]]:
    """Begin an interest, or continue one; return the first event and the others, or raise the error of the request.

    The caller must close the generator: that ends the session.
    """
    client = open_client(hub, holder)
    messages = messages_of(client)
    try:
        client.execute(client.session.submit(request, 0))
        first = await anext(messages)
        if isinstance(first, ErrorReply):
            raise error_of(first.failure)
    except BaseException:
        client.close()
        raise
    events = events_of(client, request, first, messages)
    return await anext(events), events  # a generator that has begun runs its end when it is closed


async def events_of(
    client: ClientConnection, request: InterestRequest, first: AnyReply, messages: AsyncIterator[AnyReply]
) -> AsyncGenerator[str, None]:
    """Yield the messages of an interest as events, and comments while there are none."""
    waiting: asyncio.Task[AnyReply] | None = None
    try:
        yield event_of(first, request.key)
        while True:
            waiting = waiting or asyncio.ensure_future(anext(messages))
            await asyncio.wait([waiting], timeout=KEEP_ALIVE_SECONDS)
            if not waiting.done():
                yield ":\n\n"
                continue
            message, waiting = waiting.result(), None
            yield event_of(message, request.key)
            if isinstance(message, EndedMessage):
                return
    finally:
        if waiting is not None:
            waiting.cancel()
        client.close(lost=True)


def event_of(message: AnyReply, key: str | None) -> str:
    """Return a message as an event. Only the last message of a step has an id, so a reader continues between steps."""
    is_whole = isinstance(message, ChangesMessage) and not message.more
    number = f"id: {key}:{message.step}\n" if isinstance(message, ChangesMessage) and is_whole else ""
    return f"event: {message.kind}\n{number}data: {encode(message)}\n\n"
