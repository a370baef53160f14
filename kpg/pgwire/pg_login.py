"""The start of a connection: TLS, cancel requests, the start-up message, SCRAM, and the parameters of the session.

    login = await log_in(channel, backend, context)    None if the connection has ended, for example by a cancel request

Before a client has authenticated, nothing of the service is touched, and messages have at most 10,000 bytes.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kpg.errors import NotAuthorised, ProtocolError
from kpg.pgwire.scram_exchange import MECHANISM, ScramExchange
from kpg.pgwire.sql_backend import SqlBackend
from kpg.pgwire.startup_packets import CancelRequest, StartupMessage, TlsRequest, negotiate_version, read_startup
from kpg.pgwire.wire_channel import WireChannel
from kpg.pgwire.wire_format import AUTHENTICATED, MessageFields, authentication, cstring
from kpg.sql.sql_states import with_sqlstate

SASL, SASL_CONTINUE, SASL_FINAL = 10, 11, 12  # codes of authentication requests
INVALID_PASSWORD = "28P01"
INVALID_AUTHORIZATION = "28000"


@dataclass(frozen=True, slots=True)
class Login:
    """An authenticated client: its user name, what it may do, and the parameters that it asked for."""

    user: str
    holder: Any
    parameters: dict[str, str]


async def log_in(
    channel: WireChannel,
    backend: SqlBackend,
    context: ssl.SSLContext | None,
    cancel: Callable[[CancelRequest], None],
) -> Login | None:
    """Authenticate a client; None if it only asked to cancel a statement."""
    packet = read_startup(await channel.read_startup())
    while isinstance(packet, TlsRequest):
        offered = packet.is_tls and context is not None and not channel.is_encrypted
        channel.send(b"S" if offered else b"N")
        await channel.flush()
        if offered and context is not None:
            await channel.start_tls(context)
        packet = read_startup(await channel.read_startup())
    if isinstance(packet, CancelRequest):
        cancel(packet)
        return None
    if context is not None and not channel.is_encrypted:
        what = "this server accepts encrypted connections only"
        raise with_sqlstate(INVALID_AUTHORIZATION, NotAuthorised(what, hint="Connect with sslmode=require."))
    return await authenticate(channel, backend, packet)


async def authenticate(channel: WireChannel, backend: SqlBackend, startup: StartupMessage) -> Login:
    """Let a client prove who it is."""
    if startup.minor_version or startup.unknown_options:
        channel.send(negotiate_version(startup.unknown_options))
    user = startup.parameters.get("user", "")
    if not user:
        what = "no PostgreSQL user name specified in startup packet"
        raise with_sqlstate(INVALID_AUTHORIZATION, ProtocolError(what))
    if startup.parameters.get("replication", "off").lower() not in ("off", "false", "no", "0"):
        raise with_sqlstate("0A000", ProtocolError("replication connections are not supported"))
    candidates = backend.candidates(user)
    holder = await prove(channel, ScramExchange(candidates), user) if candidates else None
    channel.send(AUTHENTICATED)
    return Login(user, holder, startup.parameters)


async def prove(channel: WireChannel, exchange: ScramExchange[Any], user: str) -> Any:
    """Exchange the messages of SCRAM; return what the proof grants."""
    channel.send(authentication(SASL, cstring(MECHANISM) + b"\0"))
    await channel.flush()
    fields = MessageFields(await response(channel))
    if fields.text() != MECHANISM:
        raise ProtocolError("client selected an invalid SASL authentication mechanism")
    reply = exchange.first((fields.value() or b"").decode("utf-8", "replace"))
    channel.send(authentication(SASL_CONTINUE, reply.encode()))
    await channel.flush()
    granted = exchange.final((await response(channel)).decode("utf-8", "replace"))
    if granted is None:
        what = f'password authentication failed for user "{user}"'
        hint = "The password is a token of the server, or that of the user in its user file."
        raise with_sqlstate(INVALID_PASSWORD, NotAuthorised(what, hint=hint))
    holder, signature = granted
    channel.send(authentication(SASL_FINAL, signature.encode()))
    return holder


async def response(channel: WireChannel) -> bytes:
    """Return the next message of the authentication."""
    kind, body = await channel.read_message()
    if kind != b"p":
        raise ProtocolError("expected a response to the authentication request")
    return body
