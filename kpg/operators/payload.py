"""The payload of messages: `Updates` on the stream of a collection, batches on the stream of an arrangement.

A batch contains `Updates`, so an operator on collections can also read the stream of an arrangement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from kpg.algebra.frontier import minimal
from kpg.columns.updates import Updates, concatenate
from kpg.dataflow.operator import Message, Times
from kpg.trace.batch import Batch

Batches: TypeAlias = tuple[Batch, ...]
Payload: TypeAlias = Updates | Batches

FEW_ROWS = 1024  # of messages that are joined: then a step costs more for a message than for its rows


def updates_of(payload: Payload) -> list[Updates]:
    """Return the updates of a payload of either kind."""
    if isinstance(payload, Updates):
        return [payload]
    return [batch.updates for batch in payload]


def joined_updates(messages: Sequence[Message]) -> Iterator[tuple[Updates, Times]]:
    """Yield the updates of some messages with their times; few updates of several messages as one.

    So an operator that lags takes waiting epochs together, and those behind it get one message.
    """
    few: list[Updates] = []
    times: list[Times] = []
    rows = 0
    for message in messages:
        for updates in updates_of(message.payload):
            size = updates.data.shape[1]
            if not size:
                continue
            if size > FEW_ROWS or len(messages) == 1:
                yield updates, message.times
                continue
            few.append(updates)
            times.append(message.times)
            rows += size
            if rows > FEW_ROWS:
                yield as_one(few, times)
                few, times, rows = [], [], 0
    if few:
        yield as_one(few, times)


def as_one(parts: list[Updates], times: list[Times]) -> tuple[Updates, Times]:
    """Return updates of several messages as one, with their minimal times."""
    if len(parts) == 1:
        return parts[0], times[0]
    return concatenate(parts), minimal([time for each in times for time in each])
