"""The first packets of a connection, which have no kind: TLS requests, cancel requests, and the start-up parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kpg.errors import ProtocolError
from kpg.pgwire.wire_format import MessageFields, message

SSL_REQUEST: Final = 80877103
ENCRYPTION_REQUEST: Final = 80877104  # GSSAPI, which is always declined
CANCEL_REQUEST: Final = 80877102
MAJOR_VERSION: Final = 3
MAX_STARTUP_BYTES: Final = 10_000  # limit before authentication, as PostgreSQL has it


@dataclass(frozen=True, slots=True)
class TlsRequest:
    """A client asks whether the server speaks TLS, or GSSAPI."""

    is_tls: bool


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """A client asks to cancel the statement that another connection runs."""

    number: int
    secret: int


@dataclass(frozen=True, slots=True)
class StartupMessage:
    """The parameters of a new session."""

    minor_version: int
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def unknown_options(self) -> list[str]:
        """The options of the protocol itself, none of which this server has."""
        return [name for name in self.parameters if name.startswith("_pq_.")]


def read_startup(body: bytes) -> TlsRequest | CancelRequest | StartupMessage:
    """Return what the first packet of a connection asks for."""
    fields = MessageFields(body)
    code = fields.int32()
    if code in (SSL_REQUEST, ENCRYPTION_REQUEST):
        fields.finish()
        return TlsRequest(code == SSL_REQUEST)
    if code == CANCEL_REQUEST:
        request = CancelRequest(fields.int32() & 0xFFFFFFFF, fields.int32() & 0xFFFFFFFF)
        fields.finish()
        return request
    if code >> 16 != MAJOR_VERSION:
        raise ProtocolError(
            f"unsupported frontend protocol {code >> 16 & 0xFFFF}.{code & 0xFFFF}: server supports 3.0 to 3.0"
        )
    parameters: dict[str, str] = {}
    while name := fields.text():
        parameters[name] = fields.text()
    fields.finish()
    return StartupMessage(code & 0xFFFF, parameters)


def negotiate_version(options: list[str]) -> bytes:
    """Return NegotiateProtocolVersion: the server has minor version 0, and none of these options."""
    names = b"".join(name.encode() + b"\0" for name in options)
    return message(b"v", (0).to_bytes(4, "big") + len(options).to_bytes(4, "big") + names)
