"""interval: months, days and microseconds, one lane each. The Python value is a `kpg.Interval`.

Equal lanes mean equal counts: '1 month' and '30 days' are two values of a column. Expressions compare intervals by
their span (kpg.columns.intervals), in which both are equal; the order of the lanes has no meaning, so that groups and
sorts of intervals use the span too. The counts of months and days have 32 bits, and the microseconds are those that
Arrow can hold as nanoseconds: about 292 years.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kpg.columns.arrow_arrays import validity
from kpg.columns.column_types.column_type import NO_PARAMETERS, Parameters, WideType, null_mask, put_nulls, register
from kpg.columns.column_types.string_type import is_arrow_text
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.interval import Interval
from kpg.columns.lane_values import MAX
from kpg.columns.unfit_values import UnfitValue, wrong_class
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

MAX_COUNT: Final = 2**31 - 1  # of months and of days
MAX_MICROSECONDS: Final = MAX // 1000
INTERVAL_LIMITS: Final = (MAX_COUNT, MAX_COUNT, MAX_MICROSECONDS)  # magnitudes


class IntervalType(WideType):
    """Intervals of time."""

    name = "interval"
    lanes = 3
    is_ordered = False
    python_class = Interval
    literal_classes = (Interval,)
    message_text = TaggedText(
        "interval", (Interval,), str, Interval.parse, 'Write {"interval": "1 mon 2 days 03:00:00"}.'
    )
    plan_text = TaggedText("interval", (Interval,), str, Interval.parse)

    def encode_lanes(self, type_: Type, value: Any, symbols: Symbols) -> tuple[int, ...]:
        if isinstance(value, str):
            try:
                value = Interval.parse(value)
            except ValueError:
                raise UnfitValue(f"{value!r} is not an interval", 'Write it as in "1 mon 2 days 03:00:00".') from None
        if isinstance(value, datetime.timedelta):
            value = Interval.of(value)
        if not isinstance(value, Interval):
            raise wrong_class(type_, value)
        lanes = (value.months, value.days, value.microseconds)
        if any(abs(count) > limit for count, limit in zip(lanes, INTERVAL_LIMITS, strict=True)):
            raise UnfitValue(f"{value} is out of the range of {type_}")
        return lanes

    def decode_list(self, type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
        return put_nulls(type_, [Interval(*counts) for counts in zip(*lane.tolist(), strict=True)], lane)

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.month_day_nano_interval()

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if source == pa.month_day_nano_interval() else None

    def accepts_arrow(self, source: pa.DataType) -> bool:
        return self.from_arrow(source) is not None or is_arrow_text(source)

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        if is_arrow_text(array.type):
            return self.encode_texts(type_, array, symbols)
        raw = np.frombuffer(array.buffers()[1], np.int32)[4 * array.offset : 4 * (array.offset + len(array))]
        counts = raw.reshape(-1, 4)
        nanoseconds = np.ascontiguousarray(counts[:, 2:]).view(np.int64)[:, 0]
        block = np.stack([counts[:, 0], counts[:, 1], nanoseconds // 1000]).astype(np.int64)
        unfit = (nanoseconds % 1000 != 0) | (block[0] < -MAX_COUNT) | (block[1] < -MAX_COUNT)
        if array.null_count:
            unfit &= array.is_valid().to_numpy(zero_copy_only=False)
        if unfit.any():
            raise ValueError("it is finer than a microsecond, or too long")
        return block

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        null = null_mask(type_, lane)
        counts = np.empty((lane.shape[1], 4), np.int32)
        counts[:, 0], counts[:, 1] = lane[0], lane[1]
        counts[:, 2:] = (lane[2] * 1000).reshape(-1, 1).view(np.int32)
        content: Any = pa.py_buffer(counts)  # type: ignore[arg-type]
        return pa.Array.from_buffers(self.to_arrow(type_), len(counts), [validity(null), content])

    def arrow_to_list(self, type_: Type, column: Any) -> list[Any]:
        return [
            None if value is None else Interval(value.months, value.days, value.nanoseconds // 1000)
            for value in column.to_pylist()
        ]


register(IntervalType())
