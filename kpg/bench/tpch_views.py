"""A query of TPC-H as a standing view over streamed tables, with clocks for encoding and for the work of the engine.

    with StreamedQuery(number, tables) as query:
        for batch in query.stream.loading(100_000):
            query.apply(batch)
        query.check(run)

The tables have only the columns that the query reads, and are streams with their keys: the view keeps what it needs of
them. Bulk work is measured in CPU time, as everywhere; on several workers, in wall time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType

import pyarrow as pa

from kpg.api.contracts import Database
from kpg.bench.measure import Stopwatch, cpu_stopwatch, wall_stopwatch
from kpg.bench.run import Run
from kpg.bench.tpch_answers import Rows, agree, duckdb_answer
from kpg.bench.tpch_stream import Batch, TpchStream, order_columns
from kpg.bench.warm_workers import warm_database
from kpg.sql.tpch.tpch_data import load_tables
from kpg.sql.tpch.tpch_queries import NUMBERS, columns_read, query_text
from kpg.sql.tpch.tpch_tables import PRIMARY_KEYS, create_table

REHEARSED_QUERIES = (1, 6, 11, 13, 18)  # enough to run every code path of an experiment


def measured_queries(run: Run) -> tuple[int, ...]:
    """Return the queries of a run: all 22, in a rehearsal a few."""
    return REHEARSED_QUERIES if run.kind == "rehearsal" else tuple(NUMBERS)


def batch_size(run: Run, rows: int) -> int:
    """Return the size of logical batches: the full size from a tenth of the scale on, proportionally less below."""
    return rows if run.scale >= 0.1 else max(10, round(rows * run.scale * 10))


def loaded_for(number: int, scale_factor: float) -> dict[str, pa.Table]:
    """Return the tables of a query's stream: the columns that it reads, and those that order the deletions."""
    return load_tables(scale_factor, order_columns(columns_read(number)))


def create_tables(db: Database, reads: Mapping[str, Sequence[str]], *, kept: bool) -> None:
    """Create tables with some of their columns, and with their keys if those are among them."""
    for table, columns in reads.items():
        db.sql(create_table(table, columns, kept=kept))


def create_tables_by_key(db: Database, reads: Mapping[str, Sequence[str]]) -> None:
    """Create tables that are kept by their keys where a query reads those; lineitem and others are streams."""
    for table, columns in reads.items():
        kept = table != "lineitem" and set(PRIMARY_KEYS[table]) <= set(columns)
        create_tables(db, {table: columns}, kept=kept)


def install_view(db: Database, number: int) -> None:
    """Install a query as a materialized view."""
    db.sql(f"CREATE MATERIALIZED VIEW {view_name(number)} AS {query_text(number)}")


def view_name(number: int) -> str:
    """Return the name of a query's view."""
    return f"q{number:02}"


def insert_all(db: Database, batch: Batch) -> None:
    """Insert and remove the rows of a batch; they take effect with the next advance."""
    for change in batch:
        table = db.inputs[change.table]
        if change.diff > 0:
            table.insert(change.rows)
        else:
            table.remove(change.rows)


def view_rows(db: Database, number: int) -> Rows:
    """Return the rows of a view."""
    return list(db.sql(f"SELECT * FROM {view_name(number)}").rows())


class StreamedQuery:
    """One query alone in a db, fed by its stream."""

    def __init__(self, number: int, tables: Mapping[str, pa.Table], workers: int = 1) -> None:
        self.number = number
        self.workers = workers
        self.stream = TpchStream(tables, columns_read(number))
        stopwatch = cpu_stopwatch if workers == 1 else wall_stopwatch
        self.encoding: Stopwatch = stopwatch(f"encode, query {number}")
        self.working: Stopwatch = stopwatch(f"query {number}")
        self.rows = 0  # that were inserted or removed
        self._open = ExitStack()

    def __enter__(self) -> StreamedQuery:
        self.db = self._open.enter_context(warm_database(self.workers))
        create_tables(self.db, columns_read(self.number), kept=False)
        install_view(self.db, self.number)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.__exit__(kind, error, at)

    def apply(self, batch: Batch) -> None:
        """Insert a batch as one logical time, and maintain the view."""
        with self.encoding:
            insert_all(self.db, batch)
        with self.working:
            self.db.advance()
        self.rows += sum(change.rows.num_rows for change in batch)

    def apply_all(self, batches: Iterable[Batch], run: Run, checks: set[int], name: str) -> None:
        """Apply batches, and check the answer after some of them."""
        for number, batch in enumerate(batches, start=1):
            self.apply(batch)
            run.progress(f"query {self.number}, {name}", number, 0)
            if number in checks:
                self.check(run, f"after {number} batches of {name}")

    def check(self, run: Run, when: str) -> None:
        """Compare the view with DuckDB's answer over the rows that are present."""
        answer = duckdb_answer(self.number, self.stream.present())
        run.check(agree(view_rows(self.db, self.number), answer), f"query {self.number} {when}")

    @property
    def seconds(self) -> float:
        """The time of all batches, with encoding."""
        return self.encoding.total + self.working.total
