"""The figures of a db on several workers: each worker counts its own events, and reports them on request.

    with WorkersLog(db) as log:
        ...
        log.operators()      [(worker, figures of an operator), ...], the most expensive first

There are no relations of these figures, because a query over them would add work to all workers. While the log is open,
`db.describe()` and the metrics include the time of each dataflow on each worker. Workers that restart after a failure
count from zero.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from kpg.errors import Unavailable
from kpg.observe.event_recorder import EventRecorder
from kpg.observe.ranking import OperatorFigures, operators_of

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase


class WorkersLog:
    """Counts the events of all workers of a db, until it is closed."""

    def __init__(self, db: Any) -> None:
        if db.is_single_worker:
            raise Unavailable("this db has one worker", hint="Use kpg.observe.event_log.EventLog.")
        self.db = db
        self._ask("begin")

    def operators(self) -> list[tuple[int, OperatorFigures]]:
        """Return all operators of all workers with their worker numbers, the most expensive first."""
        operators = [
            (worker, OperatorFigures(*figures))
            for worker, reported in enumerate(self._ask("operators"))
            for figures in reported
        ]
        return sorted(operators, key=lambda entry: -entry[1].seconds)

    def close(self) -> None:
        """Stop counting; repeating it has no effect."""
        self._ask("end")

    def _ask(self, what: str) -> list[Any]:
        return list(self.db.call_workers(f"kpg.observe.worker_figures:{what}"))

    def __enter__(self) -> WorkersLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


# Called on each worker


def begin(db: EmbeddedDatabase) -> None:
    """Start counting events."""
    if db.recorder is None:
        EventRecorder(db)


def operators(db: EmbeddedDatabase) -> list[OperatorFigures]:
    """Return the figures of this worker's operators."""
    begin(db)
    recorder = db.recorder
    assert isinstance(recorder, EventRecorder)
    recorder.collect()
    return operators_of(recorder.figures)


def end(db: EmbeddedDatabase) -> None:
    """Stop counting events."""
    if isinstance(db.recorder, EventRecorder):
        db.recorder.close()
