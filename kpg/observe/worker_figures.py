"""The figures of a db on several workers: each counts its own events, and is asked for them.

    with WorkersLog(db) as log:
        ...
        log.operators()      [(worker, figures of an operator), ...], the most expensive first

No relations are made of them: a query over a log of several workers would be work on all of them. While it is open,
`db.describe()` and the figures for a monitor say what each dataflow took on each worker. Workers that begin again after
one was lost count from there.
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
    """Counts what all workers of a db do, until it is closed."""

    def __init__(self, db: Any) -> None:
        if db.is_single_worker:
            raise Unavailable("this db is in one process", hint="Use kpg.observe.event_log.EventLog.")
        self.db = db
        self._ask("begin")

    def operators(self) -> list[tuple[int, OperatorFigures]]:
        """All operators of all workers, with the number of the worker, those that took the most time first."""
        found = [
            (worker, OperatorFigures(*figures))
            for worker, told in enumerate(self._ask("operators"))
            for figures in told
        ]
        return sorted(found, key=lambda each: -each[1].seconds)

    def close(self) -> None:
        """Count no more; may be repeated."""
        self._ask("end")

    def _ask(self, what: str) -> list[Any]:
        return list(self.db.call_workers(f"kpg.observe.worker_figures:{what}"))

    def __enter__(self) -> WorkersLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


# On each worker


def begin(db: EmbeddedDatabase) -> None:
    """Count events from here on."""
    if db.recorder is None:
        EventRecorder(db)


def operators(db: EmbeddedDatabase) -> list[OperatorFigures]:
    """What was counted here."""
    begin(db)
    recorder = db.recorder
    assert isinstance(recorder, EventRecorder)
    recorder.collect()
    return operators_of(recorder.figures)


def end(db: EmbeddedDatabase) -> None:
    """Count no more."""
    if isinstance(db.recorder, EventRecorder):
        db.recorder.close()
