"""Q8: how long does a transaction take to maintain all 22 queries of TPC-H at once?

All tables are kept, with their keys, and all 22 queries are installed as materialized views. A transaction inserts
about 1,000 lineitems with their orders. DuckDB answers all queries again, beside, after the last transaction; all
answers are compared with its.
"""

from __future__ import annotations

import pyarrow as pa

from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import cpu_stopwatch, settle, wall_stopwatch
from kpg.bench.run import Reference, Run
from kpg.bench.tpch_answers import Rows, agree, connect
from kpg.bench.tpch_sessions import columns_of_all
from kpg.bench.tpch_speed import machine_slowdown
from kpg.bench.tpch_stream import Batch, TableChange, lineitem_batches
from kpg.bench.tpch_views import batch_size, create_tables, insert_all, install_view, measured_queries, view_rows
from kpg.opening import open as open_database
from kpg.sql.tpch.tpch_data import load_tables
from kpg.sql.tpch.tpch_queries import query_text

LINEITEMS, TRANSACTIONS = 1_000, 100
LIMIT_MS = 80.0


def run(run: Run) -> None:
    """Load the tables except the last orders, install the views, and insert the rest in transactions."""
    tables = load_tables(run.scale, columns_with_keys())
    lines = batch_size(run, LINEITEMS)
    transactions = lineitem_batches(tables, lines, run.scaled_rounds(TRANSACTIONS))
    installing, latency = wall_stopwatch(), wall_stopwatch("a transaction")
    with open_database() as db:
        create_tables(db, columns_with_keys(), kept=True)
        insert_all(db, before(tables, transactions))
        db.advance()
        for number in measured_queries(run):
            run.progress(f"installing query {number}", number, 22)
            with installing:
                install_view(db, number)
        settle(db)
        for place, transaction in enumerate(transactions):
            run.progress("transactions", place, len(transactions))
            with latency:
                insert_all(db, transaction)
                db.advance()
        answers = {number: view_rows(db, number) for number in measured_queries(run)}
    duckdb_seconds = check(run, tables, answers)
    run.report(
        f"{lines:,} lineitems, 22 views", f"at most {LIMIT_MS:g} ms",
        [at_most("scaled_p50_ms", LIMIT_MS)], Reference("duckdb, 22 queries again", duckdb_seconds), latency,
        rows=lines, scaled_p50_ms=latency.p50_ms / machine_slowdown(run), installing_seconds=installing.total,
    )  # fmt: skip


def columns_with_keys() -> dict[str, list[str]]:
    """Return the columns that any query reads, and those of the primary keys."""
    reads = columns_of_all()
    return {**reads, "lineitem": [*reads["lineitem"], "l_linenumber"]}


def before(tables: dict[str, pa.Table], transactions: list[Batch]) -> Batch:
    """Return all rows except those of the transactions."""
    later = dict.fromkeys(tables, 0)
    for transaction in transactions:
        for change in transaction:
            later[change.table] += change.rows.num_rows
    return [TableChange(name, table.slice(0, table.num_rows - later[name]), 1) for name, table in tables.items()]


def check(run: Run, tables: dict[str, pa.Table], answers: dict[int, Rows]) -> float:
    """Compare all answers with DuckDB's; return its CPU time."""
    connection, stopwatch = connect(tables), cpu_stopwatch()
    for number, answer in answers.items():
        with stopwatch:
            expected = connection.sql(query_text(number)).fetchall()
        run.check(agree(answer, expected), f"query {number} after all transactions")
    connection.close()
    return stopwatch.total


EXPERIMENT = engine_experiment(
    "Q8",
    "22 views of TPC-H under transactions",
    "scale factor 1, 100 transactions of 1,000 lineitems with their orders",
    lambda scale: int(1.2e10 * scale + 8e8),
    run,
    peers=("duckdb",),
)
