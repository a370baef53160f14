"""bool: true and false. The lane is 1 or 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpg.columns.arrow_arrays import from_numpy
from kpg.columns.column_types.column_type import (
    NO_PARAMETERS,
    Bools,
    ColumnType,
    Parameters,
    fixed_width_values,
    null_mask,
    put_nulls,
    register,
)
from kpg.columns.column_types.int64_type import encode_plain_integers
from kpg.columns.unfit_values import wrong_class
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols


class BoolType(ColumnType):
    """True and false."""

    name = "bool"
    python_class = bool
    literal_classes = (bool, np.bool_)
    plain_class = bool

    def limits(self, type_: Type) -> tuple[int, int]:
        return 0, 1

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if isinstance(value, (bool, np.bool_)):
            return int(value)
        raise wrong_class(type_, value)

    def decode_value(self, type_: Type, lane_value: int) -> bool:
        return lane_value == 1

    def encode_plain(self, type_: Type, values: Sequence[Any], has_null: bool, symbols: Symbols) -> Ints | None:
        return encode_plain_integers(type_, values, has_null)

    def decode_list(self, type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
        return put_nulls(type_, (lane == 1).tolist(), lane)

    def decode_numpy(self, type_: Type, lane: Ints, symbols: Symbols) -> npt.NDArray[Any]:
        truth: Bools = lane == 1
        return truth

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.bool_()

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if pa.types.is_boolean(source) else None

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        return fixed_width_values(array.cast(pa.int8())).astype(np.int64)  # type: ignore[no-any-return]

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        return from_numpy(lane == 1, pa.bool_(), null_mask(type_, lane))


register(BoolType())
