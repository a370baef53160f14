"""The rows of functions of rows, on the Python values of one row's arguments. Null arguments give no rows.

Arrays are lists or tuples. Intervals have months, days, and microseconds or, as Arrow has them, nanoseconds.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np

from kpg.columns.column_types.jsonb_type import canonical_json, parse_json
from kpg.columns.column_types.timestamp_type import EPOCH
from kpg.columns.interval import Interval
from kpg.sql.functions.array_values import from_text
from kpg.sql.functions.date_lanes import moment_plus
from kpg.sql.functions.pattern_values import regexp_split, regular_expression

MAX_SERIES_ROWS: Final = 10_000_000  # of one call: a mistake must not exhaust memory
Rows = Iterator[tuple[Any, ...]]


def numbers(start: Any, stop: Any, step: Any = 1) -> Rows:
    """Return the numbers from start to stop, both included."""
    if step == 0:
        raise ValueError("step size cannot equal zero")
    _check_count((stop - start) // step + 1)
    value = start
    while value <= stop if step > 0 else value >= stop:
        yield (value,)
        value += step


def _check_count(count: Any) -> None:
    if count > MAX_SERIES_ROWS:
        raise ValueError(f"generate_series returns more than {MAX_SERIES_ROWS:,} rows: out of range")


def decimals(start: Decimal, stop: Decimal, step: Decimal = Decimal(1)) -> Rows:
    """Return the numerics from start to stop, both included."""
    return numbers(start, stop, step)


def moments(start: datetime.datetime, stop: datetime.datetime, step: Any) -> Rows:
    """Return the moments from start to stop, both included, each an interval after the one before."""
    interval = _interval(step)
    if interval.span == 0:
        raise ValueError("step size cannot equal zero")
    is_forward = interval.span > 0
    block = np.array([[interval.months], [interval.days], [interval.microseconds]], np.int64)
    moment, count = start, 0
    while moment <= stop if is_forward else moment >= stop:
        yield (moment,)
        count += 1
        _check_count(count)
        later = _plus(moment, block)
        if later is None:
            return
        moment = later


def _plus(moment: datetime.datetime, block: Any) -> datetime.datetime | None:
    epoch = EPOCH if moment.tzinfo is not None else EPOCH.replace(tzinfo=None)
    micros = (moment - epoch) // datetime.timedelta(microseconds=1)
    values, ((failed, _),) = moment_plus(1, np.array([micros], np.int64), block)
    return None if failed[0] else epoch + datetime.timedelta(microseconds=int(values[0]))


def _interval(value: Any) -> Interval:
    if isinstance(value, datetime.timedelta):
        return Interval.of(value)
    micros = value.nanoseconds // 1000 if hasattr(value, "nanoseconds") else value.microseconds
    return Interval(value.months, value.days, micros)


def elements(array: Sequence[Any]) -> Rows:
    """Return the elements of an array."""
    return ((element,) for element in array)


def subscripts(array: Sequence[Any], dimension: int) -> Rows:
    """Return the numbers of the elements of an array."""
    return ((number,) for number in range(1, len(array) + 1) if dimension == 1)


def _parsed(text: str, kind: type, name: str) -> Any:
    value = parse_json(text)
    if not isinstance(value, kind):
        what = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "scalar"
        raise ValueError(f"cannot call {name} on a non-array: cannot extract elements from an {what}, of a scalar")
    return value


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else canonical_json(value)


def json_elements(text: str) -> Rows:
    """Return the elements of an array as jsonb."""
    return ((canonical_json(value),) for value in _parsed(text, list, "jsonb_array_elements"))


def json_element_texts(text: str) -> Rows:
    """Return the elements of an array as text."""
    return ((_text(value),) for value in _parsed(text, list, "jsonb_array_elements_text"))


def _sorted(members: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(members.items(), key=lambda member: (len(member[0].encode()), member[0].encode()))


def json_keys(text: str) -> Rows:
    """Return the names of an object, in the order in which jsonb keeps them."""
    return ((name,) for name, _ in _sorted(_parsed(text, dict, "jsonb_object_keys")))


def json_members(text: str) -> Rows:
    """Return the names and values of an object."""
    return ((name, canonical_json(value)) for name, value in _sorted(_parsed(text, dict, "jsonb_each")))


def json_member_texts(text: str) -> Rows:
    """Return the names and values of an object, as text."""
    return ((name, _text(value)) for name, value in _sorted(_parsed(text, dict, "jsonb_each_text")))


def matches(text: str, pattern: str, flags: str = "") -> Rows:
    """Return the groups of the first match, or of all matches with the flag g; the whole match if there are none."""
    for match in regular_expression(pattern, flags).finditer(text):
        yield (list(match.groups() if match.re.groups else (match[0],)),)
        if "g" not in flags:
            return


def split_parts(text: str, pattern: str, flags: str = "") -> Rows:
    """Return the parts of text between matches."""
    return ((part,) for part in regexp_split(text, pattern, flags))


def separated_parts(text: str, separator: str, null: str | None = None) -> Rows:
    """Return the parts of text between separators."""
    return ((part,) for part in from_text(text, separator, null) or ())
