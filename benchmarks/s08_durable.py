"""S8: how many durable transactions of one row a second, beside SQLite with a write-ahead log, synchronous=FULL?

One client, and eight that wait at the same time. Both sides are measured in turn, a stretch each, so that whatever else
the disk has to do meets both; wall time, for it is the disk that is waited for. SQLite keeps no index here; kpg always
keeps one.
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
from benchmarks.lines import RESULTS, Reference, Run, at_most

STRETCHES = 10
CLIENTS = 8
NAME = f"SQLite {sqlite3.sqlite_version}, WAL, synchronous=FULL"


def run(run: Run) -> None:
    """One client, then eight."""
    RESULTS.mkdir(exist_ok=True)
    rows = max(STRETCHES * CLIENTS, run.size(10_000))
    for case, measure in (("one client", one_client), (f"{CLIENTS} clients", many_clients)):
        place = Path(tempfile.mkdtemp(dir=RESULTS))  # on a disk, which the system's directory need not be
        try:
            ours, theirs = measure(place, rows)
        finally:
            shutil.rmtree(place)
        run.report(
            f"{rows:,} durable transactions of one row, {case}",
            "at least the rate of SQLite",
            [at_most("ratio", 1.0)],
            Reference(NAME, theirs),
            seconds=ours,
            rows=rows,
            transactions_per_second=rows / ours,
            reference_transactions_per_second=rows / theirs,
        )


def in_turn(rows: int, ours: Callable[[range], None], theirs: Callable[[range], None]) -> tuple[float, float]:
    """Do stretches of some numbers on both sides; the seconds of each."""
    spent = [0.0, 0.0]
    for stretch in range(STRETCHES):
        numbers = range(stretch * rows // STRETCHES, (stretch + 1) * rows // STRETCHES)
        for side, work in enumerate((ours, theirs)):
            started = time.perf_counter()
            work(numbers)
            spent[side] += time.perf_counter() - started
    return spent[0], spent[1]


def one_client(place: Path, rows: int) -> tuple[float, float]:
    """One after the other."""
    lite = connect(place)
    with kpg.open(place / "kpg") as db:
        edges = db.input("edges", src=int, dst=int)

        def ours(numbers: range) -> None:
            for number in numbers:
                edges.insert([(number, number)])
                db.advance()

        def theirs(numbers: range) -> None:
            for number in numbers:
                lite.execute("insert into edges values (?, ?)", (number, number))

        seconds = in_turn(rows, ours, theirs)
    check(place, lite, rows)
    return seconds


def many_clients(place: Path, rows: int) -> tuple[float, float]:
    """Eight threads, each waiting for its own transaction before the next."""
    lite = [connect(place) for _ in range(CLIENTS)]
    db = kpg.open(place / "kpg", background=True)
    db.input("edges", src=int, dst=int)

    def ours(numbers: range) -> None:
        def one(client: int, number: int) -> None:
            db.transact(lambda db: db["edges"].insert([(number, number)]))

        together(numbers, one)

    def theirs(numbers: range) -> None:
        together(numbers, lambda client, number: insert(lite[client], number))

    seconds = in_turn(rows, ours, theirs)
    db.close()
    check(place, lite[0], rows)
    return seconds


def together(numbers: range, work: Callable[[int, int], None]) -> None:
    """Share numbers among the clients, each a thread."""

    def client(index: int) -> None:
        for number in numbers[index::CLIENTS]:
            work(index, number)

    threads = [threading.Thread(target=client, args=(index,)) for index in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def connect(place: Path) -> sqlite3.Connection:
    """A connection that commits each statement, durably."""
    made = sqlite3.connect(place / "lite.db", isolation_level=None, check_same_thread=False, timeout=60)
    made.execute("pragma journal_mode = wal")
    made.execute("pragma synchronous = full")
    made.execute("create table if not exists edges (src integer, dst integer)")
    return made


def insert(connection: sqlite3.Connection, number: int) -> None:
    """One row, committed."""
    connection.execute("insert into edges values (?, ?)", (number, number))


def check(place: Path, lite: sqlite3.Connection, rows: int) -> None:
    """Both hold all rows; ours is asked after it was opened again."""
    assert lite.execute("select count(*), sum(src) from edges").fetchone() == (rows, rows * (rows - 1) // 2)
    with kpg.open(place / "kpg") as db:
        edges = db.input("edges", src=int, dst=int).output("all")
        table = edges.snapshot()
        assert (np.sort(table.column("src").to_numpy()) == np.arange(rows)).all()
