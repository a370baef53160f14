"""S4: one changed row on workers in Spark: how soon does the standing answer show it, without Spark on the path?

The reference is the same count per key as a query of Spark Structured Streaming that is given one row in a file and
waited for until it has processed it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

import kpg
from benchmarks.lines import Reference, Run, at_most
from benchmarks.measure import Clock, wall_clock
from benchmarks.spark_session import WORKERS, session

ROWS = 1_000_000
KEYS = 1000


def run(run: Run) -> None:
    """Ours, then the reference."""
    with session() as spark, tempfile.TemporaryDirectory() as place:
        with kpg.open(spark=spark, workers=WORKERS) as db:
            ours = updates(db, run.size(ROWS), run.times(500))
        theirs = wall_clock()
        source = Path(place) / "in"
        source.mkdir()
        counts = spark.readStream.schema("k long, v long").json(str(source)).groupBy("k").count()
        writer = counts.writeStream.outputMode("update").format("memory").queryName("counts")
        query = writer.option("checkpointLocation", f"{place}/checkpoint").start()
        for each in range(run.times(12)):
            with theirs:
                (source / f".{each}").write_text(json.dumps({"k": each % KEYS, "v": each}))
                (source / f".{each}").rename(source / f"{each}.json")
                query.processAllAvailable()
        query.stop()
        reference = Reference("the same count as a micro-batch of Structured Streaming", theirs.p50_ms / 1e3)
        bar = "p50 at most 3 ms; at most a 50th of a micro-batch"
        run.report("one row", bar, [at_most("p50_ms", 3), at_most("ratio", 1 / 50)], reference, latency=ours, rows=1)


def updates(db: kpg.Database, rows: int, rounds: int) -> Clock:
    """Insert one row; wait until the answer says so."""
    relation = db.input("r", k=int, v=int)
    random = np.random.default_rng(5)
    relation.insert(np.stack([random.integers(0, KEYS, rows), np.arange(rows)], axis=1))
    answer = relation.group_by("k").count().output("counts")
    seen: list[object] = []
    db.advance()
    answer.take_changes()
    answer.on_change(lambda changes: seen.append(changes))
    clock = wall_clock("one row")
    for each in range(rounds):
        seen.clear()
        with clock:
            relation.insert([(each % KEYS, rows + each)])
            db.advance()
            assert seen
    return clock
