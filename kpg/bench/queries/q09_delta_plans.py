"""Q9: what do queries of TPC-H with many joins keep, as delta plans and as trees of binary joins?

Queries 5, 8 and 9 are planned both ways over the same tables. A delta plan keeps arrangements of the base relations and
the final aggregate, and no rows of a join of several relations. The rows and bytes of the binary plan stand beside. The
answers are compared with DuckDB's.
"""

from __future__ import annotations

from kpg.api.contracts import Database, Output
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import array_bytes, cpu_stopwatch, settle, trace_rows
from kpg.bench.run import Run
from kpg.bench.tpch_answers import agree, duckdb_answer
from kpg.bench.tpch_stream import TableChange
from kpg.bench.tpch_views import create_tables_by_key, insert_all
from kpg.opening import open as open_database
from kpg.sql.tpch.tpch_data import load_tables
from kpg.sql.tpch.tpch_queries import columns_read, query_text
from kpg.sql.tpch.tpch_tables import COLUMNS

QUERIES = (5, 8, 9)
ANSWER = "answer"
OWNERS = {column: table for table, columns in COLUMNS.items() for column in columns}
MIB = 1 << 20


def run(run: Run) -> None:
    """Load each query with both plans."""
    for number in QUERIES:
        for joins in ("delta", "binary"):
            run.progress(f"query {number}, {joins}", 0, 0)
            measure(run, number, joins)


def measure(run: Run, number: int, joins: str) -> None:
    """Load one query with one kind of plan, and report what it keeps."""
    tables = load_tables(run.scale, columns_read(number))
    loading = cpu_stopwatch(f"query {number}, {joins}")
    with open_database() as db:
        create_tables_by_key(db, columns_read(number))
        output = planned(db, number, joins)
        with loading:
            insert_all(db, [TableChange(name, table, 1) for name, table in tables.items()])
            db.advance()
        settle(db)
        run.check(agree(output.rows(), duckdb_answer(number, tables)), f"query {number}, {joins}")
        is_delta = joins == "delta"
        run.report(
            f"query {number}, {joins}", "no rows of joins are kept" if is_delta else None,
            [at_most("intermediate_rows", 0)] if is_delta else [], seconds=loading.total,
            intermediate_rows=intermediate_rows(db), kept_rows=trace_rows(db), mib=array_bytes(db) / MIB,
        )  # fmt: skip


def planned(db: Database, number: int, joins: str) -> Output:
    """Install a query with one kind of join plan."""
    db.sql(f"SET join_plans = {joins}")
    return db.query(query_text(number)).output(ANSWER)


def intermediate_rows(db: Database) -> int:
    """Return the rows of arrangements with columns of several tables, the answer excepted."""
    rows = 0
    for entry in db.describe()["arrangements"]:
        names = [column.partition(":")[0] for column in entry["columns"]]
        tables = {OWNERS[name] for name in names if name in OWNERS}
        if len(tables) > 1 and not entry["name"].startswith(ANSWER):
            rows += entry["rows"]
    return rows


EXPERIMENT = engine_experiment(
    "Q9",
    "TPC-H's larger joins as delta plans",
    "queries 5, 8 and 9 at scale factor 1",
    lambda scale: int(8e9 * scale + 8e8),
    run,
)
