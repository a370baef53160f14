"""The tables and queries of TPC-H: PostgreSQL and DuckDB take them, and agree on all answers."""

import duckdb
import pytest

from kpg.sql.tpch.tpch_data import load_tables
from kpg.sql.tpch.tpch_queries import NUMBERS, columns_read, query_text
from kpg.sql.tpch.tpch_tables import COLUMNS, PRIMARY_KEYS, create_table
from tests.sql.tpch.loading import SCALE_FACTOR, copy_into, duckdb_rows, reference
from tests.sql.truth.compare import difference


@pytest.fixture(scope="module")
def tables():
    return load_tables(SCALE_FACTOR)


def test_the_data_has_the_declared_columns(tables):
    assert {name: table.column_names for name, table in tables.items()} == {
        name: list(columns) for name, columns in COLUMNS.items()
    }
    sizes = {name: table.num_rows for name, table in tables.items()}
    assert sizes["orders"] == 15_000 and sizes["lineitem"] == 60_175 and sizes["nation"] == 25


def test_the_primary_keys_are_keys(tables):
    for name, key in PRIMARY_KEYS.items():
        assert tables[name].group_by(list(key)).aggregate([]).num_rows == tables[name].num_rows


@pytest.mark.parametrize("number", NUMBERS)
def test_a_query_reads_the_columns_that_the_table_says_and_no_others(postgres, number):
    postgres.reset()
    reads = columns_read(number)
    for table, columns in reads.items():
        postgres.rows(create_table(table, columns))
    assert postgres.checked(query_text(number)) is None
    for table, columns in reads.items():
        for column in columns:
            postgres.rows("BEGIN")
            postgres.rows(f"ALTER TABLE {table} DROP COLUMN {column}")
            assert postgres.checked(query_text(number)).sqlstate == "42703"
            postgres.rows("ROLLBACK")


def test_postgresql_and_duckdb_agree_on_all_queries(postgres, tables):
    postgres.reset()
    for name, table in tables.items():
        postgres.rows(create_table(name))
        copy_into(postgres, name, table)
        postgres.rows(f"ANALYZE {name}")
    others = reference(tables)
    for number in NUMBERS:
        answer = postgres.rows(query_text(number))
        assert answer.rows, f"query {number} has no rows, so it checks nothing"
        differs = difference(answer.rows, duckdb_rows(others, number), loosely(answer.types))
        assert differs is None, f"query {number}: {differs}"


def loosely(types):
    """DuckDB divides and averages numerics as floats, and counts and extracts in other widths."""
    return ["float8" if name == "numeric" else name for name in (kind.partition("(")[0] for kind in types)]


def test_the_reference_runs_on_one_thread(tables):
    connection = reference(tables)
    assert isinstance(connection, duckdb.DuckDBPyConnection)
    assert connection.sql("SELECT current_setting('threads')").fetchall() == [(1,)]
