"""The event log of a db: the engine's activity as relations of the same db.

    log = EventLog(db, attributes=[":timely.event.operates/name", ":differential.event/size"])
    log[":differential.event/size"]                        a relation (e, v), for any query
    Running(db, program, inputs=log.inputs)                a program in EDN or Datalog over it

    with unlogged(db): ...                                 exclude the dataflows installed in this block

`kpg.observe.attributes` defines the attributes. The events of an epoch appear in the log with the next advance. Several
logs of a db share the relations of common attributes. A db without a log pays one test per event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import TracebackType
from typing import Protocol

from kpg.api.contracts import Database, Input
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.dataflow.worker import event_logging
from kpg.errors import Closed, InUse, Unavailable
from kpg.events import Recorder
from kpg.observe import attributes as event_log
from kpg.observe.event_recorder import EventRecorder
from kpg.observe.ranking import DataflowFigures, OperatorFigures, dataflows_of, format_operators
from kpg.observe.worker_log import WorkersDatabase, WorkersRecorder, call


class LoggedDatabase(Protocol):
    """A db, as its log sees it."""

    recorder: Recorder | None

    def check(self) -> None:
        """Raise if the db is closed."""


class EventLog:
    """Attributes of a db's event log, until it is closed; `every` is the minimum number of seconds between writes."""

    def __init__(self, db: Database, attributes: Iterable[str] | None = None, *, every: float = 0.0) -> None:
        names = event_log.resolve_attributes(attributes)
        db.check()
        self.db, self._recorder = recorder_of(db)
        self._recorder.users += 1
        self._recorder.every = every
        self._closed = False
        self.inputs: dict[str, Input] = {}
        try:
            for name in names:
                source = self._recorder.source(name)
                source.users += 1
                self.inputs[name] = source.input
        except BaseException:
            self.close()
            raise

    @property
    def attributes(self) -> dict[str, tuple[type, type]]:
        """The entity and value types of each attribute, for `parse_query`."""
        return {name: (int, event_log.ATTRIBUTES[name].value) for name in self.inputs}

    def __getitem__(self, name: str) -> Input:
        """Return the relation of an attribute."""
        (name,) = event_log.resolve_attributes([name])
        return self.inputs[name]

    # Summaries

    def operators(self) -> list[OperatorFigures]:
        """Return all installed operators of all workers, the most expensive first."""
        if self._closed:
            raise Closed("the log is closed")
        self.db.check()
        return self._recorder.operators()

    def dataflows(self) -> list[DataflowFigures]:
        """Return all installed dataflows, the most expensive first."""
        return dataflows_of(self.operators())

    def top(self, most: int = 10) -> str:
        """Return the `most` most expensive operators as a text table."""
        return format_operators(self.operators(), most)

    # End

    def close(self) -> None:
        """Drop its relations, unless another log uses them; raise while queries read them. Does nothing if closed."""
        if self._closed:
            return
        if self.db.recorder is not self._recorder:  # the db was closed before
            self._closed = True
            return
        for name in list(self.inputs):
            source = self._recorder.sources[name]
            if source.users == 1:
                source.input.drop()
                del self._recorder.sources[name]
            source.users -= 1
            del self.inputs[name]
        self._closed = True
        self._recorder.users -= 1
        if not self._recorder.users:
            self._recorder.close()

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(InUse) if error is not None else nullcontext():  # report the original error, not its consequence
            self.close()


def recorder_of(db: Database) -> tuple[LoggedDatabase, EventRecorder | WorkersRecorder]:
    """Return a db with its recorder, which the first log creates."""
    if isinstance(db, EmbeddedDatabase) and db.is_single_worker:
        return db, db.recorder if isinstance(db.recorder, EventRecorder) else EventRecorder(db)
    if isinstance(db, WorkersDatabase) and isinstance(db, Database):
        return db, db.recorder if isinstance(db.recorder, WorkersRecorder) else WorkersRecorder(db)
    raise Unavailable(
        "an event log belongs to the thread of its db", hint="Create it there: db.run(kpg.observe.event_log.EventLog)."
    )


@contextmanager
def unlogged(db: Database) -> Iterator[None]:
    """Exclude dataflows installed in this block from the event log. Inputs and their indexes are always logged."""
    if isinstance(db, EmbeddedDatabase):
        with event_logging(db.worker, False):
            yield
    elif isinstance(db, WorkersDatabase) and db.recorder is not None:
        call(db, "set_logging", on=False)
        try:
            yield
        finally:
            call(db, "set_logging", on=True)
    else:
        yield
