"""timestamp_ntz: a date and a time of day without a time zone. The lane is microseconds since 1970-01-01 00:00.

A `timestamp` is a moment, the same everywhere; a `timestamp_ntz` is what a calendar and a clock show somewhere. A
datetime with a time zone is refused. Arrow's timestamps without a zone become `timestamp` unless a schema names this
type.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.columns.column_types.column_type import Parameters, register
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.column_types.timestamp_type import TimestampType
from kpg.columns.unfit_values import UnfitValue

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols


def is_naive(value: datetime.datetime) -> bool:
    """Return whether a datetime has no time zone."""
    return value.tzinfo is None


def _read_naive(text: str) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError(text)
    return moment


class TimestampNtzType(TimestampType):
    """Dates with a time of day, in microseconds, without a time zone."""

    name = "timestamp_ntz"
    aliases = ()
    python_class = None
    literal_classes = ()
    message_text = TaggedText(
        "timestamp_ntz", (datetime.datetime,), datetime.datetime.isoformat, _read_naive,
        'Write {"timestamp_ntz": "2024-05-01T12:00:00"}, without a zone.', is_naive,
    )  # fmt: skip
    plan_text = None

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            raise UnfitValue(f"{value} has a time zone", "Remove it first, or declare the column as timestamp.")
        return super().encode_value(type_, value, symbols)

    def decode_value(self, type_: Type, lane_value: int) -> datetime.datetime:
        return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=lane_value)

    def show_lane(self, type_: Type, lane_value: int) -> str:
        return str(np.datetime64(lane_value, "us"))

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.timestamp("us")

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return None

    def accepts_arrow(self, source: pa.DataType) -> bool:
        return bool(pa.types.is_timestamp(source) and source.tz is None)


register(TimestampNtzType())
