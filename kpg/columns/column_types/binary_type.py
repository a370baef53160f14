"""binary: bytes of any length. The lane is the id of the bytes in the symbol table; bytes never equal a string."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.columns.column_types.column_type import NO_PARAMETERS, Parameters, SymbolicType, register
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.unfit_values import wrong_class

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols


def is_arrow_bytes(source: pa.DataType) -> bool:
    """Return whether an Arrow type is one of Arrow's four types of bytes."""
    kinds = pa.types
    fixed = kinds.is_fixed_size_binary(source)
    return fixed or kinds.is_binary(source) or kinds.is_large_binary(source) or kinds.is_binary_view(source)


def _write_base64(value: Any) -> str:
    return base64.b64encode(value).decode("ascii")


def _read_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


class BinaryType(SymbolicType):
    """Bytes of any length."""

    name = "binary"
    aliases = ("bytes",)
    python_class = bytes
    literal_classes = (bytes, bytearray, memoryview)
    plain_class = bytes
    large_arrow = pa.large_binary()
    message_text = TaggedText(
        "binary", literal_classes, _write_base64, _read_base64, 'Write {"binary": "a3Bn"}: base64.'
    )
    plan_text = TaggedText("bytes", (bytes,), _write_base64, base64.b64decode)

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise wrong_class(type_, value)
        return symbols.intern_one(bytes(value))

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.binary()

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if is_arrow_bytes(source) else None


register(BinaryType())
