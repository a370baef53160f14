"""TPC-H's queries as standing views while rows stream in and the oldest orders leave: three systems agree."""

import pytest

import kpg
from kpg.bench.tpch_answers import agree, duckdb_answer
from kpg.bench.tpch_stream import TpchStream
from kpg.sql.tpch.tpch_data import load_tables
from kpg.sql.tpch.tpch_queries import NUMBERS, columns_read, query_text
from kpg.sql.tpch.tpch_tables import create_table
from tests.sql.installed import require_sql
from tests.sql.tpch.loading import SCALE_FACTOR, copy_into
from tests.sql.truth.compare import difference

BATCH_ROWS = 40_000


@pytest.fixture(scope="module")
def tables():
    return load_tables(SCALE_FACTOR)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_query_is_right_at_every_batch(tables, postgres, number):
    require_sql()
    stream = TpchStream(tables, columns_read(number))
    with kpg.open() as db:
        for name, columns in columns_read(number).items():
            db.sql(create_table(name, columns))
        db.sql(f"CREATE MATERIALIZED VIEW answer AS {query_text(number)}")
        for changes in (stream.loading(BATCH_ROWS), stream.leaving(BATCH_ROWS)):
            for batch in changes:
                for change in batch:
                    table = db[change.table]
                    (table.insert if change.diff > 0 else table.remove)(change.rows)
                db.advance()
                ours = db.sql("SELECT * FROM answer").rows()
                assert agree(ours, duckdb_answer(number, stream.present()))
        check_against_postgres(postgres, number, stream.present(), ours)


@pytest.mark.parametrize(
    "number, setting",
    [(number, "join_plans = delta") for number in (5, 8, 9)]
    + [(number, "share_arrangements = off") for number in (2, 16, 21)],
)
def test_a_query_is_right_with_another_plan(tables, number, setting):
    """Half of the rows are there before the query, whose plan therefore reads arrangements that exist."""
    require_sql()
    stream = TpchStream(tables, columns_read(number))
    with kpg.open() as db:
        for name, columns in columns_read(number).items():
            db.sql(create_table(name, columns))
        db.sql(f"SET {setting}")
        half = stream.rows() // 2
        for place, changes in enumerate((stream.loading(half), stream.leaving(BATCH_ROWS))):
            for batch in changes:
                for change in batch:
                    (db[change.table].insert if change.diff > 0 else db[change.table].remove)(change.rows)
                db.advance()
                if not place and "answer" not in db.outputs:
                    db.sql(f"CREATE MATERIALIZED VIEW answer AS {query_text(number)}")
                assert agree(db.sql("SELECT * FROM answer").rows(), duckdb_answer(number, stream.present()))


def check_against_postgres(postgres, number, present, ours):
    """Compare the last answer, also by the scale of its numerics."""
    postgres.reset()
    for name, table in present.items():
        postgres.rows(create_table(name, table.column_names))
        copy_into(postgres, name, table)
        postgres.rows(f"ANALYZE {name}")
    answer = postgres.rows(query_text(number))
    assert difference(answer.rows, ours, answer.types) is None
