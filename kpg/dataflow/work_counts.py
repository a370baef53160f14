"""Counts of a worker's work: CPU time, rows, bytes and messages, for each epoch and operator.

    worker.counts = WorkCounts()     count from now on; None (the default) counts nothing
    counts.take()                    return what was counted since the last call, and start again

CPU time is that of the operator's steps, with the parts that the helper thread computes. Rows, bytes and messages are
those that this worker sends to its peers for an operator. Progress messages belong to no operator. Rows that stay on
the worker are not counted. While a worker counts, it does not spin when it waits for its peers: counted CPU time is
work, and not waiting.
Cost: about a microsecond for each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import process_time, process_time_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kpg.dataflow.operator import Operator

OperatorKey = tuple[int, str, str]  # epoch, dataflow, operator


@dataclass(slots=True)
class OperatorWork:
    """The work of one operator in one epoch."""

    nanoseconds: int = 0  # of CPU time
    steps: int = 0
    rows: int = 0  # sent to other workers for it, as are bytes and messages
    bytes: int = 0
    messages: int = 0


@dataclass(slots=True)
class WorkTotals:
    """The work of one worker. `cpu_seconds` is that of its process; operators have a share of it."""

    cpu_seconds: float = 0.0
    operators: dict[OperatorKey, OperatorWork] = field(default_factory=dict)
    rounds: int = 0  # in which the worker sent progress
    progress_messages: int = 0
    progress_bytes: int = 0

    @property
    def messages(self) -> int:
        """The messages to peers: rows and progress."""
        return self.progress_messages + sum(work.messages for work in self.operators.values())

    @property
    def bytes(self) -> int:
        """The bytes to peers: rows and progress."""
        return self.progress_bytes + sum(work.bytes for work in self.operators.values())

    @property
    def rows(self) -> int:
        """The rows to peers."""
        return sum(work.rows for work in self.operators.values())


class WorkCounts:
    """Counts the work of a worker."""

    __slots__ = ("_totals", "_began")

    def __init__(self) -> None:
        self._totals, self._began = WorkTotals(), process_time()

    def take(self) -> WorkTotals:
        """Return the counts since the last call, and start again."""
        totals, began = self._totals, self._began
        self._totals, self._began = WorkTotals(), process_time()
        totals.cpu_seconds = self._began - began
        return totals

    def _work_of(self, operator: Operator) -> OperatorWork:
        """Return the counts of an operator in the present epoch, -1 after the end."""
        dataflow = operator.dataflow
        now = dataflow.worker.clock.now.elements
        key = now[0][0] if now else -1, dataflow.name, operator.name
        return self._totals.operators.setdefault(key, OperatorWork())

    def add_step(self, operator: Operator, began: int) -> None:
        """Count a step, or a part of one, that began at this time of `process_time_ns`."""
        work = self._work_of(operator)
        work.nanoseconds += process_time_ns() - began
        work.steps += 1

    def add_message(self, operator: Operator, rows: int, size: int) -> None:
        """Count a message of rows to one peer, for its operator."""
        work = self._work_of(operator)
        work.rows += rows
        work.bytes += size
        work.messages += 1

    def add_progress(self, messages: int, size: int) -> None:
        """Count one round of progress: messages to all peers, and their bytes together."""
        self._totals.rounds += 1
        self._totals.progress_messages += messages
        self._totals.progress_bytes += size
