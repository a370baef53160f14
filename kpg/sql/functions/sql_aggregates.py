"""Aggregates: their signatures, result types, and the name of the computation of each (`lowering`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kpg.sql.functions.cast_rules import ANY, ANY_ARRAY, ANY_ELEMENT, ANY_NONARRAY, NUMERIC
from kpg.sql.functions.function import AggregateFunction
from kpg.sql.functions.numeric_results import mean_digits, total_digits
from kpg.sql.functions.sql_arithmetic import FLOATS, INTEGERS
from kpg.sql.functions.sql_comparison import CHARACTER
from kpg.sql.sql_types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    array_of,
)

EXTREMES: Final = (*INTEGERS, *FLOATS, TEXT, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL)
SPREADS: Final = (
    ("var_samp", "var_samp"), ("variance", "var_samp"), ("var_pop", "var_pop"),
    ("stddev_samp", "stddev_samp"), ("stddev", "stddev_samp"), ("stddev_pop", "stddev_pop"),
)  # fmt: skip


def _first(types: Sequence[SqlType]) -> SqlType:
    return types[0].without_modifiers()


def _last(types: Sequence[SqlType]) -> SqlType:
    return types[-1].without_modifiers()


def _array(types: Sequence[SqlType]) -> SqlType:
    return array_of(types[0].without_modifiers())


AGGREGATES: Final = (
    AggregateFunction("count", (), BIGINT, "count"),
    AggregateFunction("count", (ANY,), BIGINT, "count"),
    AggregateFunction("sum", (SMALLINT,), BIGINT, "sum"),
    AggregateFunction("sum", (INTEGER,), BIGINT, "sum"),
    AggregateFunction("sum", (BIGINT,), total_digits, "sum"),
    AggregateFunction("sum", (NUMERIC,), total_digits, "sum"),
    AggregateFunction("sum", (REAL,), REAL, "sum"),
    AggregateFunction("sum", (DOUBLE,), DOUBLE, "sum"),
    AggregateFunction("sum", (INTERVAL,), INTERVAL, "sum"),
    *(AggregateFunction("avg", (type_,), mean_digits, "avg") for type_ in (*INTEGERS, NUMERIC)),
    *(AggregateFunction("avg", (type_,), DOUBLE, "avg") for type_ in FLOATS),
    AggregateFunction("avg", (INTERVAL,), INTERVAL, "avg"),
    *(
        AggregateFunction(name, (type_,), _first, name)
        for name in ("min", "max")
        for type_ in (*EXTREMES, NUMERIC, CHARACTER)
    ),
    *(AggregateFunction(name, (ANY_ARRAY,), _first, f"{name}_array") for name in ("min", "max")),
    *(AggregateFunction(name, (BOOLEAN,), BOOLEAN, "bool_and") for name in ("bool_and", "every")),
    AggregateFunction("bool_or", (BOOLEAN,), BOOLEAN, "bool_or"),
    *(AggregateFunction(name, (a,), a, name) for name in ("bit_and", "bit_or", "bit_xor") for a in INTEGERS),
    *(AggregateFunction(name, (a,), mean_digits, way) for name, way in SPREADS for a in (*INTEGERS, NUMERIC)),
    *(AggregateFunction(name, (a,), DOUBLE, way) for name, way in SPREADS for a in FLOATS),
    AggregateFunction("string_agg", (TEXT, TEXT), TEXT, "string_agg"),
    AggregateFunction("string_agg", (BYTEA, BYTEA), BYTEA, "string_agg"),
    AggregateFunction("array_agg", (ANY_NONARRAY,), _array, "array_agg"),
    AggregateFunction("percentile_cont", (DOUBLE, DOUBLE), DOUBLE, "percentile_cont", ordered=True),
    AggregateFunction("percentile_cont", (DOUBLE, INTERVAL), INTERVAL, "percentile_cont", ordered=True),
    AggregateFunction("percentile_disc", (DOUBLE, ANY_ELEMENT), _last, "percentile_disc", ordered=True),
    AggregateFunction("mode", (ANY_ELEMENT,), _first, "mode", ordered=True),
)
