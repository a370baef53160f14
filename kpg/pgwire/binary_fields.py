"""Columns of a result in PostgreSQL's binary format: arrays of bytes, null for null.

    smallint, integer, bigint, real, double precision     big-endian, of their size
    date                                                  days since 2000-01-01, 32 bits
    timestamp, timestamp with time zone, time             microseconds since 2000-01-01, or midnight, 64 bits
    interval                                              microseconds (64), days (32), months (32)
    numeric                                               digits to the base 10000, with weight, sign and scale
    text, bytea, uuid                                     their bytes; jsonb has a version byte before its text
    arrays                                                dimensions, the type of elements, then each with its length

Types of a fixed size are converted with NumPy; numeric, interval and arrays value by value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.interval import Interval
from kpg.columns.schema import Type
from kpg.pgwire.text_fields import has_distinct, single_array, text_field
from kpg.pgwire.wire_types import oid_of
from kpg.sql.sql_types import SqlType

UNIX_TO_POSTGRES_DAYS: Final = 10_957  # from 1970-01-01 to 2000-01-01
UNIX_TO_POSTGRES_MICROSECONDS: Final = UNIX_TO_POSTGRES_DAYS * 86_400_000_000
FIXED: Final = {  # types of a fixed size: the type of Arrow to read them as, that of NumPy to send, what to subtract
    "smallint": (pa.int64(), ">i2", 0),
    "integer": (pa.int64(), ">i4", 0),
    "oid": (pa.int64(), ">u4", 0),
    "bigint": (pa.int64(), ">i8", 0),
    "real": (pa.float64(), ">f4", 0),
    "double precision": (pa.float64(), ">f8", 0),
    "date": (pa.int32(), ">i4", UNIX_TO_POSTGRES_DAYS),
    "time without time zone": (pa.int64(), ">i8", 0),
    "timestamp without time zone": (pa.int64(), ">i8", UNIX_TO_POSTGRES_MICROSECONDS),
    "timestamp with time zone": (pa.int64(), ">i8", UNIX_TO_POSTGRES_MICROSECONDS),
}


def binary_field(column: Any, kind: Type, type_: SqlType) -> Any:
    """Return a column in the binary format."""
    array = single_array(column)
    if type_.name == "boolean":
        return pc.if_else(array, b"\x01", b"\x00").cast(pa.binary())
    if type_.name in FIXED:
        return fixed_field(array, *FIXED[type_.name])
    if type_.name == "bytea":
        return array.cast(pa.binary())
    if type_.name == "uuid":
        return getattr(array, "storage", array).cast(pa.binary())
    if type_.name == "jsonb":
        return pc.binary_join_element_wise(b"\x01", array.cast(pa.binary()), b"")
    if type_.is_text or type_.name == "unknown":
        return text_field(column, kind, type_)
    if has_distinct(array.type):
        encoded = array.dictionary_encode()
        return packed_values(encoded.dictionary, kind, type_).take(encoded.indices)
    return packed_values(array, kind, type_)


def fixed_field(array: Any, read_as: Any, send_as: str, origin: int) -> Any:
    """Return values of a fixed size."""
    plain = pc.fill_null(array.cast(read_as, safe=False), 0).to_numpy(zero_copy_only=False)
    sent = (plain - origin).astype(send_as)
    valid = None if not array.null_count else pa.array(pc.is_valid(array)).buffers()[1]
    size = sent.dtype.itemsize
    buffers = [valid, pa.py_buffer(sent.tobytes())]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), len(array), buffers).cast(pa.binary())


def packed_values(array: Any, kind: Type, type_: SqlType) -> Any:
    """Return each value in the binary format."""
    pack = packer(type_)
    values = kind.definition.arrow_to_list(kind, pa.chunked_array([array]))
    return pa.array([None if value is None else pack(value) for value in values], pa.binary())


def packer(type_: SqlType) -> Callable[[Any], bytes]:
    """Return the function that writes one value of a type."""
    if type_.element is not None:
        element = type_.element
        return lambda values: pack_array(values, element)
    return PACKERS[type_.name]


def pack_numeric(value: Decimal | int) -> bytes:
    """Return an exact number."""
    value = Decimal(value)
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return struct.pack("!HhHH", 0, 0, 0xC000, 0)  # not a number
    scale = max(0, -exponent)
    number = int("".join(map(str, digits))) * 10 ** max(0, exponent)
    fraction_groups = -(-scale // 4)
    number *= 10 ** (fraction_groups * 4 - scale)
    groups: list[int] = []
    while number:
        number, group = divmod(number, 10_000)
        groups.append(group)
    groups.reverse()
    weight = len(groups) - fraction_groups - 1
    while groups and groups[-1] == 0:
        groups.pop()
    head = struct.pack("!HhHH", len(groups), weight if groups else 0, 0x4000 if sign and groups else 0, scale)
    return head + struct.pack(f"!{len(groups)}H", *groups)


def pack_interval(value: Interval) -> bytes:
    """Return an interval."""
    return struct.pack("!qii", value.microseconds, value.days, value.months)


def pack_array(values: Any, element: SqlType) -> bytes:
    """Return an array of one dimension; an empty one has none."""
    if not values:
        return struct.pack("!iiI", 0, 0, oid_of(element))
    pack = packer(element)
    parts = [struct.pack("!iiIii", 1, int(any(v is None for v in values)), oid_of(element), len(values), 1)]
    for value in values:
        packed = None if value is None else pack(value)
        parts.append(struct.pack("!i", -1) if packed is None else struct.pack("!i", len(packed)) + packed)
    return b"".join(parts)


def microseconds_of_day(value: Any) -> int:
    """Return a time of day in microseconds."""
    return int(((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond)


def microseconds_since_2000(value: Any) -> int:
    """Return a moment in microseconds since 2000-01-01."""
    days = value.toordinal() - 730_120  # the ordinal of 2000-01-01
    return int(days * 86_400_000_000) + microseconds_of_day(value)


PACKERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "boolean": lambda value: b"\x01" if value else b"\x00",
    "smallint": struct.Struct("!h").pack,
    "integer": struct.Struct("!i").pack,
    "oid": struct.Struct("!I").pack,
    "bigint": struct.Struct("!q").pack,
    "real": struct.Struct("!f").pack,
    "double precision": struct.Struct("!d").pack,
    "text": str.encode,
    "character varying": str.encode,
    "character": str.encode,
    "name": str.encode,
    "unknown": str.encode,
    "bytea": bytes,
    "date": lambda value: struct.pack("!i", value.toordinal() - 730_120),
    "time without time zone": lambda value: struct.pack("!q", microseconds_of_day(value)),
    "timestamp without time zone": lambda value: struct.pack("!q", microseconds_since_2000(value)),
    "timestamp with time zone": lambda value: struct.pack("!q", microseconds_since_2000(value)),
    "interval": pack_interval,
    "numeric": pack_numeric,
    "uuid": lambda value: value.bytes,
    "jsonb": lambda value: b"\x01" + str(value).encode(),
}
