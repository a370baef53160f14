"""Several workers in one process, stepped in whatever order a test chooses.

Each worker has its own db with the same inputs and answers, built in the same order; rows are exchanged by key and
progress by frames through queues in memory. What the workers' answers say together must be what one worker says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from kpg.api.database import Database
from kpg.api.output import Output
from kpg.columns.symbols import Symbols
from kpg.config import Config
from kpg.dataflow.transport import InMemory
from kpg.dataflow.worker import Worker

Program = Callable[[Database], Output]


class Cluster:
    """A program on `peers` workers."""

    def __init__(self, peers: int, program: Program, history: int | None = 0) -> None:
        symbols = Symbols()
        ends = InMemory.connect(peers)
        self.workers = [Worker(index, peers, end) for index, end in enumerate(ends)]
        self.databases = [Database(Config(history=history), worker, symbols) for worker in self.workers]
        self.outputs = [program(db) for db in self.databases]
        self.changes: list[tuple[tuple[Any, ...], tuple[int, ...], int]] = []

    def insert(self, worker: int, name: str, row: tuple[Any, ...], diff: int = 1) -> None:
        """One worker takes in a row; where it belongs is for exchange to find out."""
        source = self.databases[worker].inputs[name]
        source.insert([row]) if diff > 0 else source.remove([row])

    def advance(self, schedule: Iterable[int] = ()) -> None:
        """One epoch further: the workers step in the order of the schedule, then in turn until all is done."""
        before = [db.time for db in self.databases]
        for db in self.databases:
            db.push_to(db.epoch + 1)
        for index in schedule:
            self.workers[index % len(self.workers)].step()
        while sum(worker.step() for worker in self.workers):  # a sum, so that every worker steps
            pass
        for db, time, output in zip(self.databases, before, self.outputs, strict=True):
            assert not db.worker.waiting, "a worker still waits for a frontier"
            assert all(dataflow.tracker.idle for dataflow in db.worker.dataflows.values()), "counts are left over"
            db.seal(time)
            self.changes += [(row, (when,), diff) for row, when, diff in output.changes()]

    def answer(self) -> dict[tuple[Any, ...], int]:
        """What all workers' changes add up to."""
        total: defaultdict[tuple[Any, ...], int] = defaultdict(int)
        for row, _, diff in self.changes:
            total[row] += diff
        return {row: count for row, count in total.items() if count}
