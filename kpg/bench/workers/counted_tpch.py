"""The queries of TPC-H that `kpg bench X5 --count` counts: X5's stream in batches of 100,000 rows.

Each worker inserts its share of each batch, so the encoding of rows from Arrow is a part of the work and is divided as
well. The scale factor is a tenth of that of X5, so that a machine with two cores counts all queries on 1 to 8 workers
in minutes; the batches are the same. The answer must be DuckDB's.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kpg.bench.papers.x05_tpch_rates import BATCH_ROWS
from kpg.bench.run import Run
from kpg.bench.tpch_answers import agree, duckdb_answer
from kpg.bench.tpch_stream import Batch, TpchStream
from kpg.bench.tpch_views import (
    batch_size,
    create_tables,
    install_view,
    loaded_for,
    measured_queries,
    view_name,
    view_rows,
)
from kpg.bench.warm_workers import warm_database
from kpg.bench.workers.counted_tasks import CountedTask, Works
from kpg.bench.workers.work_counting import WorkCounter
from kpg.plan.plan_values import name_of_function
from kpg.sql.tpch.tpch_queries import columns_read

COUNTED_SCALE = 0.1  # scale factor at scale 1
REPEATS = 2

_batches: dict[tuple[int, float, int], tuple[TpchStream, list[Batch]]] = {}  # of the query that is counted


def tpch_work(run: Run, workers: int) -> Works:
    """Count each query alone, from its first batch to its last."""
    scale, size = COUNTED_SCALE * run.scale, batch_size(run, BATCH_ROWS)
    with warm_database(workers) as db:
        for number in measured_queries(run):
            for _ in range(run.fixed_rounds(REPEATS)):
                yield count_query(run, db, number, scale, size)


def count_query(run: Run, db: Any, number: int, scale: float, size: int) -> CountedTask:
    """Stream a query's tables, count the work of all batches, and check the answer."""
    run.progress(f"counting query {number}", 0, 0)
    options: dict[str, Any] = {"number": number, "scale": scale, "size": size}
    if hasattr(db, "call_workers"):
        db.call_workers(name_of_function(prepare), **options)
    stream, batches = batches_of(**options)
    create_tables(db, columns_read(number), kept=False)
    install_view(db, number)
    counter = WorkCounter(db)
    counter.begin()
    for index, batch in enumerate(batches):
        for position, change in enumerate(batch):
            relation = db.inputs[change.table]
            made = relation.insert_made if change.diff > 0 else relation.remove_made
            made(share, index=index, position=position, **options)
        db.advance()
    work = counter.end()
    rows = view_rows(db, number)
    run.check(agree(rows, duckdb_answer(number, stream.present())), f"query {number}, counted")
    db.sql(f"DROP MATERIALIZED VIEW {view_name(number)}")
    for table in columns_read(number):
        db.sql(f"DROP TABLE {table}")
    return CountedTask(f"Q{number}", work, sorted(map(repr, rows)))


def prepare(db: Any, number: int, scale: float, size: int) -> None:
    """Read the tables of a query on a worker, before its work is counted."""
    batches_of(number, scale, size)


def batches_of(number: int, scale: float, size: int) -> tuple[TpchStream, list[Batch]]:
    """Return the stream of a query after all its batches, and the batches."""
    if (number, scale, size) not in _batches:
        _batches.clear()
        stream = TpchStream(loaded_for(number, scale), columns_read(number))
        _batches[number, scale, size] = stream, [*stream.loading(size), *stream.leaving(size)]
    return _batches[number, scale, size]


def share(worker: int, workers: int, number: int, scale: float, size: int, index: int, position: int) -> pa.Table:
    """Return a worker's share of the rows of one table in a batch."""
    rows = batches_of(number, scale, size)[1][index][position].rows
    start, end = rows.num_rows * worker // workers, rows.num_rows * (worker + 1) // workers
    return rows.slice(start, end - start)
