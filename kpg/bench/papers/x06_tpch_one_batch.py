"""X6: how long does each query of TPC-H take if all rows come as one batch?

Both kpg and DuckDB read the same Arrow tables in memory, the columns of the query only, DuckDB in place and on one
thread. The clock of kpg includes the installation of the view, encoding from Arrow, and reading the answer. Spark SQL
reads Parquet files on one core; its third run counts, in CPU time of its JVM. All answers are compared with DuckDB's.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from contextlib import ExitStack

import pyarrow as pa

from kpg.bench.experiment import Experiment, PaperFigure, at_most
from kpg.bench.measure import cpu_stopwatch
from kpg.bench.papers.x05_tpch_rates import geometric_mean
from kpg.bench.peers.spark_sql import SparkSql
from kpg.bench.run import Run
from kpg.bench.tpch_answers import SPARK_TOLERANCE, Rows, agree, connect
from kpg.bench.tpch_stream import TableChange
from kpg.bench.tpch_views import create_tables, insert_all, install_view, measured_queries, view_rows
from kpg.opening import open as open_database
from kpg.sql.tpch.tpch_data import load_tables, tpch_directory
from kpg.sql.tpch.tpch_queries import columns_read, query_text
from kpg.sql.tpch.tpch_tables import COLUMNS

REPEATS = 3  # of which the fastest counts
# milliseconds at scale factor 10, table 6
PAPER_MILLISECONDS = {
    1: 7_789, 2: 2_426, 3: 5_948, 4: 8_550, 5: 14_001, 6: 1_185, 7: 12_029, 8: 19_667, 9: 27_873, 10: 4_559, 11: 1_534,
    12: 4_458, 13: 3_893, 14: 1_695, 15: 1_591, 16: 2_238, 17: 17_750, 18: 9_426, 19: 2_444, 20: 4_658, 21: 29_363,
    22: 2_819,
}  # fmt: skip


def run(run: Run) -> None:
    """Measure all queries in kpg, DuckDB and Spark SQL."""
    ours, theirs, sparks = {}, {}, {}
    with ExitStack() as peers:
        spark = run.ask("pyspark", lambda: peers.enter_context(SparkSql(tpch_directory(run.scale), list(COLUMNS))))
        for number in measured_queries(run):
            run.progress(f"query {number}", number, 22)
            tables = load_tables(run.scale, columns_read(number))
            ours[number], rows = one_batch(run, number, tables)
            theirs[number], expected = duckdb_seconds(run, number, tables)
            run.check(agree(rows, expected), f"query {number} as one batch")
            if spark is not None:
                sparks[number], answer = spark.measured(query_text(number))
                run.check(agree(answer, expected, SPARK_TOLERANCE), f"query {number} in Spark SQL")
            run.record(
                f"Q{number}", seconds=ours[number], duckdb_seconds=theirs[number],
                ratio=ours[number] / theirs[number], spark_seconds=sparks.get(number),
            )  # fmt: skip
    run.figure("cpu_by_duckdb", geometric_mean(ours[n] / theirs[n] for n in ours))
    for name, seconds in (("kpg", ours), ("DuckDB", theirs), ("Spark SQL", sparks)):
        if seconds:
            points = [(float(n), value * 1e3) for n, value in seconds.items()]
            run.line("one batch", name, points, x="query", y="CPU time (ms)", log_y=True)
    by_spark = geometric_mean(ours[n] / sparks[n] for n in sparks) if sparks else None
    run.report(
        "all queries, by Spark SQL", "at most a third of Spark SQL's CPU time",
        [at_most("cpu_by_spark_sql", 1 / 3)], cpu_by_spark_sql=by_spark,
    )  # fmt: skip


def one_batch(run: Run, number: int, tables: Mapping[str, pa.Table]) -> tuple[float, Rows]:
    """Return kpg's least CPU time, from the installation to the answer, and the answer."""
    stopwatch = cpu_stopwatch(f"query {number}")
    for _ in range(REPEATS if run.kind == "measurement" else 1):
        gc.collect()
        with open_database() as db:
            create_tables(db, columns_read(number), kept=False)
            with stopwatch:
                install_view(db, number)
                insert_all(db, [TableChange(name, table, 1) for name, table in tables.items()])
                db.advance()
                rows = view_rows(db, number)
    return stopwatch.least, rows


def duckdb_seconds(run: Run, number: int, tables: Mapping[str, pa.Table]) -> tuple[float, Rows]:
    """Return DuckDB's least CPU time and its answer."""
    stopwatch = cpu_stopwatch()
    connection = connect(tables)
    for _ in range(REPEATS if run.kind == "measurement" else 1):
        with stopwatch:
            rows: Rows = connection.sql(query_text(number)).fetchall()
    connection.close()
    return stopwatch.least, rows


EXPERIMENT = Experiment(
    id="X6",
    title="TPC-H: one batch",
    paper="K-Pg, table 6; Shared Arrangements, figure 13",
    claim="As a batch processor it is slower than the best systems and faster than popular frameworks.",
    size="scale factor 1 (the paper: scale factor 10)",
    printed=tuple(PaperFigure(f"Q{number}", f"{ms:,} ms") for number, ms in PAPER_MILLISECONDS.items()),
    memory=lambda scale: int(6e9 * scale + 1e9),
    run=run,
    limits=(at_most("cpu_by_duckdb", 4),),
    peers=("duckdb", "pyspark"),
    rehearsal_scale=0.001,
)
