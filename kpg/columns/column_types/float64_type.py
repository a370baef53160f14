"""float64: IEEE numbers. The lane is the number's bits, arranged to sort; NaN is one value above +inf; -0.0 is 0.0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpg.columns import floats
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
from kpg.columns.column_types.int64_type import encode_integer
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.lane_values import NULL
from kpg.columns.unfit_values import UnfitValue
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

MAX_EXACT_INTEGER: Final = 2**53  # every integer up to here is a float64 exactly


def _write_special(value: float) -> str:
    """Return the name of a float that JSON has no number for: NaN or an infinity."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _read_number(text: str) -> float:
    if text in ("NaN", "Infinity", "-Infinity"):
        return float(text)
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


class Float64Type(ColumnType):
    """IEEE numbers of 64 bits."""

    name = "float64"
    aliases = ("float",)
    python_class = float
    literal_classes = (float, np.floating)
    is_numeric = True
    has_nan = True
    plain_class = float
    message_text = TaggedText(
        "float", (), _write_special, _read_number, 'Write {"float": "NaN"}, "Infinity" or "-Infinity".'
    )
    plan_text = TaggedText("float", (float,), float.hex, float.fromhex)

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if isinstance(value, (float, np.floating)):
            nearest = float(value)
            if nearest != value and value == value:  # NumPy's long double
                raise UnfitValue(f"{value} is not exact as {type_}")
            return floats.to_lane_one(nearest)
        number = encode_integer(type_, value)
        if abs(number) > MAX_EXACT_INTEGER:
            raise UnfitValue(f"{number} may not be exact as {type_}")
        return floats.to_lane_one(float(number))

    def decode_value(self, type_: Type, lane_value: int) -> float:
        return float(floats.from_lane(np.array([lane_value], np.int64))[0])

    def encode_plain(self, type_: Type, values: Sequence[Any], has_null: bool, symbols: Symbols) -> Ints | None:
        lane = floats.to_lane(np.array(without_nulls(values, has_null), np.float64))
        if has_null:
            lane[[row for row, value in enumerate(values) if value is None]] = NULL
        return lane

    def decode_list(self, type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
        return put_nulls(type_, floats.from_lane(lane).tolist(), lane)

    def decode_numpy(self, type_: Type, lane: Ints, symbols: Symbols) -> npt.NDArray[Any]:
        return floats.from_lane(lane)

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.float64()

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if pa.types.is_floating(source) else None

    def accepts_arrow(self, source: pa.DataType) -> bool:
        return bool(pa.types.is_floating(source) or pa.types.is_integer(source))

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        return floats.to_lane(fixed_width_values(array.cast(pa.float64())))

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        return from_numpy(floats.from_lane(lane), pa.float64(), null_mask(type_, lane))


register(Float64Type())
