"""The current values of the log's attributes, computed from events.

    figures.take(events)          add events
    figures.of(SIZE)              entity → value
    figures.touched[SIZE]         entities with a value that may have changed since the set was last cleared

For an arrangement,   size  =  batched − merged.   Each batch adds its rows to `batched`. Each merge adds the rows it
removed to `merged`, and so does the drop of the trace with its remaining rows. Entities of dropped dataflows are
remembered up to MAX_DROPPED_ENTITIES.
Cost: events are summed by entity with NumPy; then a few Python operations per entity with events.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from kpg.events import Connects, Events, Imports, Operates, worker_entity
from kpg.observe import attributes as event_log
from kpg.observe.loop_scopes import loops_of

MAX_DROPPED_ENTITIES = 100_000  # operators and channels of dropped dataflows that stay in the log


class Figures:
    """The attribute values of one worker's operators, channels and dataflows."""

    def __init__(self, worker: int, outside: int) -> None:
        self._worker = worker_entity(worker)
        self._outside = outside
        self._values: dict[str, dict[int, Any]] = {name: {} for name in event_log.ATTRIBUTES}
        self._entities: dict[int, list[int]] = {}  # of each dataflow: itself, its loops, operators and channels
        self._dropped: deque[int] = deque()
        self._dropped_entities = 0
        self.touched: dict[str, set[int]] = {name: set() for name in event_log.ATTRIBUTES}
        self._put(event_log.NAME, self._worker, f"worker {worker}")

    def of(self, attribute: str) -> dict[int, Any]:
        """Return the values of an attribute by entity."""
        return self._values[attribute]

    def inside(self, dataflow: int) -> list[int]:
        """Return the entities of a dataflow: itself, its loops, operators and channels."""
        return self._entities.get(dataflow, [])

    def _put(self, attribute: str, entity: int, value: Any) -> None:
        self._values[attribute][entity] = value
        self.touched[attribute].add(entity)

    def _add(self, attribute: str, entity: int, value: int) -> None:
        self._put(attribute, entity, self._values[attribute].get(entity, 0) + value)

    # Events

    def take(self, events: Events) -> None:
        """Add events."""
        if events.built:
            self._build(events)
        installed = self._values[event_log.DATAFLOW]
        for entity, count, elapsed in summed(events.steps, (2,), 3):
            if entity in installed:
                self._add(event_log.STEPS, entity, count)
                self._add(event_log.SPENT, entity, elapsed)
        for entity, count, rows in summed(events.messages, (1,), 2):
            if entity in installed:
                self._add(event_log.MESSAGES, entity, count)
                self._add(event_log.MESSAGE_ROWS, entity, rows)
        for entity, count, rows, nbytes in summed(events.batches, (1, 2), 3):
            self._grow(entity, count, rows, nbytes)
        for entity, count, before, after, bytes_before, bytes_after in summed(events.merges, (1, 2, 3, 4), 5):
            self._shrink(entity, count, before - after, bytes_before - bytes_after)
        for entity in events.freed:
            self._shrink(entity, 0, self.of(event_log.SIZE).get(entity, 0), self.of(event_log.BYTES).get(entity, 0))
        if events.progress:
            self._add(event_log.PROGRESS_MESSAGES, self._worker, len(events.progress))
            self._add(event_log.PROGRESS_CHANGES, self._worker, sum(events.progress))
        for entity in events.removed:
            self._drop(entity)

    def _grow(self, entity: int, batches: int, rows: int, nbytes: int) -> None:
        if entity in self.of(event_log.DATAFLOW):
            self._add(event_log.BATCHES, entity, batches)
            self._add(event_log.BATCHED, entity, rows)
            self._add(event_log.SIZE, entity, rows)
            self._add(event_log.BYTES, entity, nbytes)

    def _shrink(self, entity: int, merges: int, rows: int, nbytes: int) -> None:
        if entity in self.of(event_log.SIZE):
            self._add(event_log.MERGES, entity, merges)
            self._add(event_log.MERGED, entity, rows)
            self._add(event_log.SIZE, entity, -rows)
            self._add(event_log.BYTES, entity, -nbytes)

    # Dataflows

    def _build(self, events: Events) -> None:
        operators: defaultdict[int, list[Operates]] = defaultdict(list)
        channels: defaultdict[int, list[Connects]] = defaultdict(list)
        for event in events.built:
            if isinstance(event, Operates):
                operators[event.dataflow].append(event)
            elif isinstance(event, Connects):
                channels[event.dataflow].append(event)
        for dataflow, members in operators.items():
            self._add_dataflow(dataflow, members, channels[dataflow])
        for event in events.built:
            if isinstance(event, Imports) and event.entity in self.of(event_log.DATAFLOW):  # else building it failed
                self._put(event_log.IMPORTS, event.entity, event.publisher)

    def _add_dataflow(self, dataflow: int, members: list[Operates], channels: list[Connects]) -> None:
        operators = [member for member in members if member.number >= 0]  # the dataflow itself has a negative number
        for member in members:
            self._put(event_log.NAME, member.entity, member.name)
        self._put(event_log.SCOPE, dataflow, self._worker)
        scope = {operator.entity: dataflow for operator in operators}
        entities = [dataflow]
        for loop in loops_of(dataflow, operators, channels, self._outside):
            entities.append(loop.entity)
            self._put(event_log.NAME, loop.entity, loop.name)
            self._put(event_log.SCOPE, loop.entity, loop.parent)
            scope.update(dict.fromkeys(loop.inside, loop.entity))
        for operator in operators:
            self._put(event_log.LOCAL_ID, operator.entity, operator.number)
            self._put(event_log.DATAFLOW, operator.entity, dataflow)
            self._put(event_log.SCOPE, operator.entity, scope[operator.entity])
        for channel in channels:
            self._put(event_log.DATAFLOW, channel.entity, dataflow)
            self._put(event_log.SCOPE, channel.entity, scope[channel.target])
            self._put(event_log.SOURCE, channel.entity, channel.source)
            self._put(event_log.SOURCE_PORT, channel.entity, channel.source_port)
            self._put(event_log.TARGET, channel.entity, channel.target)
            self._put(event_log.TARGET_PORT, channel.entity, channel.target_port)
        entities += [operator.entity for operator in operators]
        self._entities[dataflow] = entities + [channel.entity for channel in channels]

    def _drop(self, dataflow: int) -> None:
        """Mark a dataflow and everything in it as dropped."""
        if dataflow in self._entities:
            for entity in self._entities[dataflow]:
                self._put(event_log.SHUTDOWN, entity, True)
            self._dropped.append(dataflow)
            self._dropped_entities += len(self._entities[dataflow])
            while self._dropped_entities > MAX_DROPPED_ENTITIES:
                self._forget(self._dropped.popleft())

    def _forget(self, dataflow: int) -> None:
        entities = self._entities.pop(dataflow)
        self._dropped_entities -= len(entities)
        for name, values in self._values.items():
            for entity in entities:
                if values.pop(entity, None) is not None:
                    self.touched[name].add(entity)


def summed(flat: list[int], lanes: tuple[int, ...], width: int) -> Iterator[list[int]]:
    """Yield [entity, count, sums of some lanes] per entity, from a flat list of events of `width` numbers each."""
    if not flat:
        return
    columns = np.array(flat, np.int64).reshape(-1, width)
    entities, positions = np.unique(columns[:, 0], return_inverse=True)
    result = np.zeros((len(entities), 2 + len(lanes)), np.int64)
    result[:, 0] = entities
    np.add.at(result[:, 1], positions, 1)
    for number, lane in enumerate(lanes):
        np.add.at(result[:, 2 + number], positions, columns[:, lane])
    yield from result.tolist()
