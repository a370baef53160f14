"""Parameters of a statement: bytes of a client in text or binary format, as typed values of SQL.

Text is read as a literal of the type is. Bytes that are no value of the type raise InputError with PostgreSQL's
SQLSTATE: 22P02 for text, 22P03 for the binary format.
"""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from kpg.columns.interval import Interval
from kpg.errors import InputError, KpgError, NotSupported
from kpg.pgwire.wire_format import TEXT_FORMAT, MessageFields, decoded
from kpg.pgwire.wire_types import TYPES, UNSPECIFIED
from kpg.sql.bind.parameter_values import TypedParameter
from kpg.sql.functions.sql_literals import read_literal
from kpg.sql.sql_states import with_sqlstate
from kpg.sql.sql_types import JSONB, SqlType

EPOCH: Final = datetime.datetime(2000, 1, 1)
UTC_EPOCH: Final = EPOCH.replace(tzinfo=datetime.UTC)
INVALID_BINARY: Final = "22P03"
MAX_NUMERIC_GROUPS: Final = 100  # of four digits; no column holds as many


def read_parameter(data: bytes | None, form: int, type_: SqlType) -> TypedParameter:
    """Return the value of a parameter."""
    if data is None:
        return TypedParameter(*read_literal(None, type_))
    if form == TEXT_FORMAT:
        return TypedParameter(*read_literal(decoded(data), type_))
    try:
        value = unpack(data, type_)
    except (struct.error, ValueError, OverflowError, ArithmeticError):
        what = f"incorrect binary data for a parameter of type {type_}"
        raise with_sqlstate(INVALID_BINARY, InputError(what)) from None
    if type_.name == "numeric" and type_.precision is None:
        return TypedParameter(*read_literal(f"{value:f}", type_))
    return TypedParameter(value, type_)


def unpack(data: bytes, type_: SqlType) -> Any:
    """Return a value in the binary format."""
    if type_.element is not None:
        return unpack_array(data, type_.element)
    reader = UNPACKERS.get(type_.name)
    if reader is None:
        what = f"the binary format of {type_} is not supported"
        raise with_sqlstate("0A000", NotSupported(what, hint="Send it as text."))
    return reader(data)


def unpack_array(data: bytes, element: SqlType) -> tuple[Any, ...]:
    """Return an array of at most one dimension."""
    fields = MessageFields(data)
    try:
        dimensions, _, oid = fields.int32(), fields.int32(), fields.int32()
        if dimensions == 0:
            return ()
        if dimensions != 1:
            raise with_sqlstate("0A000", NotSupported("arrays of several dimensions are not supported"))
        count, _ = fields.int32(), fields.int32()
        sent = element if oid in UNSPECIFIED or TYPES.get(oid) is None else TYPES[oid]
        values = tuple(None if part is None else unpack(part, sent) for part in (fields.value() for _ in range(count)))
        fields.finish()
        return values
    except KpgError as error:
        if error.sqlstate is not None:
            raise
        raise ValueError("malformed array") from None


def unpack_numeric(data: bytes) -> Decimal:
    """Return an exact number."""
    count, weight, sign, scale = struct.unpack_from("!HhHH", data)
    if sign not in (0, 0x4000) or count > MAX_NUMERIC_GROUPS or abs(weight) > MAX_NUMERIC_GROUPS or scale > 400:
        raise ValueError("not a finite number that a column holds")
    groups = struct.unpack(f"!{count}H", data[8:])
    if any(group >= 10_000 for group in groups):
        raise ValueError("a digit to the base 10000 is too large")
    whole = int("".join(f"{group:04d}" for group in groups) or "0")
    exponent = 4 * (weight + 1 - count)
    text = f"{'-' if sign else ''}{whole}e{exponent}"
    return Decimal(f"{Decimal(text):.{scale}f}")


def unpack_interval(data: bytes) -> Interval:
    """Return an interval."""
    microseconds, days, months = struct.unpack("!qii", data)
    return Interval(months, days, microseconds)


def unpack_jsonb(data: bytes) -> Any:
    """Return a JSON value; version 1 of the format is text."""
    if data[:1] != b"\x01":
        raise ValueError("unsupported jsonb version")
    return read_literal(data[1:].decode(), JSONB)[0]


def unpack_boolean(data: bytes) -> bool:
    """Return a truth value of one byte."""
    (byte,) = struct.unpack("!B", data)
    return bool(byte)


def unpack_time(data: bytes) -> datetime.time:
    """Return a time of day."""
    (microseconds,) = struct.unpack("!q", data)
    if not 0 <= microseconds < 86_400_000_000:
        raise ValueError("not a time of day")
    return (EPOCH + datetime.timedelta(microseconds=microseconds)).time()


def first(form: str) -> Callable[[bytes], Any]:
    """Return a function that reads the only value of a struct."""
    layout = struct.Struct(form)
    return lambda data: layout.unpack(data)[0]


_read_int32: Final = first("!i")
_read_int64: Final = first("!q")

UNPACKERS: Final[dict[str, Callable[[bytes], Any]]] = {
    "boolean": unpack_boolean,
    "smallint": first("!h"),
    "integer": _read_int32,
    "oid": first("!I"),
    "bigint": _read_int64,
    "real": first("!f"),
    "double precision": first("!d"),
    "text": bytes.decode,
    "character varying": bytes.decode,
    "character": bytes.decode,
    "name": bytes.decode,
    "bytea": bytes,
    "date": lambda data: EPOCH.date() + datetime.timedelta(days=_read_int32(data)),
    "time without time zone": unpack_time,
    "timestamp without time zone": lambda data: EPOCH + datetime.timedelta(microseconds=_read_int64(data)),
    "timestamp with time zone": lambda data: UTC_EPOCH + datetime.timedelta(microseconds=_read_int64(data)),
    "interval": unpack_interval,
    "numeric": unpack_numeric,
    "uuid": lambda data: uuid.UUID(bytes=data),
    "jsonb": unpack_jsonb,
}
