"""Whether two answers are the same: as multisets of rows, by the values of SQL.

Floats may differ by 1e-12, relatively. Numerics must have the same value. A column of kpg has one scale, which must be
at least that of each value in PostgreSQL, where CASE and UNION give each row its own. Numerics that come from divisions
and averages, whose scales are a listed difference, may differ by 1e-15, also relatively.
"""

from __future__ import annotations

import datetime
import math
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from tests.sql.truth.postgres import Row, Span, exact_json

FLOAT_TOLERANCE = 1e-12
QUOTIENT_SCALE = 16
LEAST_QUOTIENT_SCALE = 9  # of PostgreSQL's quotients with up to 7 digits before the point; products here have less
QUOTIENT_TOLERANCE = 1e-15  # the last digits of a scale of 16, and of a float


def difference(expected: Sequence[Row], actual: Sequence[Row], types: Sequence[str]) -> str | None:
    """Return what differs between two multisets of rows, or None."""
    left, right = by_exact_part(expected, types), by_exact_part(actual, types)
    lines = lost_digits(expected, actual, types)
    for key in left.keys() | right.keys():
        ours, theirs = sorted(left.get(key, [])), sorted(right.get(key, []))
        if len(ours) != len(theirs) or not all(close(a, b) for a, b in zip(ours, theirs, strict=True)):
            lines.append(f"{key}: PostgreSQL has {numbers(ours)}, kpg has {numbers(theirs)}")
    return "\n".join(sorted(lines)) or None


def lost_digits(expected: Sequence[Row], actual: Sequence[Row], types: Sequence[str]) -> list[str]:
    """Return the columns of numerics with fewer digits after the point than PostgreSQL has."""
    lines = []
    for position, kind in enumerate(types):
        if kind.partition("(")[0] == "numeric":
            theirs, ours = (scales(rows, position) for rows in (expected, actual))
            if theirs and ours and min(ours) < max(theirs):
                lines.append(f"column {position}: PostgreSQL has a scale of {max(theirs)}, kpg of {min(ours)}")
    return lines


def scales(rows: Sequence[Row], position: int) -> set[int]:
    """Return the scales of the numerics in a column that are no quotients."""
    exponents = [
        (row[position], row[position].as_tuple().exponent) for row in rows if isinstance(row[position], Decimal)
    ]
    return {
        -exponent for value, exponent in exponents if isinstance(exponent, int) and not is_quotient(value, -exponent)
    }


Inexact = tuple[tuple[float, float], ...]  # numbers with their absolute tolerances


def by_exact_part(rows: Iterable[Row], types: Sequence[str]) -> dict[Row, list[Inexact]]:
    """Group rows by their exact values; give the inexact ones of each."""
    groups: dict[Row, list[Inexact]] = defaultdict(list)
    for row in rows:
        assert len(row) == len(types), f"{len(row)} columns instead of {len(types)}: {row}"
        values = [canonical(value, kind) for value, kind in zip(row, types, strict=True)]
        exact = tuple("~" if isinstance(value, Approximate) else value for value in values)
        groups[exact].append(tuple(value.with_tolerance for value in values if isinstance(value, Approximate)))
    return groups


class Approximate:
    """A number that is compared with a tolerance."""

    def __init__(self, value: float, tolerance: float) -> None:
        self.with_tolerance = (value, tolerance)


def close(left: Inexact, right: Inexact) -> bool:
    """Return whether all pairs of numbers agree."""
    return all(a == b or abs(a - b) <= max(one, other) for (a, one), (b, other) in zip(left, right, strict=True))


def numbers(rows: list[Inexact]) -> str:
    """Return how often a row occurs, with its inexact numbers if it has any."""
    values = [tuple(value for value, _ in row) for row in rows]
    return f"{values}" if any(values) else f"{len(rows)}"


def canonical(value: Any, kind: str) -> Any:
    """Return a hashable value that is equal for equal values of SQL. `kind` is PostgreSQL's type of the column."""
    if value is None:
        return None
    if kind.endswith("[]"):
        return tuple(canonical(element, kind[:-2]) for element in value)
    name = kind.partition("(")[0]
    if name in CANONICAL:
        return CANONICAL[name](value)
    return value


def canonical_float(value: float) -> object:
    """Return a finite float as approximate; others as a string, because nan equals itself in SQL."""
    return str(value) if not math.isfinite(value) else Approximate(float(value), abs(float(value)) * FLOAT_TOLERANCE)


def canonical_numeric(value: Decimal) -> object:
    """Return the value; a quotient as approximate."""
    assert isinstance(value, Decimal), f"a numeric is given as {value!r}"
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        return str(value)
    if is_quotient(value, -exponent):
        return Approximate(float(value), max(1.0, abs(float(value))) * QUOTIENT_TOLERANCE)
    return value


def is_quotient(value: Decimal, scale: int) -> bool:
    """Return whether a numeric may come from a division: ours have a scale of 16, PostgreSQL's 16 significant digits.

    PostgreSQL's variance of equal numbers is a 0 without scale.
    """
    if value == 0 and scale == 0:
        return True
    return scale >= QUOTIENT_SCALE or (scale >= LEAST_QUOTIENT_SCALE and len(value.as_tuple().digits) >= QUOTIENT_SCALE)


def canonical_interval(value: Any) -> Span:
    """Return months, days and microseconds."""
    if isinstance(value, Span):
        return value
    if isinstance(value, datetime.timedelta):
        return Span(0, value.days, value.seconds * 1_000_000 + value.microseconds)
    if hasattr(value, "nanoseconds"):  # Arrow's month_day_nano_interval
        return Span(value.months, value.days, value.nanoseconds // 1000)
    return Span(value.months, value.days, value.microseconds)


def canonical_json(value: Any) -> Any:
    """Return a hashable form of a JSON value; text is parsed."""
    if isinstance(value, str):
        value = exact_json(value)
    return frozen_json(value)


def frozen_json(value: Any) -> Any:
    """Return objects and arrays as tuples."""
    if isinstance(value, dict):
        return ("object", tuple(sorted((key, frozen_json(member)) for key, member in value.items())))
    if isinstance(value, list):
        return ("array", tuple(map(frozen_json, value)))
    return ("number", Decimal(str(value))) if isinstance(value, int | float | Decimal) else value


def canonical_zoned(value: datetime.datetime) -> datetime.datetime:
    """Return an instant in UTC; one without a zone is UTC's."""
    return value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)


def canonical_integer(value: int) -> int:
    """Return an integer, which must not be a float, a Decimal or a Boolean."""
    assert type(value) is int, f"an integer is given as {value!r}"
    return value


CANONICAL = {
    "int2": canonical_integer,
    "int4": canonical_integer,
    "int8": canonical_integer,
    "float4": canonical_float,
    "float8": canonical_float,
    "numeric": canonical_numeric,
    "interval": canonical_interval,
    "jsonb": canonical_json,
    "timestamptz": canonical_zoned,
    "bytea": bytes,
    "uuid": lambda value: uuid.UUID(str(value)),
    "bpchar": lambda text: text.rstrip(" "),
}
