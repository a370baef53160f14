"""The recorder of a db: listens to its worker, and writes what it hears into relations before each epoch is closed.

What an epoch did is in the log with the next one: rows of the log are rows like any other, inserted at the epoch that
is being closed, and the work that closing it makes happens after. So a log that is itself logged grows by a bounded
amount with each advance, and never by itself.

There is one recorder for a db, made by the first `Log` and ended with the last. Each attribute is a relation of that
name; it is neither logged nor kept on disk. Cost: nothing for attributes nobody asked for but the counting; rows are
written for entities that something happened to.
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

MANY = 100_000  # numbers of events that are summed up although it is not time to write
SINGLE_STEPS = 1_000_000  # that are told of at once, the last


class AttributeRelation:
    """The relation of one attribute, and what was written into it."""

    def __init__(self, db: EmbeddedDatabase, name: str) -> None:
        if name in db.inputs:
            raise InUse(f"there is an input {name!r} already", hint="It cannot be an attribute of the log.")
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
        """Replace values that have changed."""
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
        """Replace all rows, which are numbers."""
        self._insert(self._single, -1)
        self._insert(data, 1)
        self._single = data

    def _encoded(self, rows: list[tuple[int, Any]]) -> Ints:
        return encode(self.input.schema, rows, self.input.db.symbols)

    def _insert(self, data: Ints, diff: int) -> None:
        time = self.input.db.time.elements[0]
        self.input.take_lanes(Updates(data, constant(time), constant((diff,))))


class EventRecorder:
    """Turns the events of a db into relations."""

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
        """The relation of an attribute, made when it is first asked for."""
        if name not in self.sources:
            self.sources[name] = AttributeRelation(self.db, name)
            self.figures.touched[name] = set(self.figures.of(name))
        return self.sources[name]

    def collect(self) -> None:
        """Count what has happened so far."""
        taken = self._events.take()
        if (
            event_log.STEP_OPERATOR in self.sources
            or event_log.STEP_START in self.sources
            or event_log.STEP_ELAPSED in self.sources
        ):
            self._steps = (self._steps + taken.steps)[-3 * SINGLE_STEPS :]
        self.figures.take(taken)

    def publish(self) -> None:
        """Write what has happened, if it is time to."""
        if self._events.size > MANY:
            self.collect()
        if self.db.time and monotonic() >= self._due:
            self._due = monotonic() + self.every
            self.collect()
            for name, source in self.sources.items():
                if name not in event_log.SINGLE:
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
        """The seconds and steps of a dataflow since the log began."""
        self.collect()
        spent, steps = self.figures.of(event_log.SPENT), self.figures.of(event_log.STEPS)
        inside = self.figures.inside(dataflow)
        return sum(spent.get(each, 0) for each in inside) / 1e9, sum(steps.get(each, 0) for each in inside)

    def close(self) -> None:
        """Listen no more."""
        self.db.recorder = None
        self.db.worker.set_events(None)
