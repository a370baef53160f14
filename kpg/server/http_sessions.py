"""Sessions of HTTP requests: each request is a client of its own, with the limits, rights and metrics of any client.

    await perform(hub, request, size, holder)      run one request; return its first reply, and the others of many rows
    await follow(hub, request, holder)             begin or continue an interest; return its changes as events

An event has the id `KEY:STEP`. A client that reconnects sends the last one in `Last-Event-ID` and continues there: no
change is lost or repeated. When the task that waits for a reply or reads the events ends, so does the session.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

from kpg.errors import InputError
from kpg.protocol.error_messages import error_of
from kpg.protocol.message_codec import encode
from kpg.protocol.replies import AnyReply, ChangesMessage, EndedMessage, ErrorReply, RowsReply
from kpg.protocol.requests import InterestRequest, Request
from kpg.protocol.strict_decoder import build
from kpg.server.client_connection import ClientConnection
from kpg.server.hub import Hub
from kpg.server.session_limits import too_many_sessions
from kpg.server.tokens import TokenHolder

KEEP_ALIVE_SECONDS: Final = 15.0  # between comments in a stream without changes, so that a lost reader is noticed
KEY_BYTES: Final = 16


def open_client(hub: Hub, holder: TokenHolder) -> ClientConnection:
    """Return a new client with an open session."""
    if hub.session_count >= hub.limits.sessions:
        raise too_many_sessions(hub.limits)
    client = hub.connect()
    client.session.admit(holder)
    return client


async def perform(
    hub: Hub, request: Request, size: int, holder: TokenHolder
) -> tuple[AnyReply, AsyncGenerator[RowsReply, None] | None]:
    """Run a request and return its reply; raise the error of one that fails.

    Many rows are several replies. The caller reads the others one by one and closes their generator: the session lasts
    until then, so that a client that does not read holds one session and one page of rows.
    """
    client = open_client(hub, holder)
    messages = messages_of(client)
    try:
        client.execute(client.session.submit(request, size))
        first = await anext(messages)
        if isinstance(first, ErrorReply):
            raise error_of(first.failure)
    except BaseException:
        client.close()
        raise
    if not (isinstance(first, RowsReply) and first.more):
        client.close()
        return first, None
    pages = pages_of(client, messages)
    await anext(pages)  # a generator that has begun runs its end when it is closed
    return first, pages


async def pages_of(client: ClientConnection, messages: AsyncIterator[AnyReply]) -> AsyncGenerator[Any, None]:
    """Yield None, then the pages of rows after the first; end the session."""
    try:
        yield None
        async for message in messages:
            assert isinstance(message, RowsReply)
            yield message
            if not message.more:
                return
            await asyncio.sleep(0)  # other clients run between two pages
    finally:
        client.close()


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
