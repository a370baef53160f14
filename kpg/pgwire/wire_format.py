"""The messages of PostgreSQL's protocol 3.0 as bytes: fields of incoming ones, and whole outgoing ones.

    message(b"Z", b"I")                    a message: kind, length, body
    MessageFields(body).text()             the next field of a message that arrived

A message is its kind (one byte), its length without the kind (32 bits, big-endian), and its body. Reading beyond the
end of a body, or text that is not UTF-8, raises ProtocolError, never another exception.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kpg.errors import ProtocolError

INT16: Final = struct.Struct("!h")
UINT16: Final = struct.Struct("!H")
INT32: Final = struct.Struct("!i")

TEXT_FORMAT: Final = 0
BINARY_FORMAT: Final = 1

PARSE_COMPLETE: Final = b"1\x00\x00\x00\x04"
BIND_COMPLETE: Final = b"2\x00\x00\x00\x04"
CLOSE_COMPLETE: Final = b"3\x00\x00\x00\x04"
NO_DATA: Final = b"n\x00\x00\x00\x04"
EMPTY_QUERY: Final = b"I\x00\x00\x00\x04"
PORTAL_SUSPENDED: Final = b"s\x00\x00\x00\x04"
COPY_DONE: Final = b"c\x00\x00\x00\x04"
AUTHENTICATED: Final = b"R\x00\x00\x00\x08\x00\x00\x00\x00"


class MessageFields:
    """The fields of one message, read from left to right."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        end = self._at + count
        if count < 0 or end > len(self._body):
            raise ProtocolError("a message ends before its fields do")
        taken = self._body[self._at : end]
        self._at = end
        return taken

    def int16(self) -> int:
        """Return the next integer of 16 bits."""
        return int(INT16.unpack(self.take(2))[0])

    def count16(self) -> int:
        """Return the next number of fields, of 16 bits without a sign."""
        return int(UINT16.unpack(self.take(2))[0])

    def int32(self) -> int:
        """Return the next integer of 32 bits."""
        return int(INT32.unpack(self.take(4))[0])

    def text(self) -> str:
        """Return the next text, which ends with a zero byte."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolError("a text in a message has no end")
        taken = self._body[self._at : end]
        self._at = end + 1
        return decoded(taken)

    def value(self) -> bytes | None:
        """Return the next value with its length; None is null."""
        length = self.int32()
        return None if length == -1 else self.take(length)

    def rest(self) -> bytes:
        """Return all bytes that are left."""
        return self.take(len(self._body) - self._at)

    @property
    def at_end(self) -> bool:
        """Whether all fields were read."""
        return self._at == len(self._body)

    def finish(self) -> None:
        """Raise if the message has more bytes than its fields."""
        if not self.at_end:
            raise ProtocolError("a message goes on after its fields")


def decoded(data: bytes) -> str:
    """Return bytes as text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtocolError("a text in a message is not UTF-8", hint="kpg has client_encoding UTF8 only.") from None


# Messages of the server


@dataclass(frozen=True, slots=True)
class WireColumn:
    """A column of a result, as RowDescription describes it."""

    name: str
    oid: int
    size: int
    modifier: int


def message(kind: bytes, body: bytes) -> bytes:
    """Return a whole message."""
    return kind + INT32.pack(len(body) + 4) + body


def cstring(text: str) -> bytes:
    """Return a text with the zero byte that ends it; zero bytes within are left out."""
    return text.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"


def row_description(columns: Sequence[WireColumn], formats: Sequence[int]) -> bytes:
    """Return RowDescription."""
    parts = [UINT16.pack(len(columns))]
    for column, form in zip(columns, formats, strict=True):
        parts.append(cstring(column.name))
        parts.append(struct.pack("!IhIhih", 0, 0, column.oid, column.size, column.modifier, form))
    return message(b"T", b"".join(parts))


def parameter_description(oids: Sequence[int]) -> bytes:
    """Return ParameterDescription."""
    return message(b"t", UINT16.pack(len(oids)) + b"".join(struct.pack("!I", oid) for oid in oids))


def command_complete(tag: str) -> bytes:
    """Return CommandComplete."""
    return message(b"C", cstring(tag))


def ready_for_query(status: str) -> bytes:
    """Return ReadyForQuery: I outside a transaction, T inside, E if it has failed."""
    return message(b"Z", status.encode())


def parameter_status(name: str, value: str) -> bytes:
    """Return ParameterStatus."""
    return message(b"S", cstring(name) + cstring(value))


def key_data(number: int, secret: int) -> bytes:
    """Return BackendKeyData, which a cancel request repeats."""
    return message(b"K", struct.pack("!II", number, secret))


def notice_fields(kind: bytes, fields: Mapping[str, str]) -> bytes:
    """Return ErrorResponse (kind E) or NoticeResponse (kind N)."""
    body = b"".join(code.encode() + cstring(text) for code, text in fields.items())
    return message(kind, body + b"\0")


def copy_response(kind: bytes, columns: int, form: int) -> bytes:
    """Return CopyInResponse (kind G) or CopyOutResponse (kind H)."""
    return message(kind, struct.pack("!bH", form, columns) + UINT16.pack(form) * columns)


def authentication(code: int, body: bytes = b"") -> bytes:
    """Return a request of the server for authentication."""
    return message(b"R", INT32.pack(code) + body)
