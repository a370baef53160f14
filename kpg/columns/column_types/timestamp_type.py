"""timestamp: a moment of the years 1 to 9999. The lane is the number of microseconds since 1970-01-01 UTC.

A moment without a time zone is interpreted as UTC. A moment with a fraction of a microsecond is refused, never rounded.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

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
    register,
)
from kpg.columns.column_types.date_type import FIRST_DAY, LAST_DAY
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.unfit_values import UnfitValue, wrong_class
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
DAY_MICROSECONDS: Final = 86_400_000_000


def _too_fine(value: Any) -> UnfitValue:
    return UnfitValue(f"{value} is finer than a microsecond", "Round it first: kpg never drops digits silently.")


def _datetime_from_numpy(value: np.datetime64) -> datetime.datetime:
    if np.datetime_data(value)[0] == "ns":
        if value.astype(np.int64) % 1000:
            raise _too_fine(value)
        value = value.astype("M8[us]")
    moment = value.item()
    if isinstance(moment, datetime.datetime):
        return moment
    if isinstance(moment, datetime.date):
        return datetime.datetime(moment.year, moment.month, moment.day)
    raise UnfitValue(f"{value} is not in the years 1 to 9999, or finer than a microsecond")


def _write_utc(value: datetime.datetime) -> str:
    moment = value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)
    return moment.replace(tzinfo=None).isoformat() + "Z"


def _read_with_zone(text: str) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment.astimezone(datetime.UTC)


class TimestampType(ColumnType):
    """Moments of the years 1 to 9999, in microseconds."""

    name = "timestamp"
    aliases: ClassVar[tuple[str, ...]] = ("datetime",)
    python_class: ClassVar[type | None] = datetime.datetime
    literal_classes: ClassVar[tuple[type, ...]] = (datetime.datetime,)
    datetime_unit = "s"
    message_text = TaggedText(
        "timestamp", literal_classes, _write_utc, _read_with_zone,
        'Write {"timestamp": "2024-05-01T12:00:00Z"}, with its zone.',
    )  # fmt: skip
    plan_text: ClassVar[TaggedText | None] = TaggedText(
        "datetime", literal_classes, datetime.datetime.isoformat, datetime.datetime.fromisoformat
    )

    def limits(self, type_: Type) -> tuple[int, int]:
        return FIRST_DAY * DAY_MICROSECONDS, (LAST_DAY + 1) * DAY_MICROSECONDS - 1

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if isinstance(value, np.datetime64) and not np.isnat(value):
            value = _datetime_from_numpy(value)
        if not isinstance(value, datetime.datetime):
            raise wrong_class(type_, value)
        if getattr(value, "nanosecond", 0):  # pandas
            raise _too_fine(value)
        since = (value if value.tzinfo else value.replace(tzinfo=datetime.UTC)) - EPOCH
        return int(since.days * 86_400 + since.seconds) * 1_000_000 + int(since.microseconds)

    def decode_value(self, type_: Type, lane_value: int) -> datetime.datetime:
        return EPOCH + datetime.timedelta(microseconds=lane_value)

    def show_lane(self, type_: Type, lane_value: int) -> str:
        return str(np.datetime64(lane_value, "us"))

    def decode_numpy(self, type_: Type, lane: Ints, symbols: Symbols) -> npt.NDArray[Any]:
        return lane.view("M8[us]")

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.timestamp("us", tz="UTC")

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if pa.types.is_timestamp(source) else None

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        microseconds = array.cast(pa.timestamp("us", tz=array.type.tz)).cast(pa.int64())
        return fixed_width_values(microseconds)  # type: ignore[no-any-return]

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        return from_numpy(lane, self.to_arrow(type_), null_mask(type_, lane))


register(TimestampType())
