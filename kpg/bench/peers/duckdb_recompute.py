"""Recomputation in DuckDB on one thread: a fast batch engine with the same question.

The load of a relation into a table is on the clock where ours is. Each answer is returned, to be compared with ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.bench.data.graphs import Ints
from kpg.bench.measure import cpu_stopwatch

if TYPE_CHECKING:
    import duckdb

COUNTS = "SELECT k, count(*) AS n FROM r GROUP BY k"
JOINED = "SELECT count(*) AS n FROM r JOIN s USING (k)"
REACH = """
    WITH RECURSIVE reach(node) AS (
        SELECT node FROM roots UNION SELECT dst FROM reach JOIN edges ON src = node
    ) SELECT node FROM reach"""
COLUMNS = {"r": ("k", "v"), "s": ("k", "w"), "edges": ("src", "dst", "label"), "roots": ("node",), "skip": ("node",)}


def name() -> str:
    """Return DuckDB's name with its version."""
    import duckdb

    return f"duckdb {duckdb.__version__}"


def connect(**tables: pa.Table) -> duckdb.DuckDBPyConnection:
    """Return a connection on one thread, with Arrow tables registered as `{name}_view`."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for table, rows in tables.items():
        connection.register(f"{table}_view", rows)
    return connection


def measured(sql: str, tables: dict[str, Ints], times: int = 3) -> tuple[float, float, pa.Table]:
    """Return the least CPU seconds to load and answer, those to answer alone, and the answer."""
    whole, query = cpu_stopwatch(), cpu_stopwatch()
    arrow = {table: as_arrow(table, rows) for table, rows in tables.items()}
    for _ in range(times):
        connection = connect(**arrow)
        with whole:
            for table in arrow:
                connection.execute(f"CREATE TABLE {table} AS SELECT * FROM {table}_view")
            with query:
                answer = connection.sql(sql).to_arrow_table()
        connection.close()
    return whole.least, query.least, answer


def as_arrow(table: str, rows: Ints) -> pa.Table:
    """Return a relation as an Arrow table with the column names of the queries."""
    columns: list[Any] = [rows] if rows.ndim == 1 else [rows[:, index].copy() for index in range(rows.shape[1])]
    return pa.table(dict(zip(COLUMNS[table], columns, strict=False)))


def count_by_key(keys: Ints) -> tuple[float, float, pa.Table]:
    """Count each key (E1, E2, E3)."""
    return measured(COUNTS, {"r": keys})


def count_joined(left: Ints, right: Ints) -> tuple[float, float, pa.Table]:
    """Count the pairs of rows with equal keys (E8)."""
    return measured(JOINED, {"r": left, "s": right})


def reach(edges: Ints, roots: Ints) -> tuple[float, float, pa.Table]:
    """Find the nodes that some roots reach (E7)."""
    return measured(REACH, {"edges": edges, "roots": roots})
