"""The HTTP endpoints of a server, on the same port as WebSocket. GET only; replies are JSON, except the metrics.

/healthz    {"status": "ok"}: the process responds               without a token
/readyz     {"status": "ok", "time": 7}: the engine responds     without a token; 503 while it starts or ends
/schema     the JSON Schema of the protocol                      without a token
/metrics    Prometheus' text format                              Authorization: Bearer TOKEN
/query      ?text=path&language=datalog&as_of=3&limit=10         Authorization: Bearer TOKEN
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs, urlsplit

from kpg.columns.rows import rows_of
from kpg.errors import (
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
from kpg.protocol.error_messages import failure_of
from kpg.protocol.json_schema import schema
from kpg.protocol.message_codec import plain
from kpg.protocol.replies import RowsReply
from kpg.protocol.requests import QueryRequest
from kpg.protocol.strict_decoder import build
from kpg.protocol.table_messages import columns_of
from kpg.server.change_payload import QueryRows
from kpg.server.client_connection import as_reply
from kpg.server.hub import Hub
from kpg.server.request_handlers import last_time
from kpg.server.server_log import LOGGER, MEMBERS, log
from kpg.server.tokens import TokenHolder

STATUS_CODES: tuple[tuple[type[KpgError], int], ...] = (
    (NotAuthorised, 401), (UndefinedName, 404), (TimeNotReached, 503), (ResourceError, 429), (ProgramError, 400),
    (InputError, 400), (ProtocolError, 400),
)  # fmt: skip
INTEGER_PARAMETERS = ("as_of", "limit")
READY_SECONDS = 5.0  # for the engine to respond; a request waits for a slice of 2 ms, and rarely for a large step
MAX_DIGITS = 16  # fits into 64 bits


@dataclass(frozen=True, slots=True)
class Response:
    """The reply to an HTTP request."""

    status: int
    body: str
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


async def respond(hub: Hub, method: str, target: str, headers: Mapping[str, str]) -> Response:
    """Reply to a request; an error becomes a reply with its status code. The reply and the log have its id."""
    id_, began = hub.next_http_id(), time.perf_counter()
    try:
        response = await route(hub, method, target, headers)
    except Exception as error:
        shown = as_reply(error)
        assert isinstance(shown, KpgError)
        hub.metrics.add("kpg_refused_total", reason=type(shown).__name__)
        status = next((code for kind, code in STATUS_CODES if isinstance(shown, kind)), 500)
        response = Response(status, to_json({"error": plain(failure_of(shown))}))
        if shown is not error:
            LOGGER.error("an HTTP request failed", exc_info=error, extra={MEMBERS: {"request": id_}})
    path, seconds = target.partition("?")[0][:100], round(time.perf_counter() - began, 6)
    level = logging.DEBUG if response.status < 400 else logging.INFO
    log(level, "http request", request=id_, path=path, status=response.status, seconds=seconds)
    return replace(response, headers={**response.headers, "X-Request-Id": id_})


async def route(hub: Hub, method: str, target: str, headers: Mapping[str, str]) -> Response:
    """Reply to a request by its path."""
    try:
        parts = urlsplit(target)
    except ValueError:
        raise InputError("the URL is malformed") from None
    if method not in ("GET", "HEAD"):
        return Response(
            405, to_json({"error": {"what": f"the method {method} is not supported"}}), headers={"Allow": "GET"}
        )
    if parts.path == "/healthz":
        return Response(200, to_json({"status": "ok"}))
    if parts.path == "/readyz":
        return await readiness(hub)
    if parts.path == "/schema":
        return Response(200, to_json(schema()))
    if parts.path not in ("/metrics", "/query"):
        raise UndefinedName(
            f"no page is called {parts.path[:100]!r}",
            hint="The pages are /healthz, /readyz, /schema, /metrics, /query, and / for WebSocket.",
        )
    holder = authorise(hub, headers)
    if parts.path == "/metrics":
        return Response(200, await hub.prometheus_text(), CONTENT_TYPE)
    return await query(hub, parts.query, holder)


def authorise(hub: Hub, headers: Mapping[str, str]) -> TokenHolder:
    """Return what the token of a request grants; raise if it has no valid one."""
    try:
        scheme, _, token = headers.get("Authorization", "").partition(" ")
    except LookupError:  # websockets raises this for a repeated header
        raise InputError("the header Authorization is given twice") from None
    holder = hub.tokens.holder(token.strip() if scheme.lower() == "bearer" else None)
    if holder is None:
        raise NotAuthorised("a token is needed", hint="Send the header Authorization: Bearer TOKEN.")
    return holder


async def readiness(hub: Hub) -> Response:
    """Reply with the last complete time if the engine responds soon and the server accepts requests."""
    if hub.is_ending:
        return Response(503, to_json({"status": "ending"}))
    try:
        complete = await asyncio.wait_for(asyncio.wrap_future(hub.engine.run(last_time)), READY_SECONDS)
    except TimeoutError:
        return Response(503, to_json({"status": "busy"}))
    return Response(200, to_json({"status": "ok", "time": complete, "sessions": len(hub.clients)}))


async def query(hub: Hub, text: str, holder: TokenHolder) -> Response:
    """Reply to a query with the members of the message `rows`."""
    parameters = {name: values[-1] for name, values in parse_qs(text, keep_blank_values=True).items()}
    members = {
        name: parse_integer(name, value) if name in INTEGER_PARAMETERS else value for name, value in parameters.items()
    }
    request = build(QueryRequest, {"id": 0, **members}, "$")
    rows = await hub.query(request, holder)
    return Response(200, await asyncio.to_thread(rows_as_json, rows))


def rows_as_json(rows: QueryRows) -> str:
    """Return rows as JSON. Many rows take long to encode, so this runs outside the event loop."""
    reply = RowsReply(0, columns_of(rows.table.schema), tuple(rows_of(rows.table)), rows.time, cut=rows.cut)
    return to_json({name: value for name, value in plain(reply).items() if name != "id"})


def parse_integer(name: str, text: str) -> int:
    """Return the value of an integer parameter; raise if it is none."""
    if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS:
        raise InputError(f"{name} is not a whole number: {text[:40]!r}")
    return int(text)


def to_json(value: object) -> str:
    """Encode a value as one line of JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"
