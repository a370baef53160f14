"""Functions that return rows: generate_series, unnest, and those of jsonb and regular expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kpg.errors import KpgError
from kpg.sql.functions.cast_rules import ANY_ARRAY, NUMERIC, widest_numeric
from kpg.sql.functions.function import TableFunction
from kpg.sql.sql_types import (
    BIGINT,
    INTEGER,
    INTERVAL,
    JSONB,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    array_of,
)


def _pending(*arguments: Any) -> Iterator[tuple[Any, ...]]:
    raise KpgError("this function of rows is not supported")


def _first(types: Sequence[SqlType]) -> tuple[SqlType, ...]:
    return (types[0],)


def _numeric(types: Sequence[SqlType]) -> tuple[SqlType, ...]:
    return (widest_numeric(types),)


def _element(types: Sequence[SqlType]) -> tuple[SqlType, ...]:
    return (types[0].element or TEXT,)


def _of(*columns: SqlType) -> Any:
    return lambda types: columns


TABLE_FUNCTIONS: Final = (
    *(TableFunction("generate_series", (a,) * count, _first, _pending) for a in (INTEGER, BIGINT) for count in (2, 3)),
    *(TableFunction("generate_series", (NUMERIC,) * count, _numeric, _pending) for count in (2, 3)),
    *(TableFunction("generate_series", (a, a, INTERVAL), _first, _pending) for a in (TIMESTAMP, TIMESTAMPTZ)),
    TableFunction("unnest", (ANY_ARRAY,), _element, _pending),
    TableFunction("generate_subscripts", (ANY_ARRAY, INTEGER), _of(INTEGER), _pending),
    TableFunction("jsonb_array_elements", (JSONB,), _of(JSONB), _pending),
    TableFunction("jsonb_array_elements_text", (JSONB,), _of(TEXT), _pending),
    TableFunction("jsonb_object_keys", (JSONB,), _of(TEXT), _pending),
    TableFunction("jsonb_each", (JSONB,), _of(TEXT, JSONB), _pending),
    TableFunction("jsonb_each_text", (JSONB,), _of(TEXT, TEXT), _pending),
    *(TableFunction("regexp_matches", (TEXT,) * count, _of(array_of(TEXT)), _pending) for count in (2, 3)),
    *(TableFunction("regexp_split_to_table", (TEXT,) * count, _of(TEXT), _pending) for count in (2, 3)),
    *(TableFunction("string_to_table", (TEXT,) * count, _of(TEXT), _pending) for count in (2, 3)),
)
