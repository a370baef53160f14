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
from typing import Any

import numpy as np

from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_input import EmbeddedInput
from kpg.columns.schema import Schema
from kpg.columns.table_rows import encode
from kpg.columns.updates import Ints, Updates, constant
from kpg.errors import InUse
from kpg.events import Events
from kpg.observe import attributes as event_log
from kpg.observe.figures import Figures

MAX_BUFFERED_NUMBERS = 100_000  # integers in the event buffer above which events are summed up before a write is due
MAX_SINGLE_STEPS = 1_000_000  # steps published at one time; older ones are discarded


class AttributeRelation:
    """The relation of one attribute, and the values written into it."""

    def __init__(self, db: EmbeddedDatabase, name: str) -> None:
        if name in db.inputs:
            raise InUse(
                f"an input is already called {name!r}", hint="Drop it: the log needs this name for its attribute."
            )
        self.input = EmbeddedInput(
            db, name, Schema.of({"e": int, "v": event_log.ATTRIBUTES[name].value}), None, on_disk=False
        )
        self.input.is_log = True
        self.input.keep_by("e")
        db.inputs[name] = self.input
        self.users = 0
        self.written: dict[int, Any] = {}
        self._single = np.empty((2, 0), np.int64)

    def write(self, values: dict[int, Any], touched: set[int]) -> None:
        """Replace the values that have changed."""
        old, new = [], []
        for entity in touched:
            before, after = self.written.get(entity), values.get(entity)
            if before != after:
                if before is not None:
                    old.append((entity, before))
                    del self.written[entity]
                if after is not None:
                    new.append((entity, after))
                    self.written[entity] = after
        self._insert(self._encoded(old), -1)
        self._insert(self._encoded(new), 1)

    def replace(self, data: Ints) -> None:
        """Replace all rows by integer columns."""
        self._insert(self._single, -1)
        self._insert(data, 1)
        self._single = data

    def _encoded(self, rows: list[tuple[int, Any]]) -> Ints:
        return encode(self.input.schema, rows, self.input.db.symbols)

    def _insert(self, data: Ints, diff: int) -> None:
        time = self.input.db.time.elements[0]
        self.input.take_lanes(Updates(data, constant(time), constant((diff,))))


class EventRecorder:
    """Writes the events of a db into relations."""

    def __init__(self, db: EmbeddedDatabase) -> None:
        self.db = db
        self.sources: dict[str, AttributeRelation] = {}
        self.users = 0
        self.every = 0.0
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
        if (
            event_log.STEP_OPERATOR in self.sources
            or event_log.STEP_START in self.sources
            or event_log.STEP_ELAPSED in self.sources
        ):
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
        steps = np.array(self._steps, np.int64).reshape(-1, 3).T
        numbers = np.arange(self._next_step, self._next_step + steps.shape[1])
        self._next_step += steps.shape[1]
        self._steps = []
        columns = {
            event_log.STEP_OPERATOR: steps[0],
            event_log.STEP_START: steps[1] - self._began,
            event_log.STEP_ELAPSED: steps[2],
        }
        for name, column in columns.items():
            if name in self.sources:
                self.sources[name].replace(np.ascontiguousarray([numbers, column]))

    def spent(self, dataflow: int) -> tuple[float, int]:
        """Return the seconds and steps of a dataflow since the log began."""
        self.collect()
        spent, steps = self.figures.of(event_log.SPENT), self.figures.of(event_log.STEPS)
        inside = self.figures.inside(dataflow)
        return sum(spent.get(entity, 0) for entity in inside) / 1e9, sum(steps.get(entity, 0) for entity in inside)

    def close(self) -> None:
        """Stop receiving events."""
        self.db.recorder = None
        self.db.worker.set_events(None)
