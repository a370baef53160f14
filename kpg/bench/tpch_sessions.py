"""Queries of TPC-H that arrive and retire while rows stream in, with shared arrangements or each with its own.

Lineitem is a stream that is not kept: a query sees the rows from its installation on. The other seven tables are kept,
arranged by their primary keys. They are loaded round-robin, as in the paper: a fifth of all rows is there before the
first query, and orders, partsupp and lineitem still grow while queries are active. Ten queries are active at a time; in
random order, one retires and another arrives after every few batches.

Not shared (`SET share_arrangements = off`), a query has the same plan, but arranges a copy of each table that it reads,
by its key, with the columns that it reads. The rows, batches and arrivals are the same.

    served = serve(run, share=True)      latencies of installations and batches, bytes over time; answers are checked
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import pyarrow as pa

from kpg.api.contracts import Database
from kpg.bench.measure import array_bytes, settle
from kpg.bench.run import Run
from kpg.bench.tpch_answers import agree, duckdb_answer
from kpg.bench.tpch_stream import Batch, TpchStream
from kpg.bench.tpch_views import insert_all, measured_queries, view_name, view_rows
from kpg.bench.warm_workers import warm_database
from kpg.sql.tpch.tpch_data import load_tables
from kpg.sql.tpch.tpch_queries import NUMBERS, columns_read, query_text
from kpg.sql.tpch.tpch_tables import COLUMNS, create_table

ACTIVE_QUERIES = 10
ROUNDS_OF_QUERIES = 3  # how often each query is installed
BATCHES_PER_ARRIVAL = 10
BATCH_ROWS = 1_000
LOADED_BEFORE = 0.2  # the share of all rows that is there before the first query
GROWING_TABLES = 3  # orders, partsupp and lineitem; the other tables are complete before
STREAMED_SHARE = 0.08  # of all rows, at most, while queries arrive: partsupp is not complete before
WITHOUT_LINEITEM = tuple(number for number in NUMBERS if "lineitem" not in columns_read(number))


@dataclass
class Served:
    """What was measured."""

    installing: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))  # seconds, by query
    updating: list[float] = field(default_factory=list)  # seconds of each batch
    by_table: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # of batches of one table
    memory: list[tuple[float, float]] = field(default_factory=list)  # arrivals so far, bytes of all arrangements

    def installs(self, *, lineitem: bool) -> list[float]:
        """Return the latencies of queries that read lineitem, or of the others."""
        return [s for n, seconds in self.installing.items() if (n not in WITHOUT_LINEITEM) == lineitem for s in seconds]


def serve(run: Run, share: bool, one_by_one: bool = False) -> Served:
    """Let queries arrive and retire while rows stream in: in batches of all tables, or one row of a table at a time."""
    tables = load_tables(run.scale, columns_of_all())
    order = arrivals(run)
    stream = TpchStream(tables, columns_of_all())
    size = GROWING_TABLES if one_by_one else streamed_rows(run, stream, len(order))
    with warm_database(1) as db:
        session = TpchSession(db, stream, share)
        session.load(LOADED_BEFORE)
        batches = session.stream.loading(size)
        random = np.random.default_rng(run.seed)
        for position, number in enumerate(order):
            run.progress(f"{'shared' if share else 'not shared'}: arrivals", position, len(order))
            if len(session.active) == ACTIVE_QUERIES:
                session.retire(int(random.choice(list(session.active))))
            if number not in session.active:
                session.install(number)
            for _, batch in zip(range(run.fixed_rounds(BATCHES_PER_ARRIVAL)), batches, strict=False):
                for part in ([change] for change in batch) if one_by_one else [batch]:
                    session.apply(part)
            session.served.memory.append((float(position), float(array_bytes(db))))
        session.check(run)
        return session.served


def streamed_rows(run: Run, stream: TpchStream, arrivals: int) -> int:
    """Return the rows of a batch: BATCH_ROWS, fewer where the tables would be complete before the last arrival."""
    batches = arrivals * run.fixed_rounds(BATCHES_PER_ARRIVAL)
    return min(BATCH_ROWS, max(10, round(stream.rows() * STREAMED_SHARE / batches)))


def arrivals(run: Run) -> list[int]:
    """Return the queries in the order of their arrival."""
    random = np.random.default_rng(run.seed)
    rounds = ROUNDS_OF_QUERIES if run.kind == "measurement" else 1
    return [int(number) for _ in range(rounds) for number in random.permutation(measured_queries(run))]


def columns_of_all() -> dict[str, list[str]]:
    """Return the columns that any query reads; the primary keys of kept tables are among them."""
    reads: dict[str, set[str]] = defaultdict(set)
    for number in NUMBERS:
        for table, columns in columns_read(number).items():
            reads[table] |= set(columns)
    return {table: [column for column in COLUMNS[table] if column in columns] for table, columns in reads.items()}


class TpchSession:
    """A db with all tables, and the queries that are active."""

    def __init__(self, db: Database, stream: TpchStream, share: bool, keep_lineitem: bool = False) -> None:
        self.db = db
        self.stream = stream
        self.share = share
        self.keep_lineitem = keep_lineitem
        self.served = Served()
        self.active: dict[int, int] = {}  # query → the lineitems that were loaded before it
        db.sql(f"SET share_arrangements = {'on' if share else 'off'}")
        for table, columns in columns_of_all().items():
            is_stream = table == "lineitem" and not keep_lineitem
            db.sql(create_table(table, columns, kept=not is_stream))

    def load(self, share: float) -> None:
        """Load a share of all rows before any query is there, in large batches."""
        steps = 20
        size = -(-self.stream.rows() // steps)
        for _, batch in zip(range(round(steps * share)), self.stream.loading(size), strict=False):
            insert_all(self.db, batch)
            self.db.advance()
        settle(self.db)

    def install(self, number: int) -> None:
        """Install a query and read its first answer."""
        began = perf_counter()
        self.db.sql(f"CREATE MATERIALIZED VIEW {view_name(number)} AS {query_text(number)}")
        view_rows(self.db, number)
        self.served.installing[number].append(perf_counter() - began)
        self.active[number] = 0 if self.keep_lineitem else self.stream.loaded["lineitem"]

    def retire(self, number: int) -> None:
        """Drop a query."""
        self.db.sql(f"DROP MATERIALIZED VIEW {view_name(number)}")
        del self.active[number]

    def apply(self, batch: Batch) -> None:
        """Insert a batch; the clock runs while the views are maintained."""
        insert_all(self.db, batch)
        began = perf_counter()
        self.db.advance()
        seconds = perf_counter() - began
        self.served.updating.append(seconds)
        if len(batch) == 1:
            self.served.by_table[batch[0].table].append(seconds)

    def check(self, run: Run) -> None:
        """Compare the answers of the active queries with DuckDB's."""
        present = self.stream.present()
        for number, since in self.active.items():
            seen: dict[str, pa.Table] = {**present, "lineitem": present["lineitem"].slice(since)}
            answer = duckdb_answer(number, seen)
            run.check(
                agree(view_rows(self.db, number), answer), f"query {number}, {'shared' if self.share else 'alone'}"
            )
