"""Parts of dates and timestamps, in UTC: year, month, day, weekday, hour, minute, second; and their truncation.

No row fails, except where truncation to a duration leaves the range of timestamps.

To add a date function, follow the steps in kpg/columns/bind.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from kpg.columns.bound_nodes import BindingScope, BoundNode, PartialFunctionNode, TotalFunctionNode
from kpg.columns.coercion import refuse
from kpg.columns.column_types.timestamp_type import DAY_MICROSECONDS
from kpg.columns.expression import FunctionCall
from kpg.columns.overflow import Checked
from kpg.columns.schema import INT64
from kpg.columns.updates import Ints


def _year(days: Ints) -> Ints:
    return days.view("M8[D]").astype("M8[Y]").astype(np.int64) + 1970


def _month(days: Ints) -> Ints:
    return days.view("M8[D]").astype("M8[M]").astype(np.int64) % 12 + 1


def _day(days: Ints) -> Ints:
    dates = days.view("M8[D]")
    first = dates.astype("M8[M]").astype("M8[D]")
    return days - first.view(np.int64) + 1


def _weekday(days: Ints) -> Ints:
    return (days + 3) % 7  # day 0 was a Thursday


def _of_day(part: Callable[[Ints], Ints], microseconds: Ints) -> Ints:
    return part(microseconds // DAY_MICROSECONDS)


def _of_clock(unit: int, modulus: int, microseconds: Ints) -> Ints:
    return microseconds // unit % modulus


# Functions of the day, and (microseconds per unit, modulus) of functions of the time of day.
_DAYS: Final = {"dt.year": _year, "dt.month": _month, "dt.day": _day, "dt.weekday": _weekday}
_CLOCK: Final = {"dt.hour": (3_600_000_000, 24), "dt.minute": (60_000_000, 60), "dt.second": (1_000_000, 60)}


def part(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind a dt function."""
    (argument,) = arguments
    type_ = INT64.optional(argument.type.nullable)
    if argument.type.kind == "time" and call.op in _CLOCK:
        return TotalFunctionNode(type_, arguments, partial(_of_clock, *_CLOCK[call.op]))
    if argument.type.kind in ("timestamp", "timestamp_ntz"):
        if call.op in _CLOCK:
            return TotalFunctionNode(type_, arguments, partial(_of_clock, *_CLOCK[call.op]))
        return TotalFunctionNode(type_, arguments, partial(_of_day, _DAYS[call.op]))
    if argument.type.kind == "date" and call.op in _DAYS:
        return TotalFunctionNode(type_, arguments, _DAYS[call.op])
    refuse(
        call,
        arguments,
        "A date has year, month, day and weekday; a timestamp also hour, minute and second, as a time has.",
    )


def _start_of(unit: str, days: Ints) -> Ints:
    return days.view("M8[D]").astype(f"M8[{unit}]").astype("M8[D]").view(np.int64)


def _start_of_quarter(days: Ints) -> Ints:
    months = days.view("M8[D]").astype("M8[M]").view(np.int64)
    return (months - months % 3).view("M8[M]").astype("M8[D]").view(np.int64)


def _start_of_week(days: Ints) -> Ints:
    return days - _weekday(days)


def _start_of_clock(unit: int, microseconds: Ints) -> Ints:
    return microseconds - microseconds % unit


def _midnight_of(start: Callable[[Ints], Ints], microseconds: Ints) -> Ints:
    return start(microseconds // DAY_MICROSECONDS) * DAY_MICROSECONDS


def _start_of_duration(unit: int, low: int, microseconds: Ints) -> Checked:
    start = _start_of_clock(unit, microseconds)
    return start, start < low


# Functions of the day, and the microseconds of smaller units.
_DAY_STARTS: Final[dict[str, Callable[[Ints], Ints]]] = {
    "year": partial(_start_of, "Y"),
    "quarter": _start_of_quarter,
    "month": partial(_start_of, "M"),
    "week": _start_of_week,
    "day": partial(_start_of, "D"),
}
_CLOCK_STARTS: Final = {
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
}


def truncate(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind dt.truncate."""
    (argument,), (unit,) = arguments, call.options
    kind = argument.type.kind
    if unit in _DAY_STARTS and kind in ("date", "timestamp"):
        start = _DAY_STARTS[unit]
        return TotalFunctionNode(argument.type, arguments, start if kind == "date" else partial(_midnight_of, start))
    if kind == "timestamp" and unit in _CLOCK_STARTS:
        return TotalFunctionNode(argument.type, arguments, partial(_start_of_clock, _CLOCK_STARTS[unit]))
    number, _, of = str(unit).partition(" ")
    if kind == "timestamp" and of == "microseconds" and number.isdecimal() and int(number) > 0:
        compute = partial(_start_of_duration, int(number), argument.type.limits()[0])
        return PartialFunctionNode(argument.type, arguments, compute, scope.code("no such timestamp", call))
    refuse(
        call,
        arguments,
        f"A date has {', '.join(_DAY_STARTS)}; a timestamp also {', '.join(_CLOCK_STARTS)}, or a positive timedelta.",
    )
