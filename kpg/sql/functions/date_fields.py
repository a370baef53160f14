"""EXTRACT, date_part and date_trunc on lanes.

`field` is the name of a field, in lower case. EXTRACT gives numbers times a power of ten, the scale of its result type;
date_part gives floats. A field that a type does not have fails every row, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kpg.columns import floats
from kpg.columns.column_types.timestamp_type import DAY_MICROSECONDS
from kpg.columns.updates import Ints
from kpg.columns.wide_integers import add_wide, multiply_wide, to_floats, wide_constant, widen
from kpg.sql.functions.date_lanes import SECOND, first_days, months_of
from kpg.sql.functions.integer_lanes import Computed

ALIASES: Final = {
    **{f"{name}s": name for name in ("year", "month", "day", "hour", "minute", "second", "week", "decade", "quarter")},
    "millisecond": "milliseconds", "microsecond": "microseconds", "centuries": "century", "millennia": "millennium",
    "ms": "milliseconds", "msec": "milliseconds", "us": "microseconds", "usec": "microseconds", "y": "year",
    "yr": "year", "mon": "month", "mons": "month", "d": "day", "h": "hour", "hr": "hour", "min": "minute",
    "m": "minute", "s": "second", "sec": "second", "w": "week", "qtr": "quarter", "c": "century", "dec": "decade",
    "mil": "millennium", "jd": "julian", "j": "julian",
}  # fmt: skip
SCALES: Final = {"second": 6, "epoch": 6, "milliseconds": 3}  # digits after the point that a field has
JULIAN_EPOCH: Final = 2_440_588  # the Julian day of 1970-01-01
_ZONES: Final = frozenset({"timezone", "timezone_hour", "timezone_minute"})


def field_name(field: str) -> str:
    """Return the usual name of a field."""
    name = field.strip().lower()
    return ALIASES.get(name, name)


def _year(days: Ints) -> Ints:
    return days.view("M8[D]").astype("M8[Y]").astype(np.int64) + 1970


def _month(days: Ints) -> Ints:
    return months_of(days) % 12 + 1


def _day(days: Ints) -> Ints:
    return days - first_days(months_of(days)) + 1


def _day_of_year(days: Ints) -> Ints:
    return days - days.view("M8[D]").astype("M8[Y]").astype("M8[D]").astype(np.int64) + 1


def _monday(days: Ints) -> Ints:
    """Return the first day of the week."""
    return days - (days + 3) % 7


def _iso_year(days: Ints) -> Ints:
    return _year(_monday(days) + 3)  # a week belongs to the year of its Thursday


def _iso_week(days: Ints) -> Ints:
    return (_day_of_year(_monday(days) + 3) - 1) // 7 + 1


def _century(years: Ints) -> Ints:
    return (years + 99) // 100


_OF_DAYS: Final[dict[str, Callable[[Ints], Ints]]] = {
    "year": _year, "month": _month, "day": _day, "doy": _day_of_year, "isoyear": _iso_year, "week": _iso_week,
    "dow": lambda days: (days + 4) % 7, "isodow": lambda days: (days + 3) % 7 + 1,
    "quarter": lambda days: (_month(days) + 2) // 3, "decade": lambda days: _year(days) // 10,
    "century": lambda days: _century(_year(days)), "millennium": lambda days: (_year(days) + 999) // 1000,
}  # fmt: skip
_OF_CLOCK: Final[dict[str, Callable[[Ints], Ints]]] = {  # in units of the scale of the field
    "hour": lambda micros: micros // (3600 * SECOND), "minute": lambda micros: micros // (60 * SECOND) % 60,
    "second": lambda micros: micros % (60 * SECOND), "milliseconds": lambda micros: micros % (60 * SECOND),
    "microseconds": lambda micros: micros % (60 * SECOND),
}  # fmt: skip


def _unknown(kind: str, field: str, known: bool, lane: Ints) -> Computed:
    state = "not supported" if known else "not recognized"
    failed = np.ones(lane.shape[-1], np.bool_)
    return np.zeros(lane.shape[-1], np.int64), ((failed, f'unit "{field}" {state} for type {kind}'),)


def _known(field: str) -> bool:
    return field in _OF_DAYS or field in _OF_CLOCK or field in ("epoch", "julian") or field in _ZONES


def extract_from_days(field: str, scale: int, days: Ints) -> Computed:
    """Return a field of dates, times 10**scale."""
    name = field_name(field)
    if name in _OF_DAYS:
        return _OF_DAYS[name](days) * 10**scale, ()
    if name in ("epoch", "julian"):
        return (days * 86_400 if name == "epoch" else days + JULIAN_EPOCH) * 10**scale, ()
    return _unknown("date", field, _known(name), days)


def extract_from_moments(type_name: str, field: str, scale: int, moments: Ints) -> Computed:
    """Return a field of timestamps, times 10**scale."""
    name = field_name(field)
    days, micros = np.divmod(moments, DAY_MICROSECONDS)
    if name in _OF_DAYS:
        return _OF_DAYS[name](days) * 10**scale, ()
    if name in _OF_CLOCK:
        return _scaled(_OF_CLOCK[name](micros), SCALES.get(name, 0), scale), ()
    if name == "epoch":
        return _scaled(moments, 6, scale), ()
    if name in _ZONES and type_name.endswith("with time zone"):
        return np.zeros_like(moments), ()
    return _unknown(type_name, field, _known(name), moments)


def _scaled(values: Ints, scale: int, wanted: int) -> Ints:
    scaled: Ints = values * 10 ** (wanted - scale) if wanted >= scale else values // 10 ** (scale - wanted)
    return scaled


def extract_from_clock(field: str, scale: int, micros: Ints) -> Computed:
    """Return a field of times of day, times 10**scale."""
    name = field_name(field)
    if name in _OF_CLOCK:
        return _scaled(_OF_CLOCK[name](micros), SCALES.get(name, 0), scale), ()
    if name == "epoch":
        return _scaled(micros, 6, scale), ()
    return _unknown("time without time zone", field, _known(name), micros)


def _interval_fields(interval: Ints) -> dict[str, Ints]:
    months, days, micros = interval
    years = np.fmod(months, 12)
    year = (months - years) // 12
    clock = np.abs(micros)
    sign = np.where(micros < 0, -1, 1)
    seconds = clock % (60 * SECOND) * sign
    return {
        "year": year, "month": years, "day": days, "quarter": _truncated(years, 3) + 1,
        "decade": _truncated(year, 10), "century": _truncated(year, 100), "millennium": _truncated(year, 1000),
        "hour": clock // (3600 * SECOND) * sign, "minute": clock // (60 * SECOND) % 60 * sign, "second": seconds,
        "milliseconds": seconds, "microseconds": seconds,
    }  # fmt: skip


def _truncated(values: Ints, by: int) -> Ints:
    return (values - np.fmod(values, by)) // by


def extract_from_intervals(field: str, scale: int, interval: Ints) -> Computed:
    """Return a field of intervals as numbers of two lanes, times 10**scale."""
    name = field_name(field)
    lanes = _interval_fields(interval).get(name)
    if lanes is not None:
        return widen(_scaled(lanes, SCALES.get(name, 0), scale)), ()
    if name == "epoch":
        return _interval_epoch(interval, scale), ()
    values, failures = _unknown("interval", field, _known(name), interval)
    return widen(values), failures


def _interval_epoch(interval: Ints, scale: int) -> Ints:
    """Return microseconds with years of 365.25 days and months of 30 days."""
    months, days, micros = interval
    rest = np.fmod(months, 12)
    quarter_days = (months - rest) // 12 * 1461 + rest * 120 + days * 4
    day, _ = multiply_wide(widen(quarter_days), wide_constant(DAY_MICROSECONDS // 4))
    total, _ = add_wide(day, widen(micros))
    assert scale == SCALES["epoch"]
    return total


def part_of(extract: Callable[..., Computed], *arguments: Any) -> Computed:
    """Return a field as floats; the options of `extract` come before the lane."""
    *options, field, lane = arguments
    scale = SCALES.get(field_name(field), 0)
    values, failures = extract(*options, field, scale, lane)
    if values.ndim == 2:
        return floats.to_lane(to_floats(values, scale)), failures
    return floats.to_lane(values.astype(np.float64) / 10.0**scale), failures


def part_of_moments(type_name: str, field: str, moments: Ints) -> Computed:
    """Return a field of timestamps as floats."""
    if field_name(field) == "julian":
        return floats.to_lane(moments / DAY_MICROSECONDS + JULIAN_EPOCH), ()
    return part_of(extract_from_moments, type_name, field, moments)


def part_of_days(field: str, days: Ints) -> Computed:
    """Return a field of dates as floats; a date is its midnight."""
    return part_of_moments("timestamp without time zone", field, days * DAY_MICROSECONDS)


def part_of_clock(field: str, micros: Ints) -> Computed:
    """Return a field of times of day as floats."""
    return part_of(extract_from_clock, field, micros)


def part_of_intervals(field: str, interval: Ints) -> Computed:
    """Return a field of intervals as floats."""
    return part_of(extract_from_intervals, field, interval)


# --- date_trunc -------------------------------------------------------------------------------------------------------

_CLOCK_UNITS: Final = {
    "microseconds": 1, "milliseconds": 1000, "second": SECOND, "minute": 60 * SECOND, "hour": 3600 * SECOND,
    "day": DAY_MICROSECONDS,
}  # fmt: skip
CLOCK_FIELDS: Final = frozenset(_CLOCK_UNITS) - {"day"}
_MONTH_UNITS: Final = {"month": 1, "quarter": 3}
_YEAR_UNITS: Final = {"year": (1, 0), "decade": (10, 0), "century": (100, 1), "millennium": (1000, 1)}


def truncate_moments(type_name: str, field: str, moments: Ints) -> Computed:
    """Return the first moment of the second, day, month, … that has a moment."""
    name = field_name(field)
    if name in _CLOCK_UNITS:
        return moments - moments % _CLOCK_UNITS[name], ()
    days = moments // DAY_MICROSECONDS
    if name == "week":
        return _monday(days) * DAY_MICROSECONDS, ()
    if name in _MONTH_UNITS:
        months = months_of(days)
        return first_days(months - months % _MONTH_UNITS[name]) * DAY_MICROSECONDS, ()
    if name in _YEAR_UNITS:
        unit, offset = _YEAR_UNITS[name]
        years = (_year(days) - offset) // unit * unit + offset
        result = first_days((years - 1970) * 12) * DAY_MICROSECONDS
        return result, ((years < 1, "timestamp out of range"),)
    return _unknown(type_name, field, _known(name) and name not in _ZONES or name in _ZONES, moments)


def truncate_intervals(field: str, interval: Ints) -> Computed:
    """Return an interval without the units below a field."""
    name = field_name(field)
    months, days, micros = interval
    zero = np.zeros_like(months)
    if name in _CLOCK_UNITS and name != "day":
        return np.stack([months, days, _truncated(micros, _CLOCK_UNITS[name]) * _CLOCK_UNITS[name]]), ()
    if name == "day":
        return np.stack([months, days, zero]), ()
    sizes = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}
    if name in sizes:
        return np.stack([_truncated(months, sizes[name]) * sizes[name], zero, zero]), ()
    values, failures = _unknown("interval", field, _known(name), interval)
    return np.stack([values, values, values]), failures
