"""Functions of dates, times, timestamps and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kpg.sql.functions.building import pending
from kpg.sql.functions.cast_rules import NUMERIC
from kpg.sql.functions.function import Function
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
FRACTIONAL_FIELDS: Final = {"second": 6, "epoch": 6, "milliseconds": 3, "millisecond": 3, "julian": 20}


def _field_digits(types: Sequence[SqlType], constants: Sequence[Any] = (None,)) -> SqlType:
    """Return the type of EXTRACT: whole numbers, except of fields that have fractions."""
    field = str(constants[0]).lower() if constants and constants[0] is not None else "epoch"
    scale = FRACTIONAL_FIELDS.get(field, 0)
    if types[1].name == "date" and field in ("epoch", "julian"):
        scale = 0
    return numeric(30, scale)


_SHIFTS: Final = (
    ("+", DATE, INTEGER, DATE), ("+", INTEGER, DATE, DATE), ("-", DATE, INTEGER, DATE), ("-", DATE, DATE, INTEGER),
    ("+", DATE, INTERVAL, TIMESTAMP), ("+", INTERVAL, DATE, TIMESTAMP), ("-", DATE, INTERVAL, TIMESTAMP),
    ("+", DATE, TIME, TIMESTAMP), ("+", TIME, DATE, TIMESTAMP),
    ("+", TIME, INTERVAL, TIME), ("+", INTERVAL, TIME, TIME), ("-", TIME, INTERVAL, TIME), ("-", TIME, TIME, INTERVAL),
    ("+", INTERVAL, INTERVAL, INTERVAL), ("-", INTERVAL, INTERVAL, INTERVAL),
    ("*", INTERVAL, DOUBLE, INTERVAL), ("*", DOUBLE, INTERVAL, INTERVAL), ("/", INTERVAL, DOUBLE, INTERVAL),
    *((op, a, INTERVAL, a) for op in "+-" for a in STAMPS), *(("+", INTERVAL, a, a) for a in STAMPS),
    *(("-", a, a, INTERVAL) for a in STAMPS),
)  # fmt: skip

_INTERVAL_PARTS: Final = (INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE)

FUNCTIONS: Final = (
    *(Function(op, (a, b), result, pending) for op, a, b, result in _SHIFTS),
    Function("-", (INTERVAL,), INTERVAL, pending),
    *(Function("extract", (TEXT, a), _field_digits, pending, returns_for=_field_digits)
      for a in (DATE, TIME, *STAMPS, INTERVAL)),
    *(Function("date_part", (TEXT, a), DOUBLE, pending) for a in (DATE, TIME, *STAMPS, INTERVAL)),
    *(Function("date_trunc", (TEXT, a), a, pending) for a in (*STAMPS, INTERVAL)),
    Function("date_trunc", (TEXT, TIMESTAMPTZ, TEXT), TIMESTAMPTZ, pending),
    *(Function("date_bin", (INTERVAL, a, a), a, pending) for a in STAMPS),
    *(Function("age", (a, a), INTERVAL, pending) for a in STAMPS),
    Function("make_date", (INTEGER, INTEGER, INTEGER), DATE, pending),
    Function("make_time", (INTEGER, INTEGER, DOUBLE), TIME, pending),
    Function("make_timestamp", (INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE), TIMESTAMP, pending),
    *(Function("make_interval", _INTERVAL_PARTS[:count], INTERVAL, pending) for count in range(8)),
    Function("to_timestamp", (DOUBLE,), TIMESTAMPTZ, pending),
    Function("to_timestamp", (TEXT, TEXT), TIMESTAMPTZ, pending),
    Function("to_date", (TEXT, TEXT), DATE, pending),
    *(Function("to_char", (a, TEXT), TEXT, pending) for a in (*STAMPS, INTERVAL, NUMERIC, INTEGER, BIGINT, DOUBLE)),
    *(Function(name, (INTERVAL,), INTERVAL, pending) for name in ("justify_days", "justify_hours", "justify_interval")),
    Function("timezone", (TEXT, TIMESTAMP), TIMESTAMPTZ, pending),
    Function("timezone", (TEXT, TIMESTAMPTZ), TIMESTAMP, pending),
    Function("timezone", (INTERVAL, TIMESTAMP), TIMESTAMPTZ, pending),
    Function("timezone", (INTERVAL, TIMESTAMPTZ), TIMESTAMP, pending),
    *(Function("isfinite", (a,), BOOLEAN, pending) for a in (DATE, *STAMPS, INTERVAL)),
    *(Function(name, (), TIMESTAMPTZ, pending, stable=True)
      for name in ("now", "current_timestamp", "transaction_timestamp", "statement_timestamp")),
    Function("current_date", (), DATE, pending, stable=True),
    Function("localtimestamp", (), TIMESTAMP, pending, stable=True),
    Function("localtime", (), TIME, pending, stable=True),
    Function("clock_timestamp", (), TIMESTAMPTZ, pending, volatile=True),
)  # fmt: skip
