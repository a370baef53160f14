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

import math
from typing import Any, Final

from kpg.columns.column_types.tagged_text import MESSAGE_FORMAT, TaggedText
from kpg.errors import ProtocolError

EXACT: Final = 2**53 - 1  # the largest whole number that every reader of JSON takes exactly
_FLOAT: Final = MESSAGE_FORMAT["float"]
PLAIN: Final = frozenset({str, bool, type(None)})  # types that JSON has too


def encode_value(value: Any) -> Any:
    """Return a value of a row as JSON."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is int:
        return value if -EXACT <= value <= EXACT else {"int": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {"float": _FLOAT.write(value)}
    text = MESSAGE_FORMAT.of_value(value)
    if text is not None:
        return {text.tag: text.write(value)}
    if hasattr(value, "item"):  # NumPy's scalars
        return encode_value(value.item())
    raise ProtocolError(f"a value of type {kind.__name__} cannot be sent", hint="Send numbers, text, dates or bytes.")


def decode_value(json_value: Any, path: str = "$") -> Any:
    """Return the value that JSON stands for."""
    kind = type(json_value)
    if kind in PLAIN:
        return json_value
    if kind is int:
        if -EXACT <= json_value <= EXACT:
            return json_value
        raise refused(path, "a number beyond 2^53 may have been rounded", f'Write {{"int": "{str(json_value)[:24]}"}}.')
    if kind is float:
        if math.isfinite(json_value):
            return json_value
        raise refused(path, "the number is too large for a float", _FLOAT.example)
    if kind is dict and len(json_value) == 1:
        ((tag, text),) = json_value.items()
        reader = MESSAGE_FORMAT.of_tag(tag)
        if reader is not None and type(text) is str:
            return tagged(reader, text, path)
    tags = ", ".join(MESSAGE_FORMAT.tags)
    raise refused(path, "this is not a value", f'Values are null, true, 1, 1.5, "text", or {{tag: text}} with {tags}.')


def tagged(reader: TaggedText, text: str, path: str) -> Any:
    """Return the value of a tagged text."""
    try:
        return reader.read(text)
    except (ValueError, ArithmeticError):
        shown = text if len(text) <= 40 else text[:40] + "..."
        raise refused(path, f"{shown!r} is not a value of type {reader.tag}", reader.example) from None


def refused(path: str, what: str, hint: str | None = None) -> ProtocolError:
    """Return the error of a mistake at a path of a message."""
    error = ProtocolError(f"{path}: {what}", hint=hint)
    error.path = path
    return error
