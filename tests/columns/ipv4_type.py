"""A column type from one file, as an example and for tests: IPv4 addresses. The lane is the address as a number."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import numpy as np
import pyarrow as pa

from kpg.columns.column_types.column_type import ColumnType, fixed_width_values, null_mask
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.schema import Type
from kpg.columns.symbols import Symbols
from kpg.columns.unfit_values import wrong_class
from kpg.columns.updates import Ints


class IPv4Type(ColumnType):
    """IPv4 addresses."""

    name = "ipv4"
    python_class = IPv4Address
    literal_classes = (IPv4Address,)
    message_text = TaggedText("ipv4", (IPv4Address,), str, IPv4Address, 'Write {"ipv4": "127.0.0.1"}.')
    plan_text = TaggedText("ipv4", (IPv4Address,), str, IPv4Address)

    def limits(self, type_: Type) -> tuple[int, int]:
        return 0, 2**32 - 1

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if isinstance(value, IPv4Address):
            return int(value)
        raise wrong_class(type_, value)

    def decode_value(self, type_: Type, lane_value: int) -> IPv4Address:
        return IPv4Address(lane_value)

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.uint32()

    def accepts_arrow(self, source: pa.DataType) -> bool:
        return bool(pa.types.is_uint32(source))

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        return fixed_width_values(array).astype(np.int64)  # type: ignore[no-any-return]

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        null = null_mask(type_, lane)
        return pa.array((lane if null is None else np.where(null, 0, lane)).astype(np.uint32), mask=null)

    def arrow_to_list(self, type_: Type, column: Any) -> list[Any]:
        return [None if number is None else IPv4Address(number) for number in column.to_pylist()]
