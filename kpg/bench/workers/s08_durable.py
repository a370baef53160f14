"""S8: how many durable transactions of one row a second, beside SQLite with a write-ahead log, synchronous=FULL?

One client, then eight that wait at the same time. Both systems take turns, a part of the transactions each, so other
load on the disk affects both. Wall time, because both wait for the disk. SQLite keeps no index here; kpg always does.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import kpg
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.run import Reference, Run

TURNS = 10
CLIENTS = 8
SQLITE = f"SQLite {sqlite3.sqlite_version}, WAL, synchronous=FULL"


def run(run: Run) -> None:
    """Measure one client, then eight."""
    rows = max(TURNS * CLIENTS, run.size(10_000))
    for case, measure in (("one client", one_client), (f"{CLIENTS} clients", many_clients)):
        # In the directory of results, which is on a disk; the system's temporary directory may be in memory.
        directory = Path(tempfile.mkdtemp(dir=run.scratch))
        try:
            ours, theirs = measure(run, directory, rows)
        finally:
            shutil.rmtree(directory)
        run.report(
            f"{rows:,} durable transactions of one row, {case}",
            "at least the rate of SQLite",
            [at_most("ratio", 1.0)],
            Reference(SQLITE, theirs),
            seconds=ours,
            rows=rows,
            transactions_per_second=rows / ours,
            reference_transactions_per_second=rows / theirs,
        )


def in_turn(rows: int, ours: Callable[[range], None], theirs: Callable[[range], None]) -> tuple[float, float]:
    """Insert parts of some numbers into both systems in turn; return the seconds of each system."""
    spent = [0.0, 0.0]
    for turn in range(TURNS):
        numbers = range(turn * rows // TURNS, (turn + 1) * rows // TURNS)
        for system, insert_all in enumerate((ours, theirs)):
            started = time.perf_counter()
            insert_all(numbers)
            spent[system] += time.perf_counter() - started
    return spent[0], spent[1]


def one_client(run: Run, directory: Path, rows: int) -> tuple[float, float]:
    """Insert one row after the other."""
    sqlite = connect(directory)
    with kpg.open(directory / "kpg") as db:
        edges = db.input("edges", src=int, dst=int)

        def ours(numbers: range) -> None:
            for number in numbers:
                edges.insert([(number, number)])
                db.advance()

        def theirs(numbers: range) -> None:
            for number in numbers:
                sqlite.execute("insert into edges values (?, ?)", (number, number))

        seconds = in_turn(rows, ours, theirs)
    check(run, directory, sqlite, rows)
    return seconds


def many_clients(run: Run, directory: Path, rows: int) -> tuple[float, float]:
    """Insert from eight threads, each waiting for its own transaction before the next."""
    connections = [connect(directory) for _ in range(CLIENTS)]
    db = kpg.open(directory / "kpg", background=True)
    db.input("edges", src=int, dst=int)

    def ours(numbers: range) -> None:
        def insert_ours(client: int, number: int) -> None:
            db.transact(lambda db: db["edges"].insert([(number, number)]))

        in_threads(numbers, insert_ours)

    def theirs(numbers: range) -> None:
        in_threads(numbers, lambda client, number: insert(connections[client], number))

    seconds = in_turn(rows, ours, theirs)
    db.close()
    check(run, directory, connections[0], rows)
    return seconds


def in_threads(numbers: range, insert_one: Callable[[int, int], None]) -> None:
    """Divide numbers among the clients, each a thread."""

    def client(index: int) -> None:
        for number in numbers[index::CLIENTS]:
            insert_one(index, number)

    threads = [threading.Thread(target=client, args=(index,)) for index in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def connect(directory: Path) -> sqlite3.Connection:
    """Return a connection that commits each statement durably."""
    connection = sqlite3.connect(directory / "lite.db", isolation_level=None, check_same_thread=False, timeout=60)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table if not exists edges (src integer, dst integer)")
    return connection


def insert(connection: sqlite3.Connection, number: int) -> None:
    """Insert one row and commit."""
    connection.execute("insert into edges values (?, ?)", (number, number))


def check(run: Run, directory: Path, sqlite: sqlite3.Connection, rows: int) -> None:
    """Check that both systems hold all rows; kpg after it is opened again."""
    totals = sqlite.execute("select count(*), sum(src) from edges").fetchone()
    run.check(totals == (rows, rows * (rows - 1) // 2), "the rows of SQLite")
    with kpg.open(directory / "kpg") as db:
        table = db.input("edges", src=int, dst=int).output("all").snapshot()
        run.check(np.array_equal(np.sort(table.column("src").to_numpy()), np.arange(rows)), "the rows of kpg")


EXPERIMENT = engine_experiment(
    "S8",
    "durable transactions of one row",
    "10,000 transactions, by one client and by eight",
    lambda scale: int(1e8 * scale + 4e8),
    run,
)
