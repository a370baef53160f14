"""The event recorder of a db on several workers: each worker counts its events, and the db writes them into relations.

    begin, take_values, operators, end, set_logging        run on each worker, by name

Entities are unique over all workers, and `:timely/scope` leads from each to its worker. So a relation has the values of
all workers side by side, and is an ordinary relation of the db, divided among the workers by entity.

Before an epoch is closed, all workers send the values that have changed since they were last asked. Workers that began
again after a failure count from zero; all of their values are compared with those written.
Cost: one more request to all workers for each advance, or at most each `every` seconds.
"""

from __future__ import annotations

from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from kpg.events import PART_BITS, Recorder
from kpg.observe import attributes as event_log
from kpg.observe.attribute_relations import AttributeRelation, LogWriter, publish_steps
from kpg.observe.event_recorder import EventRecorder
from kpg.observe.ranking import OperatorFigures

if TYPE_CHECKING:
    from kpg.algebra.frontier import Frontier
    from kpg.api.embedded_database import EmbeddedDatabase

Values = dict[int, Any]


@runtime_checkable
class WorkersDatabase(LogWriter, Protocol):
    """A db on several workers, as its event log sees it."""

    recorder: Recorder | None

    @property
    def time(self) -> Frontier:
        """The open time."""

    @property
    def recoveries(self) -> int:
        """How often all workers have begun again."""

    def call_workers(self, function: str, **options: Any) -> list[Any]:
        """Call a function by name on each worker, and return the results."""


class WorkersRecorder:
    """Writes the events of all workers of a db into relations."""

    def __init__(self, db: WorkersDatabase) -> None:
        self.db = db
        self.sources: dict[str, AttributeRelation] = {}
        self.users = 0
        self.every = 0.0
        self._next_step = 0
        self._due = 0.0
        self._recoveries = db.recoveries
        call(db, "begin")
        db.recorder = self

    def source(self, name: str) -> AttributeRelation:
        """Return the relation of an attribute, created on first use."""
        if name not in self.sources:
            self.sources[name] = AttributeRelation(self.db, name)
            call(self.db, "touch", attribute=name)
        return self.sources[name]

    def publish(self) -> None:
        """Write the changed values, if a write is due."""
        if self.db.time and self.sources and monotonic() >= self._due:
            self._due = monotonic() + self.every
            self._write(call(self.db, "take_values", attributes=list(self.sources)))

    def _write(self, taken: list[dict[str, Any]]) -> None:
        """Write what all workers have sent: by attribute, entities and values; and single steps."""
        is_new_generation, self._recoveries = self._recoveries != self.db.recoveries, self.db.recoveries
        for name, source in self.sources.items():
            if name not in event_log.SINGLE_STEP_ATTRIBUTES:
                values: Values = dict(chain.from_iterable(map(tuple, one["values"][name]) for one in taken))
                source.write(values, {*values, *source.written} if is_new_generation else set(values))
        steps = list(chain.from_iterable(one["steps"] for one in taken))
        self._next_step = publish_steps(self.sources, steps, self._next_step)

    def operators(self) -> list[OperatorFigures]:
        """Return the installed operators of all workers, the most expensive first."""
        operators = [OperatorFigures(*figures) for reported in call(self.db, "operators") for figures in reported]
        return sorted(operators, key=lambda operator: -operator.seconds)

    def spent(self, dataflow: int) -> tuple[float, int]:
        """Return the seconds and steps of a dataflow of one worker since the log began."""
        inside = [one for one in self.operators() if one.entity >> PART_BITS == dataflow >> PART_BITS]
        return sum(one.seconds for one in inside), sum(one.steps for one in inside)

    def close(self) -> None:
        """Let the workers stop counting."""
        self.db.recorder = None
        call(self.db, "end")


def call(db: WorkersDatabase, function: str, **options: Any) -> list[Any]:
    """Call a function of this module on each worker."""
    return db.call_workers(f"{__name__}:{function}", **options)


# Called on each worker


def begin(db: EmbeddedDatabase) -> None:
    """Start counting events, unless the worker does already."""
    if db.recorder is None:
        EventRecorder(db)


def recorder_of(db: EmbeddedDatabase) -> EventRecorder:
    """Return the recorder of this worker; a worker that began again gets a new one."""
    begin(db)
    assert isinstance(db.recorder, EventRecorder)
    return db.recorder


def touch(db: EmbeddedDatabase, attribute: str) -> None:
    """Send all values of an attribute with the next changes."""
    recorder = recorder_of(db)
    recorder.collect()
    recorder.figures.touched[attribute] = set(recorder.figures.of(attribute))
    recorder.keeps_steps |= attribute in event_log.SINGLE_STEP_ATTRIBUTES


def take_values(db: EmbeddedDatabase, attributes: list[str]) -> dict[str, Any]:
    """Return the values of some attributes that have changed since the last call, and the single steps."""
    recorder = recorder_of(db)
    recorder.keeps_steps = not event_log.SINGLE_STEPS.isdisjoint(attributes)
    recorder.collect()
    figures = recorder.figures
    values = {name: [(entity, figures.of(name).get(entity)) for entity in figures.touched[name]] for name in attributes}
    for touched in figures.touched.values():
        touched.clear()
    return {"values": values, "steps": recorder.take_steps()}


def operators(db: EmbeddedDatabase) -> list[OperatorFigures]:
    """Return the figures of this worker's operators."""
    return recorder_of(db).operators()


def set_logging(db: EmbeddedDatabase, on: bool) -> None:
    """Log the dataflows that are installed from now on, or do not."""
    db.worker.logging = on


def end(db: EmbeddedDatabase) -> None:
    """Stop counting events."""
    if isinstance(db.recorder, EventRecorder):
        db.recorder.close()
