"""Functions of moments on Python values: time zones by their rules, and fields that are not constant."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np

from kpg.columns import floats
from kpg.columns.column_types.timestamp_type import DAY_MICROSECONDS, EPOCH
from kpg.columns.interval import Interval
from kpg.columns.updates import Ints
from kpg.columns.wide_integers import to_integers
from kpg.sql.functions import date_fields
from kpg.sql.functions.date_input import read_zone

_MICROSECOND: Final = datetime.timedelta(microseconds=1)


def to_utc(zone: str, moment: datetime.datetime) -> datetime.datetime:
    """Return the moment when the clock of a zone shows `moment`."""
    return _in_range(lambda: moment.replace(tzinfo=_zone(zone)).astimezone(datetime.UTC))


def to_local(zone: str, moment: datetime.datetime) -> datetime.datetime:
    """Return what the clock of a zone shows at a moment."""
    return _in_range(lambda: moment.astimezone(_zone(zone)).replace(tzinfo=None))


def _zone(zone: str) -> datetime.tzinfo:
    """Return a zone by its name. An offset counts to the west, as in POSIX, and not to the east as in ISO 8601."""
    if zone[:1] in ("+", "-"):
        return read_zone(("-" if zone[0] == "+" else "+") + zone[1:])
    return read_zone(zone)


def _in_range(compute: Any) -> datetime.datetime:
    try:
        result: datetime.datetime = compute()
    except OverflowError:
        raise ValueError("timestamp out of range") from None
    return result


def truncate_in_zone(field: str, moment: datetime.datetime, zone: str) -> datetime.datetime:
    """Return the first moment of the day, month, … of a zone that has a moment."""
    local = to_local(zone, moment)
    start = of_field("truncate", "timestamp without time zone", 0, field, local)
    if date_fields.field_name(field) in date_fields.CLOCK_FIELDS:  # the offset is the same, also when clocks change
        return _in_range(lambda: moment - (local - start))
    return to_utc(zone, start)


def of_field(way: str, type_name: str, scale: int, field: str, value: Any) -> Any:
    """Return a field of a value, or the value cut to it; as the functions of lanes do for a constant field."""
    if way == "extract" and type_name.startswith("timestamp") and date_fields.field_name(field) == "julian":
        days, micros = divmod(_microseconds(value), DAY_MICROSECONDS)
        part = Decimal(micros) / Decimal(DAY_MICROSECONDS)
        return (days + date_fields.JULIAN_EPOCH + part).quantize(Decimal(1).scaleb(-scale))
    kind = type_name.split(" ")[0]
    before = (type_name,) if kind == "timestamp" else ()
    after = (scale,) if way == "extract" else ()
    values, failures = _FUNCTIONS[way, kind](*before, field, *after, _lane(kind, value))
    for failed, reason in failures:
        if failed[0]:
            raise ValueError(reason)
    return _value(way, scale, value, values)


_FUNCTIONS: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    ("part", "date"): date_fields.part_of_days,
    ("part", "time"): date_fields.part_of_clock,
    ("part", "timestamp"): date_fields.part_of_moments,
    ("part", "interval"): date_fields.part_of_intervals,
    ("extract", "date"): date_fields.extract_from_days,
    ("extract", "time"): date_fields.extract_from_clock,
    ("extract", "timestamp"): date_fields.extract_from_moments,
    ("extract", "interval"): date_fields.extract_from_intervals,
    ("truncate", "timestamp"): date_fields.truncate_moments,
    ("truncate", "interval"): date_fields.truncate_intervals,
}


def _value(way: str, scale: int, value: Any, lane: Ints) -> Any:
    """Return the Python value of a result for one row."""
    if way == "part":
        return float(floats.from_lane(lane)[0])
    if way == "extract":
        number = int(lane[0]) if lane.ndim == 1 else to_integers(lane)[0]
        return Decimal(number).scaleb(-scale)
    if isinstance(value, Interval):
        return Interval(*lane[:, 0].tolist())
    return (EPOCH if value.tzinfo is not None else EPOCH.replace(tzinfo=None)) + int(lane[0]) * _MICROSECOND


def _microseconds(moment: datetime.datetime) -> int:
    return (moment.replace(tzinfo=datetime.UTC) - EPOCH) // _MICROSECOND


def _lane(kind: str, value: Any) -> Ints:
    if kind == "date":
        return np.array([value.toordinal() - EPOCH.toordinal()], np.int64)
    if kind == "interval":
        return np.array([[value.months], [value.days], [value.microseconds]], np.int64)
    if kind == "time":
        return np.array([((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond], np.int64)
    return np.array([_microseconds(value)], np.int64)


def clock_now(count: int) -> Ints:
    """Return the time of the clock for some rows."""
    return np.full(count, time.time_ns() // 1000, np.int64)
