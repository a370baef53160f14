"""uuid: universally unique identifiers, as two lanes that sort as the identifiers do.

    lanes(u)  =  (upper 64 bits - 2**63,  lower 64 bits - 2**63)
                 the lower lane is one more if the upper 64 bits are all zero

All 2**128 pairs of lanes are taken, and a nullable column needs one for null. The exception makes room for it: the pair
of null, NULL in both lanes, is no identifier, and the nil UUID follows it. The one identifier that does not fit is
00000000-0000-0000-ffff-ffffffffffff, which no version of UUIDs generates; a column refuses it.

Directories written before had the id of the 16 bytes in the symbol table as their one lane; see `from_stored_bytes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa

from kpg.columns.arrow_arrays import validity
from kpg.columns.column_types.column_type import NO_PARAMETERS, Parameters, WideType, null_mask, put_nulls, register
from kpg.columns.column_types.string_type import is_arrow_text
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.lane_values import MAX, NULL
from kpg.columns.unfit_values import UnfitValue, wrong_class
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

_BYTES: Final = 16  # of every identifier
_SIGN_BIT: Final = np.int64(NULL)
_WORD_MASK: Final = 2**64 - 1
UNFIT_UUID: Final = UUID(
    int=_WORD_MASK
)  # would need the lanes that follow those of all other values with its upper half


class UuidType(WideType):
    """Universally unique identifiers."""

    name = "uuid"
    lanes = 2
    python_class = UUID
    literal_classes = (UUID,)
    message_text = TaggedText(
        "uuid", (UUID,), str, UUID, 'Write {"uuid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}: 32 hexadecimal digits.'
    )
    plan_text = TaggedText("uuid", (UUID,), str, UUID)

    def encode_lanes(self, type_: Type, value: Any, symbols: Symbols) -> tuple[int, ...]:
        number = _identifier(type_, value).int
        if number == UNFIT_UUID.int:
            raise UnfitValue(f"{UNFIT_UUID} is the one identifier that {type_} cannot hold")
        high, low = number >> 64, number & _WORD_MASK
        return high + NULL, low + NULL + (high == 0)

    def decode_list(self, type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
        pairs = zip(*lane.tolist(), strict=True)
        values = [
            UUID(int=((high - NULL) << 64) + (low - NULL - (high == NULL)) % 2**64) for high, low in pairs
        ]  # the lanes of null stand for a number too, which is replaced
        return put_nulls(type_, list(values), lane)

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.uuid()

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if source == pa.uuid() else None

    def accepts_arrow(self, source: pa.DataType) -> bool:
        is_bytes = pa.types.is_fixed_size_binary(source) and source.byte_width == _BYTES
        return bool(is_bytes or source == pa.uuid() or is_arrow_text(source))

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        if is_arrow_text(array.type):
            return self.encode_texts(type_, array, symbols)
        raw = np.frombuffer(array.buffers()[1], ">u8")[2 * array.offset : 2 * (array.offset + len(array))]
        words = raw.astype(np.uint64).view(np.int64)
        block = np.stack([words[0::2] ^ _SIGN_BIT, words[1::2] ^ _SIGN_BIT])
        is_low = block[0] == NULL
        unfit = is_low & (block[1] == MAX)
        if array.null_count:
            unfit &= array.is_valid().to_numpy(zero_copy_only=False)
        if unfit.any():
            raise ValueError(f"{UNFIT_UUID} is the one identifier that no column can hold")
        block[1] += is_low
        return block

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        null = null_mask(type_, lane)
        words = np.empty((lane.shape[1], 2), np.int64)
        words[:, 0] = lane[0] ^ _SIGN_BIT
        words[:, 1] = (lane[1] - (lane[0] == NULL)) ^ _SIGN_BIT
        content = pa.py_buffer(words.view(np.uint64).astype(">u8"))  # type: ignore[arg-type]
        storage = pa.Array.from_buffers(pa.binary(_BYTES), len(words), [validity(null), content])
        return pa.ExtensionArray.from_storage(pa.uuid(), storage)

    def from_stored_bytes(self, type_: Type, values: Any, symbols: Symbols) -> Ints:
        """Return the lanes of an Arrow array of bytes, as files of older directories hold them."""
        block = self.encode_arrow(type_, values.cast(pa.binary()).cast(pa.binary(_BYTES)), symbols)
        null = values.is_null().to_numpy(zero_copy_only=False)
        return np.where(null, NULL, block)


def _identifier(type_: Type, value: Any) -> UUID:
    """Return an identifier given as such, as text, or as 16 bytes."""
    if isinstance(value, UUID):
        return value
    if isinstance(value, bytes) and len(value) == _BYTES:
        return UUID(bytes=value)
    if not isinstance(value, str):
        raise wrong_class(type_, value)
    try:
        return UUID(value)
    except ValueError as error:
        raise UnfitValue(str(error)) from None


register(UuidType())
