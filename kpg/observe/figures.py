"""The values of the log's attributes, kept from events: for each attribute, a value for an entity.

    figures.take(events)          what happened counts
    figures.of(SIZE)              entity → value
    figures.touched[SIZE]         entities whose value may have changed since somebody cleared it

Of an arrangement:   size  =  batched − merged,   each batch adds its rows to `batched`, each merge what it took away to
`merged`, and so does the end of the trace with all that is left. Of what is gone the latest KEPT things are remembered.

Cost: events are summed by entity as columns; then Python for each entity that something happened to.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from kpg.events import Connects, Events, Imports, Operates, worker_entity
from kpg.observe import attributes as event_log
from kpg.observe.loop_scopes import loops_of

KEPT = 100_000  # operators and channels that are gone and still told of


class Figures:
    """What is known of the operators, channels and dataflows of one worker."""

    def __init__(self, worker: int, outside: int) -> None:
        self._worker = worker_entity(worker)
        self._outside = outside
        self._values: dict[str, dict[int, Any]] = {name: {} for name in event_log.ATTRIBUTES}
        self._things: dict[int, list[int]] = {}  # of each dataflow: itself, its loops, operators and channels
        self._gone: deque[int] = deque()
        self._gone_things = 0
        self.touched: dict[str, set[int]] = {name: set() for name in event_log.ATTRIBUTES}
        self._put(event_log.NAME, self._worker, f"worker {worker}")

    def of(self, attribute: str) -> dict[int, Any]:
        """The values of an attribute by entity."""
        return self._values[attribute]

    def inside(self, dataflow: int) -> list[int]:
        """A dataflow, its loops, operators and channels."""
        return self._things.get(dataflow, [])

    def _put(self, attribute: str, entity: int, value: Any) -> None:
        self._values[attribute][entity] = value
        self.touched[attribute].add(entity)

    def _add(self, attribute: str, entity: int, value: int) -> None:
        self._put(attribute, entity, self._values[attribute].get(entity, 0) + value)

    # Events

    def take(self, events: Events) -> None:
        """Count what happened."""
        if events.built:
            self._build(events)
        known = self._values[event_log.DATAFLOW]
        for entity, count, elapsed in summed(events.steps, (2,), 3):
            if entity in known:
                self._add(event_log.STEPS, entity, count)
                self._add(event_log.SPENT, entity, elapsed)
        for entity, count, rows in summed(events.messages, (1,), 2):
            if entity in known:
                self._add(event_log.MESSAGES, entity, count)
                self._add(event_log.MESSAGE_ROWS, entity, rows)
        for entity, count, rows, nbytes in summed(events.batches, (1, 2), 3):
            self._grow(entity, count, rows, nbytes)
        for entity, count, before, after, bytes_before, bytes_after in summed(events.merges, (1, 2, 3, 4), 5):
            self._shrink(entity, count, before - after, bytes_before - bytes_after)
        for entity in events.freed:
            self._shrink(entity, 0, self.of(event_log.SIZE).get(entity, 0), self.of(event_log.BYTES).get(entity, 0))
        if events.progress:
            self._add(event_log.TOLD, self._worker, len(events.progress))
            self._add(event_log.TOLD_CHANGES, self._worker, sum(events.progress))
        for entity in events.removed:
            self._shut(entity)

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

    # What is there

    def _build(self, events: Events) -> None:
        operators: defaultdict[int, list[Operates]] = defaultdict(list)
        channels: defaultdict[int, list[Connects]] = defaultdict(list)
        for each in events.built:
            if isinstance(each, Operates):
                operators[each.dataflow].append(each)
            elif isinstance(each, Connects):
                channels[each.dataflow].append(each)
        for dataflow, found in operators.items():
            self._add_dataflow(dataflow, found, channels[dataflow])
        for each in events.built:
            if isinstance(each, Imports) and each.entity in self.of(event_log.DATAFLOW):  # else it was never finished
                self._put(event_log.IMPORTS, each.entity, each.publisher)

    def _add_dataflow(self, dataflow: int, told: list[Operates], channels: list[Connects]) -> None:
        operators = [each for each in told if each.number >= 0]
        for each in told:
            self._put(event_log.NAME, each.entity, each.name)
        self._put(event_log.SCOPE, dataflow, self._worker)
        scope = {each.entity: dataflow for each in operators}
        things = [dataflow]
        for loop in loops_of(dataflow, operators, channels, self._outside):
            things.append(loop.entity)
            self._put(event_log.NAME, loop.entity, loop.name)
            self._put(event_log.SCOPE, loop.entity, loop.parent)
            scope.update(dict.fromkeys(loop.inside, loop.entity))
        for each in operators:
            self._put(event_log.LOCAL_ID, each.entity, each.number)
            self._put(event_log.DATAFLOW, each.entity, dataflow)
            self._put(event_log.SCOPE, each.entity, scope[each.entity])
        for channel in channels:
            self._put(event_log.DATAFLOW, channel.entity, dataflow)
            self._put(event_log.SCOPE, channel.entity, scope[channel.target])
            self._put(event_log.SOURCE, channel.entity, channel.source)
            self._put(event_log.SOURCE_PORT, channel.entity, channel.source_port)
            self._put(event_log.TARGET, channel.entity, channel.target)
            self._put(event_log.TARGET_PORT, channel.entity, channel.target_port)
        things += [operator.entity for operator in operators]
        self._things[dataflow] = things + [channel.entity for channel in channels]

    def _shut(self, entity: int) -> None:
        """A dataflow ends, and everything in it."""
        if entity in self._things:
            for each in self._things[entity]:
                self._put(event_log.SHUTDOWN, each, True)
            self._gone.append(entity)
            self._gone_things += len(self._things[entity])
            while self._gone_things > KEPT:
                self._forget(self._gone.popleft())

    def _forget(self, dataflow: int) -> None:
        things = self._things.pop(dataflow)
        self._gone_things -= len(things)
        for name, values in self._values.items():
            for each in things:
                if values.pop(each, None) is not None:
                    self.touched[name].add(each)


def summed(flat: list[int], lanes: tuple[int, ...], width: int) -> Iterator[list[int]]:
    """Events in one list, `width` numbers each: for each entity (the first), how many, and the sums of some lanes."""
    if not flat:
        return
    columns = np.array(flat, np.int64).reshape(-1, width)
    entities, place = np.unique(columns[:, 0], return_inverse=True)
    result = np.zeros((len(entities), 2 + len(lanes)), np.int64)
    result[:, 0] = entities
    np.add.at(result[:, 1], place, 1)
    for number, lane in enumerate(lanes):
        np.add.at(result[:, 2 + number], place, columns[:, lane])
    yield from result.tolist()
