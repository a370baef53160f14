"""S5: micro-batches of 10,000 rows through writeStream.format("kpg"), until the answer shows them, with the log on.

The reference is the same stream into a Python writer of Arrow batches that does nothing with them. Both are what Spark
says a trigger took, the first few left out.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kpg
from benchmarks.lines import Reference, Run, at_most
from benchmarks.measure import percentile_ms
from benchmarks.spark_session import WORKERS, session

ROWS = 10_000
SKIPPED = 5
SCHEMA = "k long, v long"


def run(run: Run) -> None:
    """The same files through both, twice in turn."""
    rows, files = run.size(ROWS), SKIPPED + run.times(40)
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as place, session() as spark:
        write(Path(place) / "in", rows, files)
        spark.dataSource.register(nothing())
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{place}/in")
        with kpg.open(f"{place}/db", spark=spark, workers=WORKERS) as db:
            for turn in range(2):
                db.input(f"r{turn}", k=int | None, v=int | None)
                answer = db[f"r{turn}"].group_by("k").count().output()
                ready = stream.writeStream.format("kpg").option("relation", f"r{turn}")
                idle = stream.writeStream.format("nothing")
                passes = [(idle, f"{place}/a{turn}", theirs), (ready, f"{place}/b{turn}", ours)]
                for writer, checkpoint, took in passes[:: 1 - 2 * (turn % 2)]:  # who is first has the colder JVM
                    triggers(writer, checkpoint, took)
                assert sum(count for _, count in answer.rows()) == rows * files
                answer.release()
    theirs_p50, ours_p50 = (percentile_ms(took, 50) for took in (theirs, ours))
    reference = Reference("the same stream into a Python Arrow writer that does nothing", theirs_p50 / 1e3)
    bar = "at most 1.3 times a writer that does nothing"
    run.report(
        "10k rows", bar, [at_most("ratio", 1.3)], reference, rows=rows, rounds=len(ours), seconds=ours_p50 / 1e3,
        p50_ms=ours_p50, p99_ms=percentile_ms(ours, 99),
    )  # fmt: skip


def write(place: Path, rows: int, files: int) -> None:
    """One file for each micro-batch."""
    place.mkdir()
    random = np.random.default_rng(5)
    for each in range(files):
        table = pa.table({"k": random.integers(0, 1000, rows), "v": random.integers(0, 10**9, rows)})
        pq.write_table(table, place / f"{each:04d}.parquet")


def triggers(writer: Any, checkpoint: str, seconds: list[float]) -> None:
    """Let a stream run through all files; add how long each trigger took."""
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    assert query.awaitTermination(600)
    took = [each["durationMs"]["triggerExecution"] / 1e3 for each in query.recentProgress if each["numInputRows"]]
    seconds += took[SKIPPED:]


def nothing() -> Any:
    """A data source whose writer takes every batch and does nothing."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

    class Nothing(DataSource):
        @classmethod
        def name(cls) -> str:
            return "nothing"

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            return NothingWriter()

    class NothingWriter(DataSourceStreamArrowWriter):
        def write(self, iterator: Any) -> Any:
            for _ in iterator:
                pass
            return WriterCommitMessage()

        def commit(self, messages: Any, batchId: int) -> None:
            pass

        def abort(self, messages: Any, batchId: int) -> None:
            pass

    return Nothing
