"""int64: whole numbers of 64 bits. The lane is the number; a nullable column cannot hold -2**63, which means null."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
    without_nulls,
)
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.lane_values import NULL
from kpg.columns.unfit_values import wrong_class
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

_DIGITS = re.compile(r"-?[0-9]{1,20}")  # int() would also take underscores and blanks


def encode_integer(type_: Type, value: Any) -> int:
    """Return a Python or NumPy integer as an int; raise TypeError for anything else, bool included."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise wrong_class(type_, value)


def encode_plain_integers(type_: Type, values: Sequence[Any], has_null: bool) -> Ints | None:
    """Return the lane of a column of ints or bools, and of None if `has_null`; None if some value does not fit."""
    try:
        lane = np.array(without_nulls(values, has_null), np.int64)
    except OverflowError:
        return None
    if type_.nullable and np.count_nonzero(lane == NULL):
        return None
    if has_null:
        lane[[row for row, value in enumerate(values) if value is None]] = NULL
    return lane


def _read_digits(text: str) -> int:
    if not _DIGITS.fullmatch(text) or not NULL <= int(text) < 2**64:  # of int64 and uint64; a column checks its own
        raise ValueError(text)
    return int(text)


class Int64Type(ColumnType):
    """Whole numbers of 64 bits."""

    name = "int64"
    aliases = ("int",)
    python_class = int
    literal_classes = (int, np.integer)
    is_numeric = True
    plain_class = int
    message_text = TaggedText(
        "int", (), str, _read_digits, 'Write {"int": "9223372036854775807"}: digits within 64 bits.'
    )

    def range_hint(self, type_: Type, lane_value: int) -> str | None:
        if type_.nullable and lane_value == NULL:
            return "-2**63 stands for null in a nullable column; a column without null can hold it."
        return None

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        return encode_integer(type_, value)

    def decode_value(self, type_: Type, lane_value: int) -> int:
        return lane_value

    def encode_plain(self, type_: Type, values: Sequence[Any], has_null: bool, symbols: Symbols) -> Ints | None:
        return encode_plain_integers(type_, values, has_null)

    def decode_list(self, type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
        return put_nulls(type_, lane.tolist(), lane)

    def decode_numpy(self, type_: Type, lane: Ints, symbols: Symbols) -> npt.NDArray[Any]:
        return lane.view()

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.int64()

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if pa.types.is_integer(source) else None

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        return fixed_width_values(array.cast(pa.int64()))  # type: ignore[no-any-return]

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        return from_numpy(lane, pa.int64(), null_mask(type_, lane))


register(Int64Type())
