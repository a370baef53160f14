"""Comparisons: = <> < <= > >=, least and greatest, nullif."""

from __future__ import annotations

from typing import Final

from kpg.sql.functions.building import pending
from kpg.sql.functions.cast_rules import ANY_ARRAY, ANY_COMPATIBLE, NUMERIC
from kpg.sql.functions.function import Function
from kpg.sql.functions.sql_arithmetic import FLOATS, INTEGERS
from kpg.sql.sql_types import (
    BOOLEAN,
    BYTEA,
    DATE,
    INTERVAL,
    JSONB,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    SqlType,
)

CHARACTER: Final = SqlType("character")
ORDERED: Final = (BOOLEAN, TEXT, CHARACTER, BYTEA, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, UUID, JSONB, NUMERIC)
MOMENTS: Final = (DATE, TIMESTAMP, TIMESTAMPTZ)
COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")


def _pairs() -> list[tuple[SqlType, SqlType]]:
    """Return the pairs of types that can be compared."""
    groups = (INTEGERS, FLOATS, MOMENTS)
    mixed = [(a, b) for group in groups for a in group for b in group]
    return mixed + [(a, a) for a in ORDERED if a not in MOMENTS] + [(ANY_ARRAY, ANY_ARRAY)]


FUNCTIONS: Final = (
    *(Function(op, pair, BOOLEAN, pending) for op in COMPARISONS for pair in _pairs()),
    Function("greatest", (ANY_COMPATIBLE,), lambda types: types[0], pending, variadic=True),
    Function("least", (ANY_COMPATIBLE,), lambda types: types[0], pending, variadic=True),
    Function("nullif", (ANY_COMPATIBLE, ANY_COMPATIBLE), lambda types: types[0], pending),
)
