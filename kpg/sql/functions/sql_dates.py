"""Functions of dates, times, timestamps and intervals. Dates and timestamps are computed on lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kpg.columns.expression import Apply, Expression
from kpg.sql.functions import date_fields, date_lanes, date_values, format_patterns, number_patterns
from kpg.sql.functions.building import constant_text, distinct, lanes, total, volatile
from kpg.sql.functions.cast_rules import NUMERIC
from kpg.sql.functions.function import Build, Function
from kpg.sql.functions.transaction_clock import moment_build
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.sql_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    numeric,
)

STAMPS: Final = (TIMESTAMP, TIMESTAMPTZ)


def _field_digits(types: Sequence[SqlType], constants: Sequence[Any] = (None,)) -> SqlType:
    """Return the type of EXTRACT: whole numbers, except of fields that have fractions."""
    field = date_fields.field_name(constants[0]) if constants and constants[0] is not None else "epoch"
    scale = date_fields.SCALES.get(field, 0)
    if types[1].name == "date":
        scale = 0
    return numeric(38, 20) if field == "julian" and types[1] in STAMPS else numeric(_FIELD_DIGITS[types[1].name], scale)


_FIELD_DIGITS: Final = {"interval": 25} | dict.fromkeys((DATE.name, TIME.name, TIMESTAMP.name, TIMESTAMPTZ.name), 18)
_PARTS: Final[dict[str, Callable[..., Any]]] = {
    DATE.name: date_fields.part_of_days,
    TIME.name: date_fields.part_of_clock,
    TIMESTAMP.name: date_fields.part_of_moments,
    TIMESTAMPTZ.name: date_fields.part_of_moments,
    INTERVAL.name: date_fields.part_of_intervals,
}
_EXTRACTS: Final[dict[str, Callable[..., Any]]] = {
    DATE.name: date_fields.extract_from_days,
    TIME.name: date_fields.extract_from_clock,
    TIMESTAMP.name: date_fields.extract_from_moments,
    TIMESTAMPTZ.name: date_fields.extract_from_moments,
    INTERVAL.name: date_fields.extract_from_intervals,
}
_TRUNCATIONS: Final[dict[str, Callable[..., Any]]] = {
    TIMESTAMP.name: date_fields.truncate_moments,
    TIMESTAMPTZ.name: date_fields.truncate_moments,
    INTERVAL.name: date_fields.truncate_intervals,
}


def _by_field(functions: dict[str, Callable[..., Any]]) -> Build:
    """Return the build of a function of a field and a value: on lanes for a constant field, else value by value."""

    def build(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
        source = types[1]
        function = functions[source.name]
        before: tuple[Any, ...] = (source.name,) if source in STAMPS else ()
        after: tuple[Any, ...] = (result.scale,) if functions is _EXTRACTS else ()
        field = constant_text(arguments[0])
        if field is not None and not (date_fields.field_name(field) == "julian" and functions is _EXTRACTS):
            options = (*before, field, *after)
            return Apply(function, engine_type(result, nullable=False), "lanes", (arguments[1],), options)
        way = "extract" if functions is _EXTRACTS else "part" if functions is _PARTS else "truncate"
        return distinct(date_values.of_field, way, source.name, result.scale or 0)(arguments, types, result)

    return build


def _signed(function: Callable[..., Any], op: str) -> Build:
    return lanes(function, 1 if op == "+" else -1)


_SHIFTS: Final = (
    *(("+-"[way], DATE, INTEGER, DATE, _signed(date_lanes.days_plus, "+-"[way])) for way in (0, 1)),
    ("+", INTEGER, DATE, DATE, lanes(date_lanes.count_plus_day)),
    ("-", DATE, DATE, INTEGER, total(date_lanes.days_between)),
    *((op, DATE, INTERVAL, TIMESTAMP, _signed(date_lanes.date_plus, op)) for op in "+-"),
    ("+", INTERVAL, DATE, TIMESTAMP, lanes(date_lanes.interval_plus_date)),
    ("+", DATE, TIME, TIMESTAMP, total(date_lanes.date_and_time)),
    ("+", TIME, DATE, TIMESTAMP, total(date_lanes.time_and_date)),
    ("+", TIME, INTERVAL, TIME, total(date_lanes.clock_plus, 1)),
    ("-", TIME, INTERVAL, TIME, total(date_lanes.clock_plus, -1)),
    ("+", INTERVAL, TIME, TIME, total(date_lanes.interval_plus_clock)),
    ("-", TIME, TIME, INTERVAL, total(date_lanes.clock_between)),
    *((op, INTERVAL, INTERVAL, INTERVAL, _signed(date_lanes.add_intervals, op)) for op in "+-"),
    ("*", INTERVAL, DOUBLE, INTERVAL, lanes(date_lanes.scale_interval, False)),
    ("*", DOUBLE, INTERVAL, INTERVAL, lanes(date_lanes.scaled_by)),
    ("/", INTERVAL, DOUBLE, INTERVAL, lanes(date_lanes.scale_interval, True)),
    *((op, a, INTERVAL, a, _signed(date_lanes.moment_plus, op)) for op in "+-" for a in STAMPS),
    *(("+", INTERVAL, a, a, lanes(date_lanes.interval_plus_moment)) for a in STAMPS),
    *(("-", a, a, INTERVAL, total(date_lanes.span_between)) for a in STAMPS),
)

_INTERVAL_PARTS: Final = (INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE)
_JUSTIFY: Final = {
    "justify_days": date_lanes.justify_days,
    "justify_hours": date_lanes.justify_hours,
    "justify_interval": date_lanes.justify_interval,
}


def _source_name(types: Sequence[SqlType], result: SqlType) -> tuple[Any, ...]:
    return (types[0].name,)


FUNCTIONS: Final = (
    *(Function(op, (a, b), result, build) for op, a, b, result, build in _SHIFTS),
    Function("-", (INTERVAL,), INTERVAL, total(date_lanes.negate_interval)),
    *(Function("extract", (TEXT, a), _field_digits, _by_field(_EXTRACTS), returns_for=_field_digits)
      for a in (DATE, TIME, *STAMPS, INTERVAL)),
    *(Function("date_part", (TEXT, a), DOUBLE, _by_field(_PARTS)) for a in (DATE, TIME, *STAMPS, INTERVAL)),
    *(Function("date_trunc", (TEXT, a), a, _by_field(_TRUNCATIONS)) for a in (*STAMPS, INTERVAL)),
    Function("date_trunc", (TEXT, TIMESTAMPTZ, TEXT), TIMESTAMPTZ, distinct(date_values.truncate_in_zone)),
    *(Function("date_bin", (INTERVAL, a, a), a, lanes(date_lanes.bin_moments)) for a in STAMPS),
    *(Function("age", (a, a), INTERVAL, total(date_lanes.age_between)) for a in STAMPS),
    Function("make_date", (INTEGER, INTEGER, INTEGER), DATE, lanes(date_lanes.make_dates)),
    Function("make_time", (INTEGER, INTEGER, DOUBLE), TIME, lanes(date_lanes.make_times)),
    Function("make_timestamp", (INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE), TIMESTAMP,
             lanes(date_lanes.make_moments)),
    *(Function("make_interval", _INTERVAL_PARTS[:count], INTERVAL, lanes(date_lanes.make_intervals, count))
      for count in range(8)),
    Function("to_timestamp", (DOUBLE,), TIMESTAMPTZ, lanes(date_lanes.moments_of_seconds)),
    Function("to_timestamp", (TEXT, TEXT), TIMESTAMPTZ, distinct(format_patterns.read_moment)),
    Function("to_date", (TEXT, TEXT), DATE, distinct(format_patterns.read_day)),
    *(Function("to_char", (a, TEXT), TEXT, distinct(format_patterns.show_moment, by_types=_source_name, null=True))
      for a in STAMPS),
    Function("to_char", (INTERVAL, TEXT), TEXT, distinct(format_patterns.show_interval, null=True)),
    *(Function("to_char", (a, TEXT), TEXT, distinct(number_patterns.show_number))
      for a in (NUMERIC, INTEGER, BIGINT, DOUBLE)),
    *(Function(name, (INTERVAL,), INTERVAL, lanes(function)) for name, function in _JUSTIFY.items()),
    Function("timezone", (TEXT, TIMESTAMP), TIMESTAMPTZ, distinct(date_values.to_utc)),
    Function("timezone", (TEXT, TIMESTAMPTZ), TIMESTAMP, distinct(date_values.to_local)),
    Function("timezone", (INTERVAL, TIMESTAMP), TIMESTAMPTZ, lanes(date_lanes.offset_to_utc)),
    Function("timezone", (INTERVAL, TIMESTAMPTZ), TIMESTAMP, lanes(date_lanes.offset_to_local)),
    *(Function("isfinite", (a,), BOOLEAN, total(date_lanes.all_finite)) for a in (DATE, *STAMPS, INTERVAL)),
    *(Function(name, (), TIMESTAMPTZ, moment_build, stable=True)
      for name in ("now", "current_timestamp", "transaction_timestamp", "statement_timestamp")),
    Function("current_date", (), DATE, moment_build, stable=True),
    Function("localtimestamp", (), TIMESTAMP, moment_build, stable=True),
    Function("localtime", (), TIME, moment_build, stable=True),
    Function("clock_timestamp", (), TIMESTAMPTZ, volatile(date_values.clock_now), volatile=True),
)  # fmt: skip
