"""The event recorder of a db: receives the worker's events, and writes them into relations before each epoch is closed.

The events of an epoch appear in the log with the next one: log rows are ordinary rows, inserted at the epoch that is
being closed, and the work of closing it happens afterwards. A log that is itself logged therefore grows by a bounded
amount with each advance, and never without one.

A db has one recorder, created by the first `EventLog` and closed with the last. Each attribute is a relation of that
name, which is neither logged nor stored on disk.
Cost: events are always counted; rows are written only for requested attributes, and only for entities with events.
"""

from __future__ import annotations

from time import monotonic, perf_counter_ns

from kpg.api.embedded_database import EmbeddedDatabase
from kpg.events import Events
from kpg.observe import attributes as event_log
from kpg.observe.attribute_relations import AttributeRelation, publish_steps
from kpg.observe.figures import Figures
from kpg.observe.ranking import OperatorFigures, operators_of

MAX_BUFFERED_NUMBERS = 100_000  # integers in the event buffer above which events are summed up before a write is due
MAX_SINGLE_STEPS = 1_000_000  # steps published at one time; older ones are discarded


class EventRecorder:
    """Writes the events of a db into relations."""

    def __init__(self, db: EmbeddedDatabase) -> None:
        self.db = db
        self.sources: dict[str, AttributeRelation] = {}
        self.users = 0
        self.every = 0.0
        self.keeps_steps = False  # whether single steps are taken by `take_steps`
        self._events = Events()
        self.figures = Figures(db.worker.index, db.config.coordinates)
        self._began = perf_counter_ns()
        self._steps: list[int] = []
        self._next_step = 0
        self._due = 0.0
        db.recorder = self
        db.worker.set_events(self._events)

    def source(self, name: str) -> AttributeRelation:
        """Return the relation of an attribute, created on first use."""
        if name not in self.sources:
            self.sources[name] = AttributeRelation(self.db, name)
            self.figures.touched[name] = set(self.figures.of(name))
        return self.sources[name]

    def collect(self) -> None:
        """Add the buffered events to the figures."""
        events = self._events.take()
        if self.keeps_steps or not self.sources.keys().isdisjoint(event_log.SINGLE_STEP_ATTRIBUTES):
            self._steps = (self._steps + events.steps)[-3 * MAX_SINGLE_STEPS :]
        self.figures.take(events)

    def publish(self) -> None:
        """Write the changed values, if a write is due."""
        if self._events.size > MAX_BUFFERED_NUMBERS:
            self.collect()
        if self.db.time and monotonic() >= self._due:
            self._due = monotonic() + self.every
            self.collect()
            for name, source in self.sources.items():
                if name not in event_log.SINGLE_STEP_ATTRIBUTES:
                    source.write(self.figures.of(name), self.figures.touched[name])
            for touched in self.figures.touched.values():
                touched.clear()
            self._publish_steps()

    def _publish_steps(self) -> None:
        self._next_step = publish_steps(self.sources, self.take_steps(), self._next_step)

    def spent(self, dataflow: int) -> tuple[float, int]:
        """Return the seconds and steps of a dataflow since the log began."""
        self.collect()
        spent, steps = self.figures.of(event_log.SPENT), self.figures.of(event_log.STEPS)
        inside = self.figures.inside(dataflow)
        return sum(spent.get(entity, 0) for entity in inside) / 1e9, sum(steps.get(entity, 0) for entity in inside)

    def take_steps(self) -> list[int]:
        """Remove and return the single steps since the last call: operator, start since the log began, duration."""
        steps, self._steps = self._steps, []
        steps[1::3] = [start - self._began for start in steps[1::3]]
        return steps

    def operators(self) -> list[OperatorFigures]:
        """Return all installed operators, the most expensive first."""
        self.collect()
        return operators_of(self.figures)

    def close(self) -> None:
        """Stop receiving events."""
        self.db.recorder = None
        self.db.worker.set_events(None)
