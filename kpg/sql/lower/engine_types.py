"""The column type of the engine that holds the values of each SQL type."""

from __future__ import annotations

from typing import Final

from kpg.columns.schema import BINARY, BOOL, DATE, FLOAT64, INT64, STRING, TIMESTAMP, Type, decimal
from kpg.errors import TypeMismatch
from kpg.sql.sql_types import SqlType

FIXED_TYPES: Final = {
    "boolean": BOOL,
    "smallint": INT64,
    "integer": INT64,
    "bigint": INT64,
    "real": FLOAT64,
    "double precision": FLOAT64,
    "text": STRING,
    "character varying": STRING,
    "character": STRING,
    "name": STRING,
    "unknown": STRING,
    "bytea": BINARY,
    "date": DATE,
    "timestamp without time zone": TIMESTAMP,
    "timestamp with time zone": TIMESTAMP,
}


def engine_type(type_: SqlType, *, nullable: bool = True) -> Type:
    """Return the column type that holds values of an SQL type."""
    if type_.name == "numeric":
        return decimal(type_.precision or 18, type_.scale or 0).optional(nullable)
    fixed = FIXED_TYPES.get(type_.name)
    if fixed is None:
        raise TypeMismatch(f"no column holds the type {type_}")
    return fixed.optional(nullable)
