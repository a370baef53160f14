"""Values of rows as JSON, exactly and without a schema.

    null, bool, string           as JSON has them
    int64                        a number up to 2^53 - 1, where JSON's numbers stop being exact; beyond {"int": "..."}
    float64                      a number with a point or an exponent; {"float": "NaN"}, "Infinity", "-Infinity"
    decimal, date, timestamp     {"decimal": "9.50"}, {"date": "2024-05-01"}, {"timestamp": "2024-05-01T12:00:00Z"}
    binary                       {"binary": "..."} in base64

    decode_value(encode_value(x)) == x        for every value of every type; NaN is NaN

A bare number beyond 2^53 is refused: most writers of JSON have rounded it already.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from kpg.errors import ProtocolError

EXACT: Final = 2**53 - 1  # of JSON's numbers
INT64: Final = 2**63
PLAIN: Final = frozenset({str, bool, type(None)})  # the same in JSON and here
WHOLE = re.compile(r"-?[0-9]{1,20}")
NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?")
TAGS: Final = ("int", "float", "decimal", "date", "timestamp", "binary")


def encode_value(value: Any) -> Any:
    """A value of a row as JSON."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is int:
        return value if -EXACT <= value <= EXACT else {"int": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {"float": show_float(value)}
    if kind is Decimal:
        return {"decimal": f"{value:f}"}
    if isinstance(value, datetime.datetime):
        return {"timestamp": show_timestamp(value)}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"binary": base64.b64encode(value).decode("ascii")}
    if hasattr(value, "item"):  # NumPy's scalars
        return encode_value(value.item())
    raise ProtocolError(f"a value of type {kind.__name__} cannot be sent", hint="Send numbers, text, dates or bytes.")


def show_float(value: float) -> str:
    """A float that is no number of JSON."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def show_timestamp(value: datetime.datetime) -> str:
    """A moment in UTC; without a zone it is taken as UTC."""
    moment = value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)
    return moment.replace(tzinfo=None).isoformat() + "Z"


def decode_value(given: Any, path: str = "$") -> Any:
    """The value that JSON stands for."""
    kind = type(given)
    if kind in PLAIN:
        return given
    if kind is int:
        if -EXACT <= given <= EXACT:
            return given
        raise refused(path, "a number beyond 2^53 may have been rounded", f'Write {{"int": "{str(given)[:24]}"}}.')
    if kind is float:
        if math.isfinite(given):
            return given
        raise refused(path, "the number is too large for a float", EXAMPLES["float"])
    if kind is dict and len(given) == 1:
        ((tag, text),) = given.items()
        if tag in READERS and type(text) is str:
            return tagged(tag, text, path)
    raise refused(
        path, "this is not a value", f'Values are null, true, 1, 1.5, "text", or {{tag: text}} with {", ".join(TAGS)}.'
    )


def tagged(tag: str, text: str, path: str) -> Any:
    """The value of a tagged text."""
    try:
        return READERS[tag](text)
    except (ValueError, InvalidOperation, binascii.Error, OverflowError):
        shown = text if len(text) <= 40 else text[:40] + "..."
        raise refused(path, f"{shown!r} is not a value of type {tag}", EXAMPLES[tag]) from None


def read_int(text: str) -> int:
    """An int64 from its digits."""
    if not WHOLE.fullmatch(text) or not -INT64 <= int(text) < INT64:
        raise ValueError
    return int(text)


def read_float(text: str) -> float:
    """A float, of which NaN and infinities have names."""
    if text in ("NaN", "Infinity", "-Infinity"):
        return float(text)
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def read_decimal(text: str) -> Decimal:
    """A decimal as it is written."""
    if not NUMBER.fullmatch(text):
        raise ValueError
    return Decimal(text)


def read_timestamp(text: str) -> datetime.datetime:
    """A moment, which must say its zone."""
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment.astimezone(datetime.UTC)


def read_binary(text: str) -> bytes:
    """Bytes from base64."""
    return base64.b64decode(text, validate=True)


READERS: Final[dict[str, Callable[[str], Any]]] = {
    "int": read_int,
    "float": read_float,
    "decimal": read_decimal,
    "date": datetime.date.fromisoformat,
    "timestamp": read_timestamp,
    "binary": read_binary,
}
EXAMPLES: Final = {
    "int": 'Write {"int": "9223372036854775807"}: digits within 64 bits.',
    "float": 'Write {"float": "NaN"}, "Infinity" or "-Infinity".',
    "decimal": 'Write {"decimal": "9.50"}: digits and a point.',
    "date": 'Write {"date": "2024-05-01"}.',
    "timestamp": 'Write {"timestamp": "2024-05-01T12:00:00Z"}, with its zone.',
    "binary": 'Write {"binary": "a3Bn"}: base64.',
}


def refused(path: str, what: str, hint: str | None = None) -> ProtocolError:
    """An error at a place in a message, to be raised."""
    made = ProtocolError(f"{path}: {what}", hint=hint)
    made.path = path
    return made
