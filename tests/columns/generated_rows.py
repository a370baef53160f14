"""Hypothesis strategies for types, values and rows: few values, so that they repeat, and the limits of every type."""

import datetime
import math
from decimal import Decimal

from hypothesis import strategies as st

from kpg.columns.schema import Schema, Type, decimal

KINDS = ("int64", "float64", "bool", "string", "binary", "date", "timestamp", "time")

EXTREMES = st.sampled_from([0, 1, -1, 2**31, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1])
INTS = st.integers(-4, 4) | EXTREMES | st.integers(-(2**63) + 1, 2**63 - 1)
FLOATS = st.sampled_from([0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 5e-324, 1.7e308]) | st.floats()
STRINGS = st.sampled_from(["", "a", "b", "ab", "A", "é", "日本", "\x00", "\U0001f600"]) | st.text(max_size=5)
BYTES = st.sampled_from([b"", b"a", b"b", b"\xff\xfe", b"\x00"]) | st.binary(max_size=4)
DATES = st.dates() | st.sampled_from([datetime.date.min, datetime.date.max, datetime.date(1970, 1, 1)])
TIMESTAMPS = st.datetimes(timezones=st.just(datetime.UTC)) | st.datetimes()


def decimals(type_: Type) -> st.SearchStrategy[Decimal]:
    limit = 10**type_.precision - 1
    return st.integers(-limit, limit).map(lambda number: Decimal(f"{number}e-{type_.scale}"))


def values(type_: Type) -> st.SearchStrategy:
    kinds = dict(zip(KINDS, (INTS, FLOATS, st.booleans(), STRINGS, BYTES, DATES, TIMESTAMPS, st.times()), strict=True))
    chosen = decimals(type_) if type_.kind == "decimal" else kinds[type_.kind]
    return st.none() | chosen if type_.nullable else chosen


def decimal_types() -> st.SearchStrategy[Type]:
    return st.integers(1, 38).flatmap(lambda digits: st.integers(0, digits).map(lambda scale: decimal(digits, scale)))


TYPES = st.builds(
    lambda type_, nullable: type_.optional(nullable), st.sampled_from(KINDS).map(Type) | decimal_types(), st.booleans()
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, list[tuple]]:
    types = tuple(draw(st.lists(TYPES, min_size=1, max_size=4)))
    schema = Schema(tuple(f"c{position}" for position in range(len(types))), types)
    return schema, draw(st.lists(st.tuples(*map(values, types)), max_size=6))


def canonical(value: object) -> object:
    """Return the value that decoding should give, with NaN made equal to itself."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=datetime.UTC)
    return value


def canonical_rows(rows: list[tuple]) -> list[tuple]:
    return [tuple(map(canonical, row)) for row in rows]
