"""Spark SQL as a peer: a query over Parquet files on one core, measured warm, in CPU time of its JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kpg.bench.workers.spark_bench_session import session

WARM_RUNS = 2  # before the measured run: they compile the query's code


class SparkSql:
    """A session on one core whose tables are Parquet files. The first query starts it."""

    def __init__(self, directory: Path, tables: list[str]) -> None:
        self.directory = directory
        self.tables = tables

    def __enter__(self) -> SparkSql:
        import psutil

        self._session = session(slots=1)
        self.spark: Any = self._session.__enter__()
        self.spark.conf.set("spark.sql.shuffle.partitions", "1")
        self._process = psutil.Process(self.spark._jvm.java.lang.ProcessHandle.current().pid())
        for table in self.tables:
            self.spark.read.parquet(str(self.directory / f"{table}.parquet")).createOrReplaceTempView(table)
        return self

    def __exit__(self, *error: Any) -> None:
        self._session.__exit__(*error)

    def cpu_seconds(self) -> float:
        """Return the CPU time that the JVM has used."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def measured(self, sql: str) -> tuple[float, list[tuple[Any, ...]]]:
        """Return the CPU time of a query that ran before, and its rows."""
        for _ in range(WARM_RUNS):
            self.spark.sql(sql).collect()
        before = self.cpu_seconds()
        rows = self.spark.sql(sql).collect()
        return self.cpu_seconds() - before, [tuple(row) for row in rows]
