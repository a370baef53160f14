"""Arrange: turns a stream of updates into a trace by key, and the stream of its batches.

    the trace, accumulated to t  =  the input, accumulated to t        for every t not beyond the trace's upper

Updates are held until the frontier passes them; then one batch is cut, however many times it holds, put into the
trace and sent on. The operator keeps only a weak reference to the trace: when the last reader lets go, the trace is
freed and the batches are still sent. Dataflows that import the arrangement are fed each batch in the same step in
which it is sealed, so that nothing is ever out of progress's sight.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass

from kpg.algebra.frontier import Frontier, minimal
from kpg.columns.updates import Updates
from kpg.dataflow.channel import Pact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.dataflow.operator import Inputs, Message, Operator
from kpg.events import Events, TraceEvents
from kpg.operators.payload import Batches
from kpg.operators.sealed_input import hold_pending, seal
from kpg.trace.batch import Batch
from kpg.trace.batcher import Batcher
from kpg.trace.description import Description
from kpg.trace.handle import TraceHandle
from kpg.trace.merge_policy import MergePolicy
from kpg.trace.spine import Spine


@dataclass(frozen=True, slots=True)
class Arranged:
    """A trace by key, the stream of its batches, and the depth of the scope they are seen from.

    `handle` is the builder's own: readers clone it, and the builder releases it when the dataflow is built.
    """

    stream: Stream
    handle: TraceHandle
    key_lanes: int
    lanes: int
    width: int
    trace_depth: int

    @property
    def depth(self) -> int:
        """The coordinates of times in the scope this is read from; the trace's own may be fewer."""
        return self.stream.depth


class Publisher(Operator):
    """An operator that makes batches: sends them, keeps them in a trace if anybody reads it, feeds importers."""

    def __init__(self, name: str, spine: Spine) -> None:
        super().__init__(name)
        self.spine = weakref.ref(spine)
        self.upper = spine.upper
        self.importers: list[Operator] = []

    def publish(self, batch: Batch, times: tuple[tuple[int, ...], ...]) -> None:
        """Let everyone have a new batch."""
        self.upper = batch.upper
        if times:
            payload: Batches = (batch,)
            self.send(payload, times)
            for importer in self.importers:
                importer.dataflow.feed(importer, Message(times, payload))
        spine = self.spine()
        if spine is not None:  # after sending: the insert may compact, and readers must see it coming
            spine.insert(batch)
            if not self.in_idle_queue:
                self.dataflow.worker.queue_idle_work(self)

    def set_events(self, events: Events | None) -> None:
        spine = self.spine()
        if spine is None:
            return
        spine.events = told = None if events is None else TraceEvents(events, self.entity)
        if told is not None:
            for batch in spine.batches_through(None):
                told.inserted(batch)

    def state(self) -> Iterator[Updates]:
        spine = self.spine()
        if spine is not None:
            for batch in spine.batches_through(None):
                yield batch.updates

    def idle_merge(self, fuel: int) -> bool:
        spine = self.spine()
        return spine is not None and spine.exert(fuel)

    @property
    def has_readers(self) -> bool:
        return self.spine() is not None

    @property
    def unsettled(self) -> bool:
        spine = self.spine()
        return spine is not None and spine.unsettled


class Arrange(Publisher):
    """Sorts a stream of updates into batches."""

    waits_for_frontier = True

    def __init__(self, name: str, spine: Spine) -> None:
        super().__init__(name, spine)
        self.key_lanes = spine.key_lanes
        self.start = Frontier.start(spine.depth)
        self.batcher = Batcher(spine.lanes, spine.depth, spine.width)

    def step(self, inputs: Inputs) -> bool:
        sealed = seal(self, self.batcher, inputs[0])
        if sealed is not None:
            description = Description(self.upper, sealed.upper, self.start)
            self.publish(Batch(sealed.updates, self.key_lanes, description), sealed.times)
        hold_pending(self, self.batcher)
        return False

    def state(self) -> Iterator[Updates]:
        yield from super().state()
        yield from self.batcher.parts()

    def release(self) -> None:
        self.batcher = Batcher(self.batcher.lanes, self.batcher.depth, self.batcher.width)


class Insert(Publisher):
    """Keeps batches that come sorted already in a trace: the arrangement of an operator that makes batches itself."""

    def step(self, inputs: Inputs) -> bool:
        messages = inputs[0]
        if len(messages) > 1:  # none may be out of sight while another is put into the trace
            self.hold(minimal(time for message in messages for time in message.times))
        for message in messages:
            for batch in message.payload:
                self.publish(self._following(batch), message.times)
        self.hold(())
        return False

    def _following(self, batch: Batch) -> Batch:
        """The batch as the one after the last: in between, empty batches were left out or everything had cancelled."""
        if batch.lower == self.upper:
            return batch
        return Batch(batch.updates, batch.key_lanes, Description(self.upper, batch.upper, batch.since))


def arrange(
    dataflow: Dataflow,
    name: str,
    stream: Stream,
    pact: Pact,
    *,
    key_lanes: int,
    lanes: int,
    width: int,
    policy: MergePolicy,
) -> tuple[Arrange, Arranged]:
    """Add an arrangement of a stream whose first `key_lanes` lanes are the key."""
    spine = Spine(key_lanes, lanes, stream.depth, width, policy)
    handle = TraceHandle(spine, f"building {name}", Frontier.start(stream.depth))
    operator = Arrange(name, spine)
    batches = dataflow.add(operator, [(stream, pact)], depth=stream.depth)
    return operator, Arranged(batches, handle, key_lanes, lanes, width, stream.depth)
