"""Queries of TPC-H that arrive and retire while rows stream in, with shared arrangements or each with its own.

Lineitem is a stream that is not kept: a query sees the rows from its installation on. The other seven tables are kept,
arranged by their primary keys. Ten queries are active at a time; in random order, one retires and another arrives after
every few batches. Not shared, a query reads each table through a view that computes its key columns anew, so that no
arrangement of another query fits, and it must index its own copy.

    served = serve(run, share=True)      latencies of installations and batches, bytes over time; answers are checked
"""

from __future__ import annotations

import re
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
from kpg.bench.tpch_views import NOT_KEPT, batch_size, insert_all, measured_queries, view_name, view_rows
from kpg.opening import open as open_database
from kpg.sql.tpch.tpch_data import load_tables
from kpg.sql.tpch.tpch_queries import NUMBERS, columns_read, query_text
from kpg.sql.tpch.tpch_tables import COLUMNS, create_table

ACTIVE_QUERIES = 10
ROUNDS_OF_QUERIES = 3  # how often each query is installed
BATCHES_PER_ARRIVAL = 10
BATCH_ROWS = 1_000
LOADED_BEFORE = 0.5  # the share of all rows that is there before the first query
WITHOUT_LINEITEM = tuple(number for number in NUMBERS if "lineitem" not in columns_read(number))


@dataclass
class Served:
    """What was measured."""

    installing: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))  # seconds, by query
    updating: list[float] = field(default_factory=list)  # seconds of each batch
    memory: list[tuple[float, float]] = field(default_factory=list)  # arrivals so far, bytes of all arrangements

    def installs(self, *, lineitem: bool) -> list[float]:
        """Return the latencies of queries that read lineitem, or of the others."""
        return [s for n, seconds in self.installing.items() if (n not in WITHOUT_LINEITEM) == lineitem for s in seconds]


def serve(run: Run, share: bool) -> Served:
    """Let queries arrive and retire while rows stream in."""
    tables = load_tables(run.scale, columns_of_all())
    size = batch_size(run, BATCH_ROWS)
    order = arrivals(run)
    with open_database() as db:
        session = TpchSession(db, TpchStream(tables, columns_of_all()), share)
        session.load(size, LOADED_BEFORE)
        batches = session.stream.loading(size)
        random = np.random.default_rng(run.seed)
        for place, number in enumerate(order):
            run.progress(f"{'shared' if share else 'not shared'}: arrivals", place, len(order))
            if len(session.active) == ACTIVE_QUERIES:
                session.retire(int(random.choice(list(session.active))))
            if number not in session.active:
                session.install(number)
            for _, batch in zip(range(run.fixed_rounds(BATCHES_PER_ARRIVAL)), batches, strict=False):
                session.apply(batch)
            session.served.memory.append((float(place), float(array_bytes(db))))
        session.check(run)
        return session.served


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
        for table, columns in columns_of_all().items():
            is_stream = table == "lineitem" and not keep_lineitem
            db.sql(create_table(table, columns, key=not is_stream, options=NOT_KEPT if is_stream else ""))

    def load(self, size: int, share: float) -> None:
        """Load a share of all rows before any query is there, in large batches."""
        steps = 20
        for _, batch in zip(
            range(round(steps * share)), self.stream.loading(max(size, self.stream.rows() // steps)), strict=False
        ):
            insert_all(self.db, batch)
            self.db.advance()
        settle(self.db)

    def install(self, number: int) -> None:
        """Install a query and read its first answer."""
        text = query_text(number)
        if not self.share:
            for table in own_tables(number):
                self.db.sql(own_view(table, number))
            text = own_text(number)
        began = perf_counter()
        self.db.sql(f"CREATE MATERIALIZED VIEW {view_name(number)} AS {text}")
        view_rows(self.db, number)
        self.served.installing[number].append(perf_counter() - began)
        self.active[number] = 0 if self.keep_lineitem else self.stream.loaded["lineitem"]

    def retire(self, number: int) -> None:
        """Drop a query."""
        self.db.sql(f"DROP MATERIALIZED VIEW {view_name(number)}")
        if not self.share:
            for table in own_tables(number):
                self.db.sql(f"DROP VIEW {own_name(table, number)}")
        del self.active[number]

    def apply(self, batch: Batch) -> None:
        """Insert a batch; the clock runs while the views are maintained."""
        insert_all(self.db, batch)
        began = perf_counter()
        self.db.advance()
        self.served.updating.append(perf_counter() - began)

    def check(self, run: Run) -> None:
        """Compare the answers of the active queries with DuckDB's."""
        present = self.stream.present()
        for number, since in self.active.items():
            seen: dict[str, pa.Table] = {**present, "lineitem": present["lineitem"].slice(since)}
            answer = duckdb_answer(number, seen)
            run.check(
                agree(view_rows(self.db, number), answer), f"query {number}, {'shared' if self.share else 'alone'}"
            )


def own_tables(number: int) -> list[str]:
    """Return the tables of which a query indexes a copy of its own if nothing is shared."""
    return [table for table in columns_read(number) if table != "lineitem"]


def own_name(table: str, number: int) -> str:
    """Return the name of a query's own view of a table."""
    return f"{table}_{number}"


def own_view(table: str, number: int) -> str:
    """Return the definition of a view with the rows of a table, of which no arrangement exists."""
    columns = [
        f"{column} + {number} - {number} AS {column}" if COLUMNS[table][column] == "BIGINT" else column
        for column in columns_read(number)[table]
    ]
    return f"CREATE VIEW {own_name(table, number)} AS SELECT {', '.join(columns)} FROM {table}"


def own_text(number: int) -> str:
    """Return the text of a query over its own views."""
    tables = "|".join(own_tables(number))
    return re.sub(rf"\b({tables})\b", rf"\1_{number}", query_text(number)) if tables else query_text(number)
