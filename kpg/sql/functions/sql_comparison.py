"""Comparisons: = <> < <= > >=, least and greatest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kpg.columns.expression import Expression, FunctionCall
from kpg.sql.functions.cast_rules import ANY_COMPATIBLE, NUMERIC
from kpg.sql.functions.function import Build, Function
from kpg.sql.functions.sql_arithmetic import FLOATS, INTEGERS
from kpg.sql.functions.sql_casts import build_cast
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
ORDERED: Final = (BOOLEAN, TEXT, CHARACTER, BYTEA, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, UUID, NUMERIC)
MOMENTS: Final = (DATE, TIMESTAMP, TIMESTAMPTZ)
COMPARISONS: Final = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}  # the engine's operators


def _pairs() -> list[tuple[SqlType, SqlType]]:
    """Return the pairs of types that can be compared."""
    groups = (INTEGERS, FLOATS, MOMENTS)
    mixed = [(a, b) for group in groups for a in group for b in group]
    return mixed + [(a, a) for a in ORDERED if a not in MOMENTS]


def comparison_build(op: str) -> Build:
    """Return the build of a comparison; dates and timestamps become the wider type of both."""

    def build(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
        if types[0].name == types[1].name or types[0] not in MOMENTS:
            return FunctionCall(op, tuple(arguments))
        moment = max(types, key=MOMENTS.index)
        pairs = zip(arguments, types, strict=True)
        return FunctionCall(op, tuple(build_cast(argument, type_, moment, explicit=False) for argument, type_ in pairs))

    return build


def _extreme(op: str) -> Build:
    """Return the build of least or greatest, which ignore nulls. The tree is balanced, since each part occurs twice."""

    def build(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
        if len(arguments) == 1:
            return arguments[0]
        half = len(arguments) // 2
        left, right = build(arguments[:half], types[:half], result), build(arguments[half:], types[half:], result)
        return FunctionCall("coalesce", (FunctionCall(op, (left, right)), left, right))

    return build


def _first(types: Sequence[SqlType]) -> SqlType:
    return types[0]


FUNCTIONS: Final = (
    *(Function(op, pair, BOOLEAN, comparison_build(way), total=True)
      for op, way in COMPARISONS.items() for pair in _pairs()),
    *(Function(op, (JSONB, JSONB), BOOLEAN, comparison_build(COMPARISONS[op]), total=True) for op in ("=", "<>")),
    Function("greatest", (ANY_COMPATIBLE,), _first, _extreme("max_of"), variadic=True, total=True),
    Function("least", (ANY_COMPATIBLE,), _first, _extreme("min_of"), variadic=True, total=True),
)  # fmt: skip
