"""uint64: whole numbers from 0 to 2**64 - 1. The lane is the number minus 2**63, so that lanes sort as numbers do.

A nullable column cannot hold 0, whose lane means null; Datalog has no nulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpg.columns.arrow_arrays import from_numpy
from kpg.columns.column_types.column_type import (
    NO_PARAMETERS,
    ColumnType,
    Parameters,
    fixed_width_values,
    null_mask,
    put_nulls,
    register,
)
from kpg.columns.column_types.int64_type import encode_integer
from kpg.columns.lane_values import NULL
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

BIAS: Final = 2**63
MAX_UNSIGNED: Final = 2**64 - 1


def to_unsigned_lane(values: npt.NDArray[np.uint64]) -> Ints:
    """Return the lane of unsigned numbers."""
    return values.view(np.int64) ^ NULL


def from_unsigned_lane(lane: Ints) -> npt.NDArray[np.uint64]:
    """Return the unsigned numbers of a lane."""
    return (lane ^ NULL).view(np.uint64)


class UInt64Type(ColumnType):
    """Whole numbers of 64 bits without a sign."""

    name = "uint64"
    is_numeric = True
    plain_class = int

    def range_hint(self, type_: Type, lane_value: int) -> str | None:
        if type_.nullable and lane_value == NULL:
            return "0 stands for null in a nullable uint64 column; a column without null can hold it."
        return "The range is 0 to 18,446,744,073,709,551,615."

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        return encode_integer(type_, value) - BIAS

    def decode_value(self, type_: Type, lane_value: int) -> int:
        return lane_value + BIAS

    def show_lane(self, type_: Type, lane_value: int) -> str:
        return str(lane_value + BIAS)

    def encode_plain(self, type_: Type, values: Sequence[Any], has_null: bool, symbols: Symbols) -> Ints | None:
        if has_null or type_.nullable:
            return None
        try:
            return to_unsigned_lane(np.array(values, np.uint64))
        except OverflowError:
            return None

    def decode_list(self, type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
        return put_nulls(type_, from_unsigned_lane(lane).tolist(), lane)

    def decode_numpy(self, type_: Type, lane: Ints, symbols: Symbols) -> npt.NDArray[Any]:
        return from_unsigned_lane(lane)

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.uint64()

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if pa.types.is_uint64(source) else None

    def accepts_arrow(self, source: pa.DataType) -> bool:
        return bool(pa.types.is_integer(source))

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        values = fixed_width_values(array.cast(pa.uint64()))
        return to_unsigned_lane(np.ascontiguousarray(values))

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        return from_numpy(from_unsigned_lane(lane), pa.uint64(), null_mask(type_, lane))


register(UInt64Type())
