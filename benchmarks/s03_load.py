"""S3: how fast does a DataFrame of 10M rows of three int64 become an arrangement on two workers in Spark?

The reference reads the same Parquet files through an empty `mapInArrow`, which hands every batch to Python and does
nothing; no shuffle in either. The clock runs until the rows are arranged and a look-up finds them.
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
from benchmarks.measure import wall_clock
from benchmarks.spark_session import WORKERS, session

ROWS = 10_000_000
FILES = 2


def run(run: Run) -> None:
    """The reference and ours, in turn."""
    rows = run.size(ROWS)
    with tempfile.TemporaryDirectory() as place, session() as spark:
        write(Path(place), rows)
        frame = spark.read.parquet(place)
        ours, empty = wall_clock("load"), wall_clock()
        with kpg.open(spark=spark, workers=WORKERS) as db:
            for each in range(run.times(4)):
                with empty:
                    assert frame.mapInArrow(drained, "rows long").agg({"rows": "sum"}).collect()[0][0] == rows
                relation = db.input(f"numbers {each}", a=int, b=int, c=int)
                arrangement = relation.arrange("a")
                with ours:
                    db.load(f"numbers {each}", frame)
                    assert arrangement.lookup(7).num_rows == 1
                arrangement.release()
                relation.drop()
        reference = Reference("the same read through an empty mapInArrow", empty.least)
        bar = "at least 70% of the rate of an empty mapInArrow"
        run.report(
            "10M rows", bar, [at_most("ratio", 1 / 0.7)], reference, rows=rows, seconds=ours.least,
            rows_per_second=rows / ours.least,
        )  # fmt: skip


def write(place: Path, rows: int) -> None:
    """Files of equal size; `a` is distinct and in random order."""
    random = np.random.default_rng(3)
    a = random.permutation(rows).astype(np.int64)
    table = pa.table({"a": a, "b": random.integers(0, 1000, rows), "c": random.integers(0, 2**40, rows)})
    fields = [pa.field(name, pa.int64(), nullable=False) for name in "abc"]
    table = table.cast(pa.schema(fields))
    for each in range(FILES):
        part = table.slice(rows * each // FILES, rows * (each + 1) // FILES - rows * each // FILES)
        pq.write_table(part, place / f"{each}.parquet", compression="none", use_dictionary=False)


def drained(batches: Any) -> Any:
    """Take every batch, and do nothing but count."""
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})
