"""The log of a db: what its engine does, as relations of the same db.

    log = Log(db, attributes=[":timely.event.operates/name", ":differential.event/size"])
    log[":differential.event/size"]                        a relation (e, v), for any query
    Running(db, program, inputs=log.inputs)                a program in EDN or Datalog over it

    with unlogged(db): ...                                 what is installed here is not told of in the log

Attributes are those of `kpg.observe.attributes`. What happened up to an advance is in the log with the next one.
Several logs of a db share what they have in common. A db without a log pays one test for each event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import TracebackType

from kpg.api.contracts import Database
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_input import EmbeddedInput
from kpg.dataflow.worker import logged
from kpg.errors import Closed, InUse, Unavailable
from kpg.observe import attributes as event_log
from kpg.observe.event_recorder import EventRecorder
from kpg.observe.figures import Figures
from kpg.observe.ranking import DataflowFigures, OperatorFigures, dataflows_of, operators_of, shown


class EventLog:
    """Some attributes of the log of a db, until it is closed; `every` so many seconds, at most, rows are written."""

    def __init__(self, db: Database, attributes: Iterable[str] | None = None, *, every: float = 0.0) -> None:
        names = event_log.known(attributes)
        db.check()
        if not isinstance(db, EmbeddedDatabase) or not db.is_single_worker:
            raise Unavailable("a log is of a db in this process", hint="Use kpg.observe.worker_figures.WorkersLog.")
        self.db = db
        found = db.recorder
        self._recorder = found if isinstance(found, EventRecorder) else EventRecorder(db)
        self._recorder.users += 1
        self._recorder.every = every
        self._closed = False
        self.inputs: dict[str, EmbeddedInput] = {}
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
        """What each attribute relates: for `parse_query`."""
        return {name: (int, event_log.ATTRIBUTES[name].value) for name in self.inputs}

    def __getitem__(self, name: str) -> EmbeddedInput:
        """The relation of an attribute."""
        (name,) = event_log.known([name])
        return self.inputs[name]

    # For people

    def operators(self) -> list[OperatorFigures]:
        """All operators that are there, those that took the most time first."""
        return operators_of(self._figures())

    def dataflows(self) -> list[DataflowFigures]:
        """All dataflows that are there, those that took the most time first."""
        return dataflows_of(self.operators())

    def top(self, most: int = 10) -> str:
        """The operators that took the most time, as a table to look at."""
        return shown(self.operators(), most)

    def _figures(self) -> Figures:
        if self._closed:
            raise Closed("the log is closed")
        self.db.check()
        self._recorder.collect()
        return self._recorder.figures

    # End

    def close(self) -> None:
        """Forget its relations, unless another log has them; refused while queries read them. May be repeated."""
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
        with suppress(InUse) if error is not None else nullcontext():  # what went wrong is told, not its consequence
            self.close()


@contextmanager
def unlogged(db: EmbeddedDatabase) -> Iterator[None]:
    """What is installed within is not told of in the log; relations of people and their indexes are all the same."""
    with logged(db.worker, False):
        yield
