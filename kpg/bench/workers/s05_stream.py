"""S5: how long do micro-batches of 10,000 rows take through writeStream.format("kpg"), with the log on?

A trigger ends when the answer shows its rows. The reference is the same stream into a Python writer of Arrow batches
that does nothing with them. Both are the trigger times that Spark reports, without the first few.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kpg
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import percentile_ms
from kpg.bench.run import Reference, Run
from kpg.bench.workers.spark_bench_session import WORKERS, session

ROWS = 10_000
SKIPPED = 5  # the first triggers, in which the JVM compiles
SCHEMA = "k long, v long"
TURNS = 2
TIMEOUT_SECONDS = 600


def run(run: Run) -> None:
    """Send the same files through both writers, in turn."""
    skipped, turns = (SKIPPED, TURNS) if run.kind != "rehearsal" else (1, 1)
    rows, files = run.size(ROWS), skipped + run.fixed_rounds(40)
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as directory, session() as spark:
        write(Path(directory) / "in", rows, files)
        spark.dataSource.register(nothing())
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{directory}/in")
        with kpg.open(f"{directory}/db", spark=spark, workers=WORKERS) as db:
            for turn in range(turns):
                db.input(f"r{turn}", k=int | None, v=int | None)
                answer = db[f"r{turn}"].group_by("k").count().output()
                to_kpg = stream.writeStream.format("kpg").option("relation", f"r{turn}")
                to_nothing = stream.writeStream.format("nothing")
                passes = [(to_nothing, f"{directory}/a{turn}", theirs), (to_kpg, f"{directory}/b{turn}", ours)]
                for writer, checkpoint, seconds in passes[:: 1 - 2 * (turn % 2)]:  # the first one has the colder JVM
                    seconds += run_triggers(run, writer, checkpoint)[skipped:]
                run.check(sum(count for _, count in answer.rows()) == rows * files, "the counts after all files")
                answer.release()
    theirs_p50, ours_p50 = (percentile_ms(seconds, 50) for seconds in (theirs, ours))
    reference = Reference("the same stream into a Python Arrow writer that does nothing", theirs_p50 / 1e3)
    bar = "at most 1.3 times a writer that does nothing"
    run.report(
        "10k rows", bar, [at_most("ratio", 1.3)], reference, rows=rows, rounds=len(ours), seconds=ours_p50 / 1e3,
        p50_ms=ours_p50, p99_ms=percentile_ms(ours, 99),
    )  # fmt: skip


def write(directory: Path, rows: int, files: int) -> None:
    """Write one file for each micro-batch."""
    directory.mkdir()
    random = np.random.default_rng(5)
    for number in range(files):
        table = pa.table({"k": random.integers(0, 1000, rows), "v": random.integers(0, 10**9, rows)})
        pq.write_table(table, directory / f"{number:04d}.parquet")


def run_triggers(run: Run, writer: Any, checkpoint: str) -> list[float]:
    """Run a stream through all files, and return the seconds of its triggers."""
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    run.check(query.awaitTermination(TIMEOUT_SECONDS), "the stream ends")
    return [step["durationMs"]["triggerExecution"] / 1e3 for step in query.recentProgress if step["numInputRows"]]


def nothing() -> Any:
    """Return a data source whose writer reads every batch and does nothing."""
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


EXPERIMENT = engine_experiment(
    "S5",
    "micro-batches of Structured Streaming",
    "micro-batches of 10,000 rows, written durably",
    lambda scale: int(1e9 * scale + 2e9),
    run,
    ("pyspark",),
)
