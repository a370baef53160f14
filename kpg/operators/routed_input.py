"""RoutedInput: an import that a join receives only in part, because the other side has few keys.

A join of a busy arrangement with few rows asks the publisher for the batches with a key of these rows. It matches no
batch that it does not receive: when the publisher sealed that batch, the other side had none of its keys. A row that
arrives on the other side later must meet that batch, so the join acknowledges it, too:

- At the beginning of a step, before it can pause, the keys of the other side's new rows are registered, and the
  publisher's upper is noted: all batches through it were received, are in this step, or have none of the keys.
- The step first matches the batches received, then acknowledges the noted upper, then matches the other side's rows.
- Between steps, the physical frontier is the lower of the first batch that is queued, or else the publisher's upper.

Cost: nothing for batches that are not received.
"""

from __future__ import annotations

from kpg.algebra.frontier import Frontier
from kpg.dataflow.operator import Inputs, Message, Operator
from kpg.operators.arrange import Arranged, Publisher
from kpg.operators.import_arrangement import import_of
from kpg.operators.key_routes import MAX_ROUTED_KEYS, Key, Lanes, keys_of
from kpg.operators.source import Source
from kpg.operators.trace_input import TraceInput

MIN_ROUTED_ROWS = 256  # that one side has received before it is worth routing: a small side costs little in any case


class RoutedInput:
    """The routing of one side of a join; `index` is that side."""

    def __init__(
        self, join: Operator, index: int, source: Source, publisher: Publisher, side: TraceInput, lanes: Lanes
    ) -> None:
        self.index = index
        self.is_routed = False
        self._lanes = lanes  # of the key
        self._join, self._source, self._publisher, self._side = join, source, publisher, side
        self._keys: set[Key] = set()  # of the other side's rows, before they are registered
        self._rows = 0  # received on this side, until it is routed
        self._noted: Frontier | None = None  # the publisher's upper at the beginning of this step

    def begin_step(self, inputs: Inputs) -> bool:
        """Register the keys of new rows of the other side. Return False if there are too many to route this side."""
        new = self._new_keys(inputs[1 - self.index])
        self._rows += sum(len(batch) for message in inputs[self.index] for batch in message.payload)
        if self.is_routed:
            self._noted = self._publisher.upper
            return new is not None and self._publisher.route(self._source, self._lanes, new)
        if new is not None:
            self._keys |= new
        return new is not None and len(self._keys) <= MAX_ROUTED_KEYS

    def _new_keys(self, messages: list[Message]) -> set[Key] | None:
        """Return the keys of some messages; None if they are many."""
        batches = [batch for message in messages for batch in message.payload]
        if sum(map(len, batches)) > MAX_ROUTED_KEYS:
            return None
        return {key for batch in batches if len(batch) for key in keys_of(batch.updates, self._lanes)}

    def acknowledge(self) -> None:
        """Acknowledge all batches through the noted upper: those of this step have been matched."""
        if self._noted is not None:
            self._side.acknowledged = self._noted

    def end_step(self) -> None:
        """Begin to route this side, if it has become large."""
        self._noted = None
        if not self.is_routed and self._rows >= MIN_ROUTED_ROWS and self._side.acknowledged is not None:
            self.is_routed = self._publisher.route(self._source, self._lanes, self._keys)
            if self.is_routed and self._side.handle is not None:
                self._side.handle.follow_physical(self._physical)

    def stop(self) -> None:
        """Receive every batch from now on."""
        if self.is_routed:
            self.acknowledge()
            if self._source in self._publisher.routes:
                self._publisher.remove_importer(self._source)
                self._publisher.add_importer(self._source)
            if self._side.handle is not None and self._side.acknowledged is not None:
                self._side.handle.set_physical(self._side.acknowledged)

    def _physical(self) -> Frontier:
        if self._noted is not None:
            return self._noted
        queue = self._join.queues[self.index]
        if queue:
            lower: Frontier = queue[0].payload[0].lower
            return lower
        return self._publisher.upper


def routed_inputs(
    join: Operator, arranged: tuple[Arranged, Arranged], sides: tuple[TraceInput, TraceInput]
) -> list[RoutedInput]:
    """Return the sides of a join that may be routed: imports that only this join reads, outside loops."""
    candidates = []
    for index, (side, of) in enumerate(zip(sides, arranged, strict=True)):
        origin = import_of(of.stream)
        if origin is not None and join.depth == 1 and of.key_lanes and len(origin[0].channels[0]) == 1:
            candidates.append(RoutedInput(join, index, *origin, side, tuple(range(of.key_lanes))))
    return candidates
