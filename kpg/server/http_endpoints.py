"""The HTTP endpoints of a server, on the same port as WebSocket. Replies are JSON, except those of three pages.

GET  /healthz    {"status": "ok"}: the process responds               without a token
GET  /readyz     {"status": "ok", "time": 7}: the engine responds     without a token; 503 while it starts or ends
GET  /schema     the JSON Schema of the protocol                      without a token
GET  /kpg.js     the JavaScript client                                without a token
GET  /           the console, with its files under /console/          without a token; it asks for one
GET  /metrics    Prometheus' text format                              Authorization: Bearer TOKEN
GET  /query      ?text=path&language=datalog&as_of=3&limit=10         Authorization: Bearer TOKEN
GET  /changes    ?name=path: an answer, as server-sent events         Authorization: Bearer TOKEN
POST /transact   a request of the protocol as JSON, without `type`    Authorization: Bearer TOKEN
                 and `id`; so also those of POSTED

A request has a session of its own (`kpg.server.http_sessions`), so it has the limits and rights of any client.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from kpg.errors import (
    Closed,
    InputError,
    KpgError,
    NotAuthorised,
    ProgramError,
    ProtocolError,
    ResourceError,
    TimeNotReached,
    UndefinedName,
)
from kpg.observe.metrics import CONTENT_TYPE
from kpg.protocol import requests
from kpg.protocol.error_messages import failure_of
from kpg.protocol.json_schema import schema
from kpg.protocol.message_codec import plain, read
from kpg.protocol.replies import AnyReply, RowsReply
from kpg.protocol.strict_decoder import build
from kpg.server.client_connection import as_reply
from kpg.server.console_files import console_files, console_response
from kpg.server.http_connection import HttpRequest, Response
from kpg.server.http_sessions import follow, interest_request, perform
from kpg.server.hub import Hub
from kpg.server.request_handlers import last_time
from kpg.server.server_log import LOGGER, MEMBERS, log
from kpg.server.session import MAX_LOOP_CHARACTERS
from kpg.server.tokens import TokenHolder

STATUS_CODES: tuple[tuple[type[KpgError], int], ...] = (
    (NotAuthorised, 401), (UndefinedName, 404), (TimeNotReached, 503), (Closed, 503), (ResourceError, 429),
    (ProgramError, 400), (InputError, 400), (ProtocolError, 400),
)  # fmt: skip
POSTED: Final[dict[str, type[requests.Request]]] = {
    f"/{kind.kind}": kind
    for kind in (
        requests.TransactRequest, requests.QueryRequest, requests.SqlRequest, requests.CreateRelationRequest,
        requests.CreateAttributeRequest, requests.DropRelationRequest, requests.RegisterRequest,
        requests.UnregisterRequest, requests.ExplainRequest, requests.CatalogRequest, requests.PingRequest,
        requests.InspectRequest,
    )
}  # fmt: skip
READ: Final = ("/metrics", "/query", "/changes")  # with GET and a token
INTEGER_PARAMETERS = ("as_of", "limit")
READY_SECONDS = 5.0  # for the engine to respond; a request waits for a slice of 2 ms, and rarely for a large step
MAX_DIGITS = 16  # fits into 64 bits


async def respond(hub: Hub, request: HttpRequest) -> Response:
    """Reply to a request; an error becomes a reply with its status code. The reply and the log have its id."""
    id_, began = hub.next_http_id(), time.perf_counter()
    try:
        response = await route(hub, request)
    except Exception as error:
        shown = as_reply(error)
        assert isinstance(shown, KpgError)
        hub.metrics.add("kpg_refused_total", reason=type(shown).__name__)
        status = next((code for kind, code in STATUS_CODES if isinstance(shown, kind)), 500)
        response = Response(status, to_json({"error": plain(failure_of(shown))}))
        if shown is not error:
            LOGGER.error("an HTTP request failed", exc_info=error, extra={MEMBERS: {"request": id_}})
    path, seconds = request.target.partition("?")[0][:100], round(time.perf_counter() - began, 6)
    level = logging.DEBUG if response.status < 400 else logging.INFO
    log(level, "http request", request=id_, path=path, status=response.status, seconds=seconds)
    return replace(response, headers={**response.headers, "X-Request-Id": id_})


async def route(hub: Hub, request: HttpRequest) -> Response:
    """Reply to a request by its path."""
    try:
        parts = urlsplit(request.target)
    except ValueError:
        raise InputError("the URL is malformed") from None
    path, method = parts.path, request.method
    is_read = method in ("GET", "HEAD")
    if not is_read and not (method == "POST" and path in POSTED):
        allowed = ", ".join(["GET"] * (path not in POSTED or path in READ) + ["POST"] * (path in POSTED))
        reason = {"error": {"what": f"the method {method} is not supported"}}
        return Response(405, to_json(reason), headers={"Allow": allowed})
    if is_read and path == "/healthz":
        return Response(200, to_json({"status": "ok"}))
    if is_read and path == "/readyz":
        return await readiness(hub)
    if is_read and path == "/schema":
        return Response(200, to_json(schema()))
    if is_read and path == "/kpg.js":
        return Response(200, javascript_client(), "text/javascript; charset=utf-8")
    if is_read and path in console_files():
        return console_response(path, request.headers.get("Host", ""))
    if is_read and path not in READ:
        raise UndefinedName(
            f"no page is called {path[:100]!r}",
            hint="The pages are / (the console), /healthz, /readyz, /schema, /kpg.js, /metrics, /query and /changes; "
            f"with POST {', '.join(POSTED)}. The path for WebSocket is /.",
        )
    holder = authorise(hub, request.headers)
    if not is_read:
        return await post(hub, POSTED[path], request.body, holder)
    if path == "/metrics":
        if holder.tenant is not None:
            raise NotAuthorised(
                f"tenant {holder.tenant} may not read the metrics",
                detail="They name the queries and relations of all clients.",
                hint="Use a token without a tenant.",
            )
        return Response(200, await hub.prometheus_text(), CONTENT_TYPE)
    parameters = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    if path == "/query":
        return await query(hub, parameters, holder)
    return await changes(hub, parameters, request.headers.get("Last-Event-ID"), holder)


def authorise(hub: Hub, headers: Mapping[str, str]) -> TokenHolder:
    """Return what the token of a request grants; raise if it has no valid one."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    holder = hub.tokens.holder(token.strip() if scheme.lower() == "bearer" else None)
    if holder is None:
        raise NotAuthorised("a token is needed", hint="Send the header Authorization: Bearer TOKEN.")
    return holder


@cache
def javascript_client() -> str:
    """Return the text of the JavaScript client."""
    return files("kpg.client").joinpath("kpg.js").read_text()


async def readiness(hub: Hub) -> Response:
    """Reply with the last complete time if the engine responds soon and the server accepts requests."""
    if hub.is_ending:
        return Response(503, to_json({"status": "ending"}))
    try:
        complete = await asyncio.wait_for(asyncio.wrap_future(hub.engine.run(last_time)), READY_SECONDS)
    except TimeoutError:
        return Response(503, to_json({"status": "busy"}))
    return Response(200, to_json({"status": "ok", "time": complete, "sessions": hub.session_count}))


async def post(hub: Hub, kind: type[requests.Request], body: bytes, holder: TokenHolder) -> Response:
    """Run a request of the protocol, and reply with the members of its reply."""
    if len(body) > MAX_LOOP_CHARACTERS:
        request = await hub.loop.run_in_executor(hub.decoder, request_of, kind, body)
    else:
        request = request_of(kind, body)
    return await reply_to(hub, request, len(body), holder)


def request_of(kind: type[requests.Request], body: bytes) -> requests.Request:
    """Return the request that a body holds. Any thread may call this."""
    try:
        members: Any = read(body.decode()) if body else {}
    except UnicodeDecodeError:
        raise ProtocolError("the body is not UTF-8") from None
    if not isinstance(members, dict):
        raise ProtocolError("the body is not a JSON object", hint='For example {"text": "path"}.')
    return build(kind, {**members, "id": 0}, "$")


async def query(hub: Hub, parameters: dict[str, str], holder: TokenHolder) -> Response:
    """Reply to a query with the members of the message `rows`."""
    members = {
        name: parse_integer(name, value) if name in INTEGER_PARAMETERS else value for name, value in parameters.items()
    }
    return await reply_to(hub, build(requests.QueryRequest, {"id": 0, **members}, "$"), 0, holder)


async def reply_to(hub: Hub, request: requests.Request, size: int, holder: TokenHolder) -> Response:
    """Run a request. Many rows are sent page by page, as the client reads them: their body has no length."""
    reply, pages = await perform(hub, request, size, holder)
    if pages is None:
        return Response(200, await hub.written(reply_json, reply))
    members = members_of(reply)
    first = members.pop("rows")
    head = f'{to_json({"columns": members.pop("columns")})[:-2]},"rows":[{rows_json(first)}'
    end = f"],{to_json(members)[1:]}" if members else "]}\n"
    events = rows_events(head, pages, end)
    return Response(200, await anext(events), events=events)  # a generator that has begun runs its end when closed


async def rows_events(head: str, pages: AsyncGenerator[RowsReply, None], end: str) -> AsyncGenerator[str, None]:
    """Yield the head of a text, the rows of the pages after the first, and the end of the text."""
    async with aclosing(pages):
        yield head
        async for page in pages:
            yield f",{rows_json(plain(page)['rows'])}"
        yield end


def members_of(reply: AnyReply) -> dict[str, Any]:
    """Return the members of a reply over HTTP."""
    return {name: value for name, value in plain(reply).items() if name not in ("id", "more")}


def reply_json(reply: AnyReply) -> str:
    """Return a reply over HTTP as JSON text."""
    return to_json(members_of(reply))


def rows_json(rows: list[list[Any]]) -> str:
    """Return rows as a part of a JSON list."""
    return to_json(rows)[1:-2]


async def changes(hub: Hub, parameters: dict[str, str], last: str | None, holder: TokenHolder) -> Response:
    """Reply with the changes of an answer as events, from its rows on, or after the event that was received last."""
    unknown = parameters.keys() - {"name", "arguments", "granularity"}
    if unknown or "name" not in parameters:
        raise InputError("the parameters are name, arguments (JSON) and granularity", detail=f"Given: {[*parameters]}.")
    members: dict[str, Any] = {"name": parameters["name"]}
    for name in parameters.keys() & {"arguments", "granularity"}:
        members[name] = read(parameters[name])
    if isinstance(members.get("arguments"), dict):
        members["arguments"] = [members["arguments"]]
    first, events = await follow(hub, interest_request(members, last), holder)
    return Response(200, first, "text/event-stream", {"Cache-Control": "no-store"}, events)


def parse_integer(name: str, text: str) -> int:
    """Return the value of an integer parameter; raise if it is none."""
    if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS:
        raise InputError(f"{name} is not a whole number: {text[:40]!r}")
    return int(text)


def to_json(value: object) -> str:
    """Encode a value as one line of JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"
