"""Recomputation in DuckDB, on one thread: a good batch engine asked the same question.

The load of a relation into a table of its own is on the clock, as ours is. Each answer is given back to be compared.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from benchmarks.data import Ints
from benchmarks.measure import cpu_clock

NAME = f"duckdb {duckdb.__version__}"
COUNTS = "SELECT k, count(*) AS n FROM r GROUP BY k"
JOINED = "SELECT count(*) AS n FROM r JOIN s USING (k)"
REACH = """
    WITH RECURSIVE reach(node) AS (
        SELECT node FROM roots UNION SELECT dst FROM reach JOIN edges ON src = node
    ) SELECT node FROM reach"""


def measured(sql: str, times: int = 3, **tables: Ints) -> tuple[float, float, pa.Table]:
    """CPU seconds to load and answer, to answer alone, and the answer."""
    whole, query = cpu_clock(), cpu_clock()
    arrow = {name: as_arrow(name, rows) for name, rows in tables.items()}
    for _ in range(times):
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        for name, table in arrow.items():
            connection.register(f"{name}_view", table)
        with whole:
            for name in arrow:
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_view")
            with query:
                answer = connection.sql(sql).to_arrow_table()
        connection.close()
    return whole.least, query.least, answer


COLUMNS = {"r": ("k", "v"), "s": ("k", "w"), "edges": ("src", "dst"), "roots": ("node",)}


def as_arrow(name: str, rows: Ints) -> pa.Table:
    """A relation as an Arrow table, its columns named as the queries name them."""
    columns: list[Any] = [rows] if rows.ndim == 1 else [rows[:, each].copy() for each in range(rows.shape[1])]
    return pa.table(dict(zip(COLUMNS[name], columns, strict=False)))


def count_by_key(keys: Ints) -> tuple[float, float, pa.Table]:
    """E1, E2: how often each key is there."""
    return measured(COUNTS, r=keys)


def count_joined(left: Ints, right: Ints) -> tuple[float, float, pa.Table]:
    """E8: how many pairs have equal keys."""
    return measured(JOINED, r=left, s=right)


def reach(edges: Ints, roots: Ints) -> tuple[float, float, pa.Table]:
    """E7: what some roots reach."""
    return measured(REACH, edges=edges, roots=roots)
