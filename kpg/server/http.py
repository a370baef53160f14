"""The small HTTP side, on the same port: GET only, JSON but for the metrics.

/health     {"status": "ok", "time": 7}                          without a token
/schema     the JSON Schema of the protocol                      without a token
/metrics    Prometheus' text format                              Authorization: Bearer TOKEN
/query      ?text=path&language=datalog&as_of=3&limit=10         Authorization: Bearer TOKEN
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from kpg.server.hub import Hub, as_reply
from kpg.server.request_handlers import Found, last

STATUS: tuple[tuple[type[KpgError], int], ...] = (
    (NotAuthorised, 401), (UndefinedName, 404), (TimeNotReached, 503), (ResourceError, 429), (ProgramError, 400),
    (InputError, 400), (ProtocolError, 400),
)  # fmt: skip
NUMBERS = ("as_of", "limit")


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered."""

    status: int
    body: str
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


async def respond(hub: Hub, method: str, target: str, headers: Mapping[str, str]) -> Response:
    """The answer to a request; errors are answers too."""
    try:
        return await route(hub, method, target, headers)
    except Exception as error:
        said = as_reply(error)
        assert isinstance(said, KpgError)
        hub.metrics.add("kpg_refused_total", reason=type(said).__name__)
        status = next((code for kind, code in STATUS if isinstance(said, kind)), 500)
        return Response(status, dumped({"error": plain(failure_of(said))}))


async def route(hub: Hub, method: str, target: str, headers: Mapping[str, str]) -> Response:
    """The answer by path."""
    try:
        parts = urlsplit(target)
    except ValueError:
        raise InputError("the address cannot be read") from None
    if method not in ("GET", "HEAD"):
        return Response(405, dumped({"error": {"what": f"{method} has no meaning here"}}), headers={"Allow": "GET"})
    if parts.path == "/health":
        return await health(hub)
    if parts.path == "/schema":
        return Response(200, dumped(schema()))
    if parts.path not in ("/metrics", "/query"):
        raise UndefinedName(
            f"there is no page {parts.path[:100]!r}",
            hint="There are /health, /schema, /metrics, /query, and / for WebSocket.",
        )
    authorise(hub, headers)
    if parts.path == "/metrics":
        return Response(200, await hub.figures(), CONTENT_TYPE)
    return await query(hub, parts.query)


def authorise(hub: Hub, headers: Mapping[str, str]) -> None:
    """Refuse who has no token."""
    try:
        scheme, _, token = headers.get("Authorization", "").partition(" ")
    except LookupError:  # of websockets, whose headers do not choose among several
        raise InputError("the header Authorization is given twice") from None
    if hub.tokens.role(token.strip() if scheme.lower() == "bearer" else None) is None:
        raise NotAuthorised("a token is needed", hint="Send the header Authorization: Bearer TOKEN.")


async def health(hub: Hub) -> Response:
    """Whether the engine answers."""
    time = await asyncio.wrap_future(hub.engine.run(last))
    return Response(200, dumped({"status": "ok", "time": time, "sessions": len(hub.connected)}))


async def query(hub: Hub, text: str) -> Response:
    """One answer, as the message `rows` has it."""
    asked = {name: values[-1] for name, values in parse_qs(text, keep_blank_values=True).items()}
    given = {name: as_number(name, value) if name in NUMBERS else value for name, value in asked.items()}
    request = build(QueryRequest, {"id": 0, **given}, "$")
    found = await hub.query(request)
    return Response(200, await asyncio.to_thread(page_of, found))


def page_of(found: Found) -> str:
    """An answer as JSON; of many rows it takes a while, so it is made beside the event loop."""
    page = RowsReply(0, columns_of(found.table.schema), tuple(rows_of(found.table)), found.time, cut=found.cut)
    return dumped({name: value for name, value in plain(page).items() if name != "id"})


def as_number(name: str, text: str) -> int:
    """A whole number of the address."""
    if not text.isascii() or not text.isdigit() or len(text) > 16:
        raise InputError(f"{name} is not a whole number: {text[:40]!r}")
    return int(text)


def dumped(thing: object) -> str:
    """JSON."""
    return json.dumps(thing, separators=(",", ":"), ensure_ascii=False) + "\n"
