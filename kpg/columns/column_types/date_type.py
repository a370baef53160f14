"""date: a day of the years 1 to 9999. The lane is the number of days since 1970-01-01."""

from __future__ import annotations

import datetime
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
    register,
)
from kpg.columns.column_types.tagged_text import TaggedText
from kpg.columns.unfit_values import wrong_class
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

EPOCH_ORDINAL: Final = datetime.date(1970, 1, 1).toordinal()
# Lane values: days since 1970-01-01.
FIRST_DAY: Final = datetime.date.min.toordinal() - EPOCH_ORDINAL
LAST_DAY: Final = datetime.date.max.toordinal() - EPOCH_ORDINAL


class DateType(ColumnType):
    """Days of the years 1 to 9999."""

    name = "date"
    python_class = datetime.date
    literal_classes = (datetime.date,)
    datetime_unit = "D"
    message_text = TaggedText(
        "date", literal_classes, datetime.date.isoformat, datetime.date.fromisoformat, 'Write {"date": "2024-05-01"}.'
    )
    plan_text = TaggedText("date", literal_classes, datetime.date.isoformat, datetime.date.fromisoformat)

    def limits(self, type_: Type) -> tuple[int, int]:
        return FIRST_DAY, LAST_DAY

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return int(value.toordinal()) - EPOCH_ORDINAL
        if isinstance(value, np.datetime64) and np.datetime_data(value)[0] == "D" and not np.isnat(value):
            days: int = value.astype(np.int64).item()
            return days
        raise wrong_class(type_, value)

    def decode_value(self, type_: Type, lane_value: int) -> datetime.date:
        return datetime.date.fromordinal(lane_value + EPOCH_ORDINAL)

    def show_lane(self, type_: Type, lane_value: int) -> str:
        return str(np.datetime64(lane_value, "D"))

    def decode_numpy(self, type_: Type, lane: Ints, symbols: Symbols) -> npt.NDArray[Any]:
        return lane.view("M8[D]")

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.date32()

    def from_arrow(self, source: pa.DataType) -> Parameters | None:
        return NO_PARAMETERS if pa.types.is_date(source) else None

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        return fixed_width_values(array.cast(pa.date32()).cast(pa.int32()))  # type: ignore[no-any-return]

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        null = null_mask(type_, lane)
        days = lane if null is None else np.where(null, 0, lane)
        return from_numpy(days.astype(np.int32), pa.date32(), null)


register(DateType())
