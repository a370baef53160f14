"""Functions that return rows: generate_series, unnest, and those of jsonb and regular expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kpg.sql.functions import row_values
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


def _first(types: Sequence[SqlType]) -> tuple[SqlType, ...]:
    return (types[0],)


def _numeric(types: Sequence[SqlType]) -> tuple[SqlType, ...]:
    return (widest_numeric(types),)


def _element(types: Sequence[SqlType]) -> tuple[SqlType, ...]:
    return (types[0].element or TEXT,)


def _of(*columns: SqlType) -> Any:
    return lambda types: columns


TABLE_FUNCTIONS: Final = (
    *(
        TableFunction("generate_series", (a,) * count, _first, row_values.numbers)
        for a in (INTEGER, BIGINT)
        for count in (2, 3)
    ),
    *(TableFunction("generate_series", (NUMERIC,) * count, _numeric, row_values.decimals) for count in (2, 3)),
    *(TableFunction("generate_series", (a, a, INTERVAL), _first, row_values.moments) for a in (TIMESTAMP, TIMESTAMPTZ)),
    TableFunction("unnest", (ANY_ARRAY,), _element, row_values.elements),
    TableFunction("generate_subscripts", (ANY_ARRAY, INTEGER), _of(INTEGER), row_values.subscripts),
    TableFunction("jsonb_array_elements", (JSONB,), _of(JSONB), row_values.json_elements),
    TableFunction("jsonb_array_elements_text", (JSONB,), _of(TEXT), row_values.json_element_texts),
    TableFunction("jsonb_object_keys", (JSONB,), _of(TEXT), row_values.json_keys),
    TableFunction("jsonb_each", (JSONB,), _of(TEXT, JSONB), row_values.json_members),
    TableFunction("jsonb_each_text", (JSONB,), _of(TEXT, TEXT), row_values.json_member_texts),
    *(TableFunction("regexp_matches", (TEXT,) * count, _of(array_of(TEXT)), row_values.matches) for count in (2, 3)),
    *(TableFunction("regexp_split_to_table", (TEXT,) * count, _of(TEXT), row_values.split_parts) for count in (2, 3)),
    *(TableFunction("string_to_table", (TEXT,) * count, _of(TEXT), row_values.separated_parts) for count in (2, 3)),
)
