"""Import: an arrangement of another dataflow, mirrored into this one.

First come the batches that the trace already holds, in one message, their times advanced to the since of the handle
used: earlier times were forgotten and must not be presented as if they had been. Then come new batches as they are
sealed. What the importing dataflow reads is the same trace: nothing is copied but, at most, a column of times, or a
batch of which something was only there before since.
"""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Updates, constant
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.operator import Message
from kpg.events import Imports
from kpg.operators.arrange import Arranged, Publisher
from kpg.operators.source import Source
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.handle import TraceHandle
from kpg.trace.merger import empty_after, merge_now


def import_arrangement(dataflow: Dataflow, name: str, publisher: Publisher, handle: TraceHandle) -> Arranged:
    """Mirror what `publisher` arranges, as seen by `handle`, into a dataflow."""
    if publisher.dataflow.failure is not None:
        raise publisher.dataflow.failure
    spine = handle.spine
    source = Source(f"import {name}")
    since = handle.since
    stream = dataflow.add_source(source, publisher.output_frontier, depth=spine.depth, opening=since.elements)
    held = handle.batches(None)
    history = [advanced(batch, since) for batch in held if len(batch)]
    if history and not len(held[-1]):
        history.append(held[-1])  # its upper: all that was said until then is here, whatever peers have yet to say
    assert len(since) == 1, f"{name} is imported as of one time, not {since}"
    if history:
        dataflow.feed(source, Message(since.elements, tuple(history)))
    publisher.importers.append(source)
    if dataflow.events is not None:
        dataflow.events.built.append(Imports(source.entity, publisher.entity))
    publisher.dataflow.readers.append(dataflow)

    def forget() -> None:
        publisher.importers.remove(source)
        publisher.dataflow.readers.remove(dataflow)

    dataflow.on_drop.append(forget)
    own = handle.clone(f"building {dataflow.name}")
    return Arranged(stream, own, spine.key_lanes, spine.lanes, spine.width, spine.depth)


def advanced(batch: Batch, since: Frontier) -> Batch:
    """The batch as a reader at `since` may see it."""
    if since.precedes(batch.lower) or since.precedes(batch.since):
        return batch
    updates = batch.updates
    if updates.times.shape[1] > 1 and (updates.data[:, 1:] == updates.data[:, :-1]).all(axis=0).any():
        return merge_now(batch, empty_after(batch), since)  # equal rows come together at one time
    floor = constant(since.elements[0])
    past = updates.depth == 1 and batch.upper.precedes(since)  # all of it lies there, so it has one time
    times = floor if past else np.maximum(updates.times, floor)
    description = Description(batch.lower, batch.upper, since)
    return Batch(Updates(updates.data, times, updates.diffs), batch.key_lanes, description)
