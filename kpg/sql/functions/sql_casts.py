"""Casts between SQL types, as expressions. kpg.sql.functions.cast_rules says which casts exist.

numbers       integers and numerics are checked against the range of the target; floats to integers round half to
              even, numerics half away from zero
text          every type reads text and writes it, once for each distinct value
varchar(n)    an explicit cast cuts longer text, an assignment refuses it; char(n) drops trailing blanks
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

from kpg.columns.column_types.timestamp_type import DAY_MICROSECONDS
from kpg.columns.expression import Apply, Expression
from kpg.columns.interval_text import read_interval
from kpg.columns.updates import Ints
from kpg.errors import TypeMismatch
from kpg.sql.functions import (
    date_input,
    float_lanes,
    integer_lanes,
    json_values,
    numeric_lanes,
    text_input,
    text_output,
)
from kpg.sql.functions.array_values import split_literal
from kpg.sql.functions.cast_rules import INTEGER_DIGITS, numeric_of
from kpg.sql.functions.date_lanes import clock_of, clock_to_interval, interval_to_clock
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.sql_states import with_sqlstate
from kpg.sql.sql_types import DOUBLE, INTEGER_LIMITS, TEXT, SqlType


def build_cast(argument: Expression, source: SqlType, target: SqlType, explicit: bool) -> Expression:
    """Return a value of one type as another."""
    if source.is_text or source.name == "unknown":
        return _from_text(argument, source, target, explicit)
    if target.is_text:
        return _limited(_applied("distinct", _write(source), TEXT, argument), TEXT, target, explicit)
    if source.is_number and target.is_number:
        return _number(argument, source, target)
    if source.name == "jsonb" and (target.is_number or target.name == "boolean"):
        scalar = _applied("distinct", (json_values.scalar_of, target.name), TEXT, argument)
        exact = SqlType("numeric", 38, 16) if target.is_integer else target
        return build_cast(_from_text(scalar, TEXT, exact, explicit), exact, target, explicit)
    if source.element is not None and target.element is not None:
        return _array(argument, source, target)
    if source.name == target.name:
        return argument
    function = _MOMENTS.get((source.name, target.name))
    if function is not None:
        return _applied("total", (function,), target, argument)
    raise with_sqlstate("42846", TypeMismatch(f"cannot cast type {source} to {target}"))


def is_total_cast(source: SqlType, target: SqlType) -> bool:
    """Return whether no row can fail on a cast."""
    if target.is_text:
        return target.length is None or (source.length is not None and source.length <= target.length)
    if source.name == target.name != "numeric":
        return True
    if source.is_integer:
        return target.name in ("real", "double precision") or _is_wider(source, target)
    return (source.name, target.name) in (("numeric", "double precision"), ("real", "double precision")) or (
        (source.name, target.name) in _MOMENTS
    )


def _is_wider(source: SqlType, target: SqlType) -> bool:
    if target.is_integer:
        return INTEGER_DIGITS[source.name] <= INTEGER_DIGITS[target.name]
    digits = numeric_of(target)
    return target.name == "numeric" and (digits.precision or 0) - (digits.scale or 0) >= INTEGER_DIGITS[source.name]


def _applied(kind: str, function: tuple[Any, ...], target: SqlType, *arguments: Expression) -> Expression:
    called, *options = function
    return Apply(called, engine_type(target, nullable=False), kind, arguments, tuple(options))


def _array(argument: Expression, source: SqlType, target: SqlType) -> Expression:
    if source == target:
        return argument
    assert source.element is not None and target.element is not None
    return _applied("distinct", (recast_array, source.element.name, str(target.element)), target, argument)


def recast_array(source_name: str, target: str, array: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an array with elements of another type, by their texts."""
    shown = [None if value is None else text_output.write_any(source_name, value) for value in array]
    return tuple(None if text is None else read_value(target, text) for text in shown)


def read_array(element: str, text: str) -> tuple[Any, ...]:
    """Return the array of a literal; `element` is the type of its elements."""
    return tuple(None if part is None else read_value(element, part) for part in split_literal(text))


def read_value(type_text: str, text: str) -> Any:
    """Return the value that a text has in a type, given as its text."""
    type_ = _type_of_text(type_text)
    if type_.is_text:
        return text if type_.length is None else text_input.limited_text(type_.name, type_.length, True, text)
    function, *options = reader(type_)
    return function(*options, text)


@lru_cache(1000)
def _type_of_text(text: str) -> SqlType:
    match = re.fullmatch(r"([a-z ]+?)(?:\((\d+)(?:,(\d+))?\))?", text)
    assert match is not None, text
    name, first, second = match.groups()
    if name == "numeric":
        return numeric_of(SqlType(name)) if first is None else SqlType(name, int(first), int(second or 0))
    return SqlType(name, length=None if first is None else int(first))


# --- text -------------------------------------------------------------------------------------------------------------


def _from_text(argument: Expression, source: SqlType, target: SqlType, explicit: bool) -> Expression:
    if target.is_text:
        return _limited(argument, source, target, explicit)
    if target.name == "numeric":
        digits = numeric_of(target)
        return _applied("distinct", (text_input.read_numeric, digits.precision, digits.scale), digits, argument)
    if source.name == "character" and target.name == "bytea":
        return _applied("distinct", (text_input.padded_bytes, source.length or 1), target, argument)
    return _applied("distinct", reader(target), target, argument)


def _limited(argument: Expression, source: SqlType, target: SqlType, explicit: bool) -> Expression:
    if target.length is None:
        needs_trim = target.name == "character" and source.name != "character"
        return _applied("distinct", (text_input.without_blanks,), target, argument) if needs_trim else argument
    if source.name == target.name and source.length is not None and source.length <= target.length:
        return argument
    return _applied("distinct", (text_input.limited_text, target.name, target.length, explicit), target, argument)


def reader(target: SqlType) -> tuple[Any, ...]:
    """Return the function that reads a type from text, and its options."""
    if target.is_integer:
        return text_input.read_integer, target.name
    if target.name == "numeric":
        return text_input.read_numeric, target.precision, target.scale
    if target.element is not None:
        return read_array, str(target.element)
    known = _READERS.get(target.name)
    if known is None:
        raise with_sqlstate("42846", TypeMismatch(f"cannot cast type text to {target}"))
    return known


_READERS: Final[dict[str, tuple[Any, ...]]] = {
    "boolean": (text_input.read_boolean,),
    "real": (text_input.read_float, True),
    "double precision": (text_input.read_float, False),
    "bytea": (text_input.read_bytes,),
    "uuid": (text_input.read_uuid,),
    "jsonb": (json_values.read_jsonb,),
    "interval": (read_interval,),
    "date": (date_input.read_date,),
    "time without time zone": (date_input.read_time,),
    "timestamp without time zone": (date_input.read_timestamp, False),
    "timestamp with time zone": (date_input.read_timestamp, True),
}


def _write(source: SqlType) -> tuple[Any, ...]:
    return text_output.write_any, source.name


# --- numbers ----------------------------------------------------------------------------------------------------------


def _number(argument: Expression, source: SqlType, target: SqlType) -> Expression:
    single = target.name == "real"
    if target.is_integer:
        return _to_integer(argument, source, target)
    if target.name == "numeric":
        return _to_numeric(argument, source, numeric_of(target) if target.precision is None else target)
    if source.is_integer:
        return _applied("total", (float_lanes.integers_to_floats, single), target, argument)
    if source.name == "numeric":
        wide = _applied("total", (numeric_lanes.numerics_to_floats, source.scale), DOUBLE, argument)
        return _applied("lanes", (float_lanes.narrow_floats,), target, wide) if single else wide
    if source.name == "double precision" and single:
        return _applied("lanes", (float_lanes.narrow_floats,), target, argument)
    return argument


def _to_integer(argument: Expression, source: SqlType, target: SqlType) -> Expression:
    if source.is_integer:
        if INTEGER_LIMITS[source.name][1] <= INTEGER_LIMITS[target.name][1]:
            return argument
        return _applied("lanes", (integer_lanes.in_range, target.name), target, argument)
    if source.name == "numeric":
        return _applied("lanes", (numeric_lanes.numerics_to_integers, source.scale, target.name), target, argument)
    return _applied("lanes", (float_lanes.floats_to_integers, target.name), target, argument)


def _to_numeric(argument: Expression, source: SqlType, target: SqlType) -> Expression:
    if source.name == "numeric" and (source.precision, source.scale) == (target.precision, target.scale):
        return argument
    if source.is_integer or source.name == "numeric":
        shift = (target.scale or 0) - (source.scale or 0)
        return _applied(
            "lanes", (numeric_lanes.rescaled, shift, target.precision, numeric_lanes.FIELD_OVERFLOW), target, argument
        )
    if source.name == "real":
        return _applied("distinct", (_real_to_numeric, target.precision, target.scale), target, argument)
    return _applied("lanes", (numeric_lanes.floats_to_numerics, target.precision, target.scale), target, argument)


def _real_to_numeric(precision: int, scale: int, value: float) -> Any:
    """Return the first six digits of a real."""
    if not np.isfinite(value):
        raise ValueError("cannot convert infinity or NaN to numeric")
    return text_input.rounded_number(text_input.read_number(f"{value:.6g}"), precision, scale)


# --- moments and truth ------------------------------------------------------------------------------------------------


def midnight(days: Ints) -> Ints:
    """Return the first moment of days."""
    return days * DAY_MICROSECONDS


def day_of(microseconds: Ints) -> Ints:
    """Return the day of moments."""
    return microseconds // DAY_MICROSECONDS


def unchanged(lane: Ints) -> Ints:
    """Return a lane as it is."""
    return lane


def is_not_zero(lane: Ints) -> Ints:
    """Return whether numbers are not zero."""
    truth: Ints = (lane != 0).astype(np.int64)
    return truth


_TIMESTAMP, _TIMESTAMPTZ = "timestamp without time zone", "timestamp with time zone"
_MOMENTS: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    ("date", _TIMESTAMP): midnight,
    ("date", _TIMESTAMPTZ): midnight,
    (_TIMESTAMP, "date"): day_of,
    (_TIMESTAMPTZ, "date"): day_of,
    (_TIMESTAMP, _TIMESTAMPTZ): unchanged,
    (_TIMESTAMPTZ, _TIMESTAMP): unchanged,
    (_TIMESTAMP, "time without time zone"): clock_of,
    (_TIMESTAMPTZ, "time without time zone"): clock_of,
    ("time without time zone", "interval"): clock_to_interval,
    ("interval", "time without time zone"): interval_to_clock,
    ("boolean", "integer"): unchanged,
    ("integer", "boolean"): is_not_zero,
}
