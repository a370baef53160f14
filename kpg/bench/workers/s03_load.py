"""S3: how fast does a DataFrame of 10M rows of three int64 become an arrangement on two workers in Spark?

The reference reads the same Parquet files through an empty `mapInArrow`, which gives every batch to Python and does
nothing with it; neither shuffles. The clock runs until the rows are arranged and a look-up finds one.
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
from kpg.bench.measure import wall_stopwatch
from kpg.bench.run import Reference, Run
from kpg.bench.workers.spark_bench_session import WORKERS, session

ROWS = 10_000_000
FILES = 2
REPEATS = 4
LOOKED_UP = 7


def run(run: Run) -> None:
    """Measure the reference and ours, in turn."""
    rows = run.size(ROWS)
    with tempfile.TemporaryDirectory() as directory, session() as spark:
        write(Path(directory), rows)
        frame = spark.read.parquet(directory)
        ours, empty = wall_stopwatch("load"), wall_stopwatch()
        with kpg.open(spark=spark, workers=WORKERS) as db:
            for repeat in range(1 if run.kind == "rehearsal" else REPEATS):
                with empty:
                    counted = frame.mapInArrow(count_batches, "rows long").agg({"rows": "sum"}).collect()[0][0]
                run.check(counted == rows, "the rows that mapInArrow reads")
                relation = db.input(f"numbers {repeat}", a=int, b=int, c=int)
                arrangement = relation.arrange("a")
                with ours:
                    db.load(f"numbers {repeat}", frame)
                    matches = arrangement.lookup(LOOKED_UP).num_rows
                run.check(matches == 1, "the row of a look-up")
                arrangement.release()
                relation.drop()
        reference = Reference("the same read through an empty mapInArrow", empty.least)
        bar = "at least 70% of the rate of an empty mapInArrow"
        run.report(
            "10M rows", bar, [at_most("ratio", 1 / 0.7)], reference, rows=rows, seconds=ours.least,
            rows_per_second=rows / ours.least,
        )  # fmt: skip


def write(directory: Path, rows: int) -> None:
    """Write files of equal size; `a` is distinct and in random order."""
    random = np.random.default_rng(3)
    a = random.permutation(rows).astype(np.int64)
    table = pa.table({"a": a, "b": random.integers(0, 1000, rows), "c": random.integers(0, 2**40, rows)})
    fields = [pa.field(name, pa.int64(), nullable=False) for name in "abc"]
    table = table.cast(pa.schema(fields))
    for number in range(FILES):
        first, last = rows * number // FILES, rows * (number + 1) // FILES
        path = directory / f"{number}.parquet"
        pq.write_table(table.slice(first, last - first), path, compression="none", use_dictionary=False)


def count_batches(batches: Any) -> Any:
    """Read every batch and only count its rows."""
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})


EXPERIMENT = engine_experiment(
    "S3",
    "load a DataFrame into workers in Spark",
    "10M rows of three int64",
    lambda scale: int(6e9 * scale + 2e9),
    run,
    ("pyspark",),
)
