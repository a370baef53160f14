"""TPC-H's tables in PostgreSQL and DuckDB, for comparisons."""

from __future__ import annotations

import io
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import csv

from kpg.sql.tpch.tpch_queries import query_text
from tests.sql.truth.postgres import Postgres

SCALE_FACTOR = 0.01


def copy_into(postgres: Postgres, table: str, rows: pa.Table) -> None:
    """Copy Arrow rows into a table of PostgreSQL."""
    text = io.BytesIO()
    csv.write_csv(rows, text, csv.WriteOptions(include_header=False))
    with (
        postgres.connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({', '.join(rows.column_names)}) FROM STDIN (FORMAT csv)") as copy,
    ):
        copy.write(text.getvalue())


def reference(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """Return DuckDB over Arrow tables, in place, on one thread."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, table in tables.items():
        connection.register(name, table)
    return connection


def duckdb_rows(connection: duckdb.DuckDBPyConnection, number: int) -> list[tuple[Any, ...]]:
    """Return DuckDB's answer of a query."""
    return connection.sql(query_text(number)).fetchall()
