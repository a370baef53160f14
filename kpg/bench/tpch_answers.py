"""Whether kpg's answer of a query of TPC-H is DuckDB's: the same rows, as a multiset.

DuckDB divides numerics as floats, so a numeric of ours and a float of DuckDB may differ by 1e-9, relatively. All other
values must be equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.sql.tpch.tpch_queries import query_text

if TYPE_CHECKING:
    import duckdb

QUOTIENT_TOLERANCE = 1e-9
SPARK_TOLERANCE = 1e-6  # Spark SQL rounds averages and quotients of these numerics to six digits
Rows = Sequence[tuple[Any, ...]]


def connect(tables: Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """Return DuckDB on one thread over Arrow tables, which it reads in place."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, table in tables.items():
        connection.register(name, table)
    return connection


def duckdb_answer(number: int, tables: Mapping[str, pa.Table]) -> Rows:
    """Return DuckDB's answer of a query."""
    connection = connect(tables)
    try:
        rows: Rows = connection.sql(query_text(number)).fetchall()
        return rows
    finally:
        connection.close()


def agree(ours: Rows, theirs: Rows, tolerance: float = 0.0) -> bool:
    """Return whether both answers are the same multiset of rows; quotients may also differ by an absolute tolerance."""
    if len(ours) != len(theirs):
        return False
    left, right = sorted(ours, key=sortable), sorted(theirs, key=sortable)
    return all(same_row(a, b, tolerance) for a, b in zip(left, right, strict=True))


def sortable(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Return a key by which equal rows of both systems sort alike: quotients are rounded."""
    return tuple(f"{float(value):.6e}" if is_number(value) else str(value).rstrip() for value in row)


def same_row(ours: tuple[Any, ...], theirs: tuple[Any, ...], tolerance: float) -> bool:
    """Return whether two rows are the same."""
    return len(ours) == len(theirs) and all(same_value(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))


def same_value(ours: Any, theirs: Any, tolerance: float) -> bool:
    """Return whether two values are the same."""
    if isinstance(theirs, float) and is_number(ours):
        return math.isclose(float(ours), theirs, rel_tol=QUOTIENT_TOLERANCE, abs_tol=tolerance)
    if isinstance(ours, str) and isinstance(theirs, str):
        return ours.rstrip() == theirs.rstrip()  # CHAR(n)
    return bool(ours == theirs)


def is_number(value: Any) -> bool:
    """Return whether a value is a number."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
