"""Arrange: turn a stream of updates into a trace by key, and a stream of its batches.

    the trace, accumulated to t  =  the input, accumulated to t        for every t not beyond the trace's upper

The operator holds updates until the frontier passes their times. Then it seals one batch with all of these times,
sends it, and inserts it into the trace. It has only a weak reference to the trace: when the last reader releases its
handle, the trace is freed, and the operator still sends batches. Dataflows that import the arrangement receive each
batch in the same step in which it is sealed, so progress tracking sees it at all times.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator

from kpg.algebra.frontier import Frontier, minimal
from kpg.columns.updates import Updates
from kpg.columns.value_class import value_class
from kpg.dataflow.channel import Pact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.dataflow.operator import Inputs, Message, Operator
from kpg.events import Events, TraceEvents
from kpg.operators.key_routes import Key, KeyRoutes, Lanes
from kpg.operators.payload import Batches
from kpg.operators.picked_lanes import PickedLanes
from kpg.operators.sealed_input import hold_pending, seal
from kpg.trace.batch import Batch
from kpg.trace.batcher import Batcher
from kpg.trace.description import Description
from kpg.trace.handle import TraceHandle
from kpg.trace.merge_policy import MergePolicy
from kpg.trace.spine import Spine
from kpg.trace.unsorted_batch import UnsortedBatch, held_updates


@value_class
class Arranged:
    """An arrangement: a trace by key, and the stream of its batches as seen from some scope.

    The builder owns `handle`. Readers clone it, and the builder releases it when the dataflow is complete.
    """

    stream: Stream
    handle: TraceHandle
    key_lanes: int
    lanes: int
    width: int
    trace_depth: int

    @property
    def depth(self) -> int:
        """The number of coordinates of times in the scope that reads it. The times of the trace may have fewer."""
        return self.stream.depth


class Publisher(Operator):
    """An operator that produces batches: it sends them, feeds importers, and inserts them into a trace with readers."""

    publishes = True

    def __init__(self, name: str, spine: Spine) -> None:
        super().__init__(name)
        self.spine = weakref.ref(spine)
        self.upper = spine.upper
        self.published_rows = 0  # updates of all batches so far
        self.routes = KeyRoutes()
        self._unrouted: list[Operator] = []  # the importers that are fed every batch

    @property
    def importers(self) -> list[Operator]:
        """The sources of the dataflows that import the arrangement."""
        return [*self._unrouted, *self.routes]

    def add_importer(self, importer: Operator) -> None:
        """Feed a source with all batches from now on."""
        self._unrouted.append(importer)

    def remove_importer(self, importer: Operator) -> None:
        """Feed a source no more."""
        if importer in self.routes:
            self.routes.remove(importer)
        else:
            self._unrouted.remove(importer)

    def route(self, importer: Operator, lanes: Lanes, keys: set[Key]) -> bool:
        """Feed a source only with batches that have one of its registered keys. Return False if these are many."""
        is_new = importer not in self.routes
        is_routed = self.routes.add(importer, lanes, keys)
        if is_new and is_routed:
            self._unrouted.remove(importer)
        elif not is_new and not is_routed:
            self._unrouted.append(importer)
        return is_routed

    def publish(self, batch: Batch, times: tuple[tuple[int, ...], ...]) -> None:
        """Send a new batch, feed it to importers, and insert it into the trace."""
        self.upper = batch.description.upper
        self.published_rows += len(batch)
        if times:
            payload: Batches = (batch,)
            self.send(payload, times)
            if self._unrouted or self.routes:
                message = Message(times, payload)
                for importer in self._unrouted:
                    importer.dataflow.feed(importer, message)
                for importer in self.routes.targets(batch) if self.routes else ():
                    importer.dataflow.feed(importer, message)
        self._insert(batch)  # after sending: the insert may compact, and progress must have counted the batch

    def keep(self, batch: Batch) -> None:
        """Insert a new batch into the trace that all readers have processed already."""
        self.upper = batch.upper
        self.published_rows += len(batch)
        self._insert(batch)

    def _insert(self, batch: Batch) -> None:
        spine = self.spine()
        if spine is not None:
            direct = self.dataflow.worker.direct
            if spine.append(batch):
                if direct.active:
                    direct.defer(self, spine.merge_due)
                else:
                    spine.merge_due()
            if not self.in_idle_queue:
                self.dataflow.worker.queue_idle_work(self)

    def set_events(self, events: Events | None) -> None:
        spine = self.spine()
        if spine is None:
            return
        spine.events = trace_events = None if events is None else TraceEvents(events, self.entity)
        if trace_events is not None:
            for batch in spine.batches_through(None):
                trace_events.log_insert(batch)

    def state(self) -> Iterator[Updates]:
        spine = self.spine()
        if spine is not None:
            for batch in spine.batches_through(None):
                yield from held_updates(batch)

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
    """Sort a stream of updates into batches."""

    waits_for_frontier = True

    def __init__(self, name: str, spine: Spine, picked: PickedLanes | None = None) -> None:
        super().__init__(name, spine)
        self.picked = picked  # the lanes of its messages in the order of the trace, if that is another
        self.key_lanes = spine.key_lanes
        self.start = Frontier.start(spine.depth)
        self.batcher = Batcher(spine.lanes, spine.depth, spine.width)

    def step(self, inputs: Inputs) -> bool:
        messages = inputs[0] if self.picked is None else self.picked.pick(inputs[0])
        sealed = seal(self, self.batcher, messages, unsorted=True)
        if sealed is not None:
            description = Description(self.upper, sealed.upper, self.start)
            if isinstance(sealed.updates, list):
                batch: Batch = UnsortedBatch(sealed.updates, self.key_lanes, description)
            else:
                batch = Batch(sealed.updates, self.key_lanes, description)
            self.publish(batch, sealed.times)
        if self.held or not self.batcher.is_empty:
            hold_pending(self, self.batcher)
        return False

    def state(self) -> Iterator[Updates]:
        yield from super().state()
        yield from self.batcher.parts()

    def release(self) -> None:
        self.batcher = Batcher(self.batcher.lanes, self.batcher.depth, self.batcher.width)


class Insert(Publisher):
    """Insert sorted batches into a trace: the arrangement of an operator that sends batches itself."""

    def step(self, inputs: Inputs) -> bool:
        messages = inputs[0]
        if len(messages) > 1:  # progress must see each until it is in the trace
            self.hold(minimal(time for message in messages for time in message.times))
        for message in messages:
            for batch in message.payload:
                self.publish(self._continue_trace(batch), message.times)
        if self.held:
            self.hold(())
        return False

    def _continue_trace(self, batch: Batch) -> Batch:
        """Return the batch with the trace's upper as its lower: all updates between the two have cancelled."""
        if batch.description.lower is self.upper or batch.lower == self.upper:
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
    picked: PickedLanes | None = None,
) -> tuple[Arrange, Arranged]:
    """Add an arrangement of a stream, or of its lanes in another order. The key is the first `key_lanes` lanes."""
    spine = Spine(key_lanes, lanes, stream.depth, width, policy)
    handle = TraceHandle(spine, f"building {name}", Frontier.start(stream.depth))
    operator = Arrange(name, spine, picked)
    batches = dataflow.add(operator, [(stream, pact)], depth=stream.depth)
    return operator, Arranged(batches, handle, key_lanes, lanes, width, stream.depth)
