"""time: a time of day without a date and a zone, 00:00 to 23:59:59.999999. The lane is microseconds since midnight.

A time with a zone, or with a fraction of a microsecond, is refused, never converted.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.columns.arrow_arrays import from_numpy
from kpg.columns.column_types.column_type import (
    NO_PARAMETERS,
    ColumnType,
    Parameters,
    fixed_width_values,
    null_mask,
    register,
)
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.column_types.timestamp_type import DAY_MICROSECONDS
from kpg.columns.unfit_values import UnfitValue, wrong_class
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols


def _read_time(text: str) -> datetime.time:
    time = datetime.time.fromisoformat(text)
    if time.tzinfo is not None:
        raise ValueError(text)
    return time


class TimeType(ColumnType):
    """Times of day, in microseconds."""

    name = "time"
    python_class = datetime.time
    literal_classes = (datetime.time,)
    message_text = TaggedText(
        "time", literal_classes, datetime.time.isoformat, _read_time, 'Write {"time": "12:30:00"}, without a zone.'
    )
    plan_text = TaggedText("time", literal_classes, datetime.time.isoformat, _read_time)

    def limits(self, type_: Type) -> tuple[int, int]:
        return 0, DAY_MICROSECONDS - 1

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if not isinstance(value, datetime.time):
            raise wrong_class(type_, value)
        if value.tzinfo is not None:
            raise UnfitValue(f"{value} has a time zone", "Convert it to a time without a zone first.")
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * 1_000_000 + value.microsecond

    def decode_value(self, type_: Type, lane_value: int) -> datetime.time:
        seconds, microsecond = divmod(lane_value, 1_000_000)
        minutes, second = divmod(seconds, 60)
        return datetime.time(minutes // 60, minutes % 60, second, microsecond)

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.time64("us")

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if pa.types.is_time(source) else None

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        return fixed_width_values(array.cast(pa.time64("us")).cast(pa.int64()))  # type: ignore[no-any-return]

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        return from_numpy(lane, self.to_arrow(type_), null_mask(type_, lane))


register(TimeType())
