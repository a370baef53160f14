"""The column type of the engine that holds the values of each SQL type, and the SQL type of a column of the engine.

smallint, integer, bigint            int64; results are checked against the range of their type
real, double precision               float64; a real is rounded to the nearest float of 32 bits
numeric(p, s)                        decimal(p, s)
text, varchar(n)                     string
char(n)                              string without trailing blanks; output pads it to n characters
timestamp, timestamp with time zone  timestamp: microseconds since 1970-01-01, the latter in UTC
"""

from __future__ import annotations

from typing import Final

from kpg.columns.schema import (
    BINARY,
    BOOL,
    DATE,
    FLOAT64,
    INT64,
    INTERVAL,
    JSONB,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    Type,
    array_of,
    decimal,
)
from kpg.errors import TypeMismatch
from kpg.sql import sql_types
from kpg.sql.functions.cast_rules import DEFAULT_NUMERIC
from kpg.sql.sql_types import SqlType

FIXED_TYPES: Final = {
    "boolean": BOOL,
    "smallint": INT64,
    "integer": INT64,
    "bigint": INT64,
    "oid": INT64,
    "real": FLOAT64,
    "double precision": FLOAT64,
    "text": STRING,
    "character varying": STRING,
    "character": STRING,
    "name": STRING,
    "unknown": STRING,
    "bytea": BINARY,
    "date": DATE,
    "time without time zone": TIME,
    "timestamp without time zone": TIMESTAMP_NTZ,
    "timestamp with time zone": TIMESTAMP,
    "interval": INTERVAL,
    "uuid": UUID,
    "jsonb": JSONB,
}
SQL_TYPES: Final = {
    "int64": sql_types.BIGINT,
    "uint64": sql_types.numeric(20, 0),
    "float64": sql_types.DOUBLE,
    "bool": sql_types.BOOLEAN,
    "string": sql_types.TEXT,
    "binary": sql_types.BYTEA,
    "date": sql_types.DATE,
    "timestamp": sql_types.TIMESTAMPTZ,
    "timestamp_ntz": sql_types.TIMESTAMP,
    "time": sql_types.TIME,
    "interval": sql_types.INTERVAL,
    "uuid": sql_types.UUID,
    "jsonb": sql_types.JSONB,
}


def engine_type(type_: SqlType, *, nullable: bool = True) -> Type:
    """Return the column type that holds values of an SQL type."""
    if type_.name == "numeric":
        precision = DEFAULT_NUMERIC.precision if type_.precision is None else type_.precision
        scale = DEFAULT_NUMERIC.scale if type_.precision is None else type_.scale
        return decimal(precision or 1, scale or 0).optional(nullable)
    fixed = FIXED_TYPES.get(type_.name)
    if fixed is not None:
        return fixed.optional(nullable)
    if type_.element is not None:
        return array_of(engine_type(type_.element)).optional(nullable)
    raise TypeMismatch(f"no column holds the type {type_}")


def sql_type(type_: Type) -> SqlType:
    """Return the SQL type of a column that Python or Datalog declared."""
    if type_.kind == "decimal":
        return sql_types.numeric(type_.precision, type_.scale)
    if type_.element is not None:
        return sql_types.array_of(sql_type(type_.element))
    name = SQL_TYPES.get(type_.kind)
    if name is None:
        raise TypeMismatch(f"SQL has no type for {type_}")
    return name
