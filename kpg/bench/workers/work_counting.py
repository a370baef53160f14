"""The work of all workers of a db together, for one task: CPU seconds, rows, bytes, messages and rounds.

    counter = WorkCounter(db)
    counter.begin(); …; work = counter.end()         TaskWork: by worker, epoch and operator

CPU seconds hold on a machine with fewer cores than workers, where elapsed time does not. They are work: a worker that
counts does not spin while it waits. The client process, which collects the answer of several workers, is a figure of
its own; a single worker does this itself.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from kpg.api.contracts import Database
from kpg.bench.measure import Stopwatch
from kpg.dataflow.work_counts import OperatorWork, WorkCounts, WorkTotals
from kpg.plan.plan_values import name_of_function


@dataclass(frozen=True, slots=True)
class TaskWork:
    """The work of all workers for one task, and of the client."""

    totals: list[WorkTotals]
    client_seconds: float

    @property
    def cpu_seconds(self) -> float:
        """The CPU seconds of all workers."""
        return sum(totals.cpu_seconds for totals in self.totals)

    def by_operator(self) -> dict[str, OperatorWork]:
        """Return the work of each operator, over all workers and epochs."""
        sums: dict[str, OperatorWork] = defaultdict(OperatorWork)
        for totals in self.totals:
            for (_, _, operator), work in totals.operators.items():
                add(sums[operator], work)
        return sums

    def epochs(self) -> int:
        """Return the number of epochs in which operators worked."""
        return len({epoch for totals in self.totals for epoch, _, _ in totals.operators})

    def by_epoch(self) -> dict[tuple[int, str], OperatorWork]:
        """Return the work of each operator in each epoch, over all workers."""
        sums: dict[tuple[int, str], OperatorWork] = defaultdict(OperatorWork)
        for totals in self.totals:
            for (epoch, _, operator), work in totals.operators.items():
                add(sums[epoch, operator], work)
        return sums

    def figures(self) -> dict[str, Any]:
        """Return the figures of a row."""
        rows = sum(totals.rows for totals in self.totals)
        progress = sum(totals.progress_bytes for totals in self.totals)
        size = sum(totals.bytes for totals in self.totals)
        return {
            "cpu_s": self.cpu_seconds,
            "busiest_cpu_s": max(totals.cpu_seconds for totals in self.totals),
            "client_s": self.client_seconds,
            "rows_sent": rows,
            "bytes_sent": size,
            "bytes_per_row": (size - progress) / rows if rows else None,
            "messages": sum(totals.messages for totals in self.totals),
            "rounds": max(totals.rounds for totals in self.totals),
            "epochs": self.epochs(),
        }


def add(total: OperatorWork, more: OperatorWork) -> None:
    """Add the work of an operator to a total."""
    for name, value in asdict(more).items():
        setattr(total, name, getattr(total, name) + value)


class WorkCounter:
    """Counts the work of all workers of a db."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self._began = 0.0
        self.call(start_counting)

    def begin(self) -> None:
        """Begin to count a task."""
        self.call(take_counts)
        self._began = time.process_time()

    def end(self) -> TaskWork:
        """Return the work since `begin`."""
        client_seconds = time.process_time() - self._began if hasattr(self.db, "call_workers") else 0.0
        return TaskWork([read_totals(taken) for taken in self.call(take_counts)], client_seconds)

    def call(self, function: Callable[[Any], Any]) -> list[Any]:
        """Call a function on each worker."""
        if hasattr(self.db, "call_workers"):
            return list(self.db.call_workers(name_of_function(function)))
        return [function(self.db)]


def start_counting(db: Any) -> None:
    """Count the work of a worker from now on."""
    db.worker.counts = WorkCounts()


def take_counts(db: Any) -> list[Any]:
    """Return what a worker has counted since the last call, as JSON values."""
    totals = db.worker.counts.take()
    operators = [[*key, asdict(work)] for key, work in totals.operators.items()]
    return [totals.cpu_seconds, operators, totals.rounds, totals.progress_messages, totals.progress_bytes]


def read_totals(taken: list[Any]) -> WorkTotals:
    """Return the counts of a worker, from JSON values."""
    cpu_seconds, operators, *progress = taken
    by_key = {(epoch, dataflow, name): OperatorWork(**work) for epoch, dataflow, name, work in operators}
    return WorkTotals(cpu_seconds, by_key, *progress)


class CountingStopwatch(Stopwatch):
    """A stopwatch that also counts the work of its last `with` block."""

    def __init__(self, db: Database) -> None:
        super().__init__()
        self.counter = WorkCounter(db)
        self.work: TaskWork | None = None

    def __enter__(self) -> CountingStopwatch:
        self.counter.begin()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.work = self.counter.end()
