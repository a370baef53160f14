"""uuid: universally unique identifiers. The lane is the id of the 16 bytes in the symbol table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa

from kpg.columns.column_types.column_type import NO_PARAMETERS, Parameters, SymbolicType, register
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.unfit_values import UnfitValue, wrong_class
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

_BYTES = 16  # of every identifier


class UuidType(SymbolicType):
    """Universally unique identifiers."""

    name = "uuid"
    python_class = UUID
    literal_classes = (UUID,)
    large_arrow = pa.large_binary()
    message_text = TaggedText(
        "uuid", (UUID,), str, UUID, 'Write {"uuid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}: 32 hexadecimal digits.'
    )
    plan_text = TaggedText("uuid", (UUID,), str, UUID)

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if isinstance(value, str):
            try:
                value = UUID(value)
            except ValueError as error:
                raise UnfitValue(str(error)) from None
        if isinstance(value, bytes) and len(value) == _BYTES:
            return symbols.intern_one(value)
        if not isinstance(value, UUID):
            raise wrong_class(type_, value)
        return symbols.intern_one(value.bytes)

    def encode_plain(self, type_: Type, values: Sequence[Any], has_null: bool, symbols: Symbols) -> Ints | None:
        return None

    def decode_list(self, type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
        return [None if value is None else UUID(bytes=value) for value in symbols.values(lane)]

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.uuid()

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if source == pa.uuid() else None

    def accepts_arrow(self, source: pa.DataType) -> bool:
        is_bytes = pa.types.is_fixed_size_binary(source) and source.byte_width == _BYTES
        return bool(is_bytes or source == pa.uuid())

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        column = pa.chunked_array([symbols.text(lane, pa.binary())], pa.binary()).cast(pa.binary(_BYTES))
        return pa.ExtensionArray.from_storage(pa.uuid(), column.combine_chunks())


register(UuidType())
