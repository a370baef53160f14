"""S4: how soon does a standing answer show one changed row on workers in Spark, without Spark on the path?

The reference is the same count per key as a query of Spark Structured Streaming that receives one row in a file, until
it has processed it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import kpg
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import Stopwatch, wall_stopwatch
from kpg.bench.run import Reference, Run
from kpg.bench.workers.spark_bench_session import WORKERS, session

ROWS = 1_000_000
KEYS = 1000


def run(run: Run) -> None:
    """Measure ours, then the reference."""
    with session() as spark, tempfile.TemporaryDirectory() as directory:
        with kpg.open(spark=spark, workers=WORKERS) as db:
            ours = updates(run, db, run.size(ROWS), run.fixed_rounds(500))
        theirs = micro_batches(spark, Path(directory), run.fixed_rounds(12))
        reference = Reference("the same count as a micro-batch of Structured Streaming", theirs.p50_ms / 1e3)
        bar = "p50 at most 3 ms; at most a 50th of a micro-batch"
        run.report("one row", bar, [at_most("p50_ms", 3), at_most("ratio", 1 / 50)], reference, latency=ours, rows=1)


def micro_batches(spark: Any, directory: Path, rounds: int) -> Stopwatch:
    """Measure micro-batches of one row."""
    stopwatch = wall_stopwatch()
    source = directory / "in"
    source.mkdir()
    counts = spark.readStream.schema("k long, v long").json(str(source)).groupBy("k").count()
    writer = counts.writeStream.outputMode("update").format("memory").queryName("counts")
    query = writer.option("checkpointLocation", f"{directory}/checkpoint").start()
    for number in range(rounds):
        with stopwatch:
            (source / f".{number}").write_text(json.dumps({"k": number % KEYS, "v": number}))
            (source / f".{number}").rename(source / f"{number}.json")
            query.processAllAvailable()
    query.stop()
    return stopwatch


def updates(run: Run, db: kpg.Database, rows: int, rounds: int) -> Stopwatch:
    """Insert one row at a time, until the answer shows it."""
    relation = db.input("r", k=int, v=int)
    random = np.random.default_rng(5)
    relation.insert(np.stack([random.integers(0, KEYS, rows), np.arange(rows)], axis=1))
    answer = relation.group_by("k").count().output("counts")
    seen: list[object] = []
    db.advance()
    answer.take_changes()
    answer.on_change(lambda changes: seen.append(changes))
    stopwatch = wall_stopwatch("one row")
    for number in range(rounds):
        seen.clear()
        with stopwatch:
            relation.insert([(number % KEYS, rows + number)])
            db.advance()
        run.check(seen, "the answer changes with each row")
    run.check(sum(count for _, count in answer.rows()) == rows + rounds, "the counts after all rows")
    return stopwatch


EXPERIMENT = engine_experiment(
    "S4",
    "one row on workers in Spark",
    "1M rows, 1,000 keys",
    lambda scale: int(1e9 * scale + 2e9),
    run,
    ("pyspark",),
)
