"""Import an arrangement of another dataflow into this one.

    the imported stream, accumulated to t  =  the arrangement, accumulated to t        for every t beyond the since

The first message has the batches that the trace already holds, with times advanced to the since of the handle: the
trace no longer distinguishes earlier times. Then new batches follow as the publisher seals them.

A dataflow may be built in turns (kpg/columns/building_turns.py). So an import is added first, which lets operators be
connected to it, and attached when all operators are there: all imports of a dataflow begin at one time.
Cost: both dataflows read the same trace. An import copies at most a column of times, or a batch in which advancing
makes equal rows cancel.
"""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import constant
from kpg.dataflow.graph import Dataflow, Stream
from kpg.dataflow.operator import Message
from kpg.events import Imports
from kpg.operators.arrange import Arranged, Publisher
from kpg.operators.source import Source
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.handle import TraceHandle
from kpg.trace.merger import empty_after, merge_now


def import_arrangement(dataflow: Dataflow, name: str, publisher: Publisher, handle: TraceHandle) -> Arranged:
    """Import the arrangement of `publisher` into a dataflow, as of the since of `handle`."""
    added = AddedImport(dataflow, name, publisher, handle)
    added.attach()
    return added.arranged


class AddedImport:
    """An import of the arrangement of a publisher; nothing is fed into it before it is attached."""

    def __init__(self, dataflow: Dataflow, name: str, publisher: Publisher, handle: TraceHandle) -> None:
        if publisher.dataflow.failure is not None:
            raise publisher.dataflow.failure.with_traceback(None)
        self._dataflow, self._name, self._publisher, self._handle = dataflow, name, publisher, handle
        self._source = source = Source(f"import {name}")
        spine, since = handle.spine, handle.since
        stream = dataflow.add_source(source, publisher.output_frontier, depth=spine.depth, opening=since.elements)
        source.publisher = publisher
        own = handle.clone(f"building {dataflow.name}", since)
        self.arranged = Arranged(stream, own, spine.key_lanes, spine.lanes, spine.width, spine.depth)

    def attach(self) -> Frontier:
        """Feed what the trace holds, and from now on each new batch. Return the time at which the import begins."""
        dataflow, publisher, source, handle = self._dataflow, self._publisher, self._source, self._handle
        if publisher.dataflow.failure is not None:
            raise publisher.dataflow.failure.with_traceback(None)
        since = handle.since
        held = handle.batches(None)
        history = [advance_batch(batch, since) for batch in held if len(batch)]
        if history and not len(held[-1]):
            history.append(held[-1])  # for its upper: this worker has all updates before it, even if peers lag
        assert len(since) == 1, f"{self._name} can be imported as of one time only, not {since}"
        if history:
            dataflow.feed(source, Message(since.elements, tuple(history)))
        publisher.add_importer(source)
        if dataflow.events is not None:
            dataflow.events.built.append(Imports(source.entity, publisher.entity))
        publisher.dataflow.readers.append(dataflow)
        dataflow.imports.append(publisher.dataflow)
        dataflow.on_drop.append(self._detach)
        return since

    def _detach(self) -> None:
        self._publisher.remove_importer(self._source)
        self._publisher.dataflow.readers.remove(self._dataflow)
        self._dataflow.imports.remove(self._publisher.dataflow)


def import_of(stream: Stream) -> tuple[Source, Publisher] | None:
    """Return the source of a stream that is just an import, and the publisher that feeds it; else None."""
    (source, _), *others = stream.ports
    if others or not isinstance(source, Source) or not isinstance(source.publisher, Publisher):
        return None
    return source, source.publisher


def advance_batch(batch: Batch, since: Frontier) -> Batch:
    """Return the batch with its times advanced to `since`."""
    if since.precedes(batch.lower) or since.precedes(batch.since):
        return batch
    updates = batch.updates
    if updates.times.shape[1] > 1 and (updates.data[:, 1:] == updates.data[:, :-1]).all(axis=0).any():
        return merge_now(batch, empty_after(batch), since)  # equal rows may now have equal times
    floor = constant(since.elements[0])
    past = updates.depth == 1 and batch.upper.precedes(since)  # all its times are before since, so it has one time
    times = floor if past else np.maximum(updates.times, floor)
    description = Description(batch.lower, batch.upper, since)
    return Batch(updates.with_times(times), batch.key_lanes, description)
