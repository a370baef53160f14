"""Seal complete times of an input: the common part of arrange and consolidate.

    seal(operator, batcher, messages)  →  the complete updates, sorted and consolidated; their upper; their times

After it has sent the result, the operator must hold the times of the updates that stay in the batcher (`hold_pending`).
Each message is dropped as soon as its updates are in the batcher, so a large load is not in memory twice.
"""

from __future__ import annotations

from typing import NamedTuple

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate, consolidate_all
from kpg.columns.updates import Updates
from kpg.dataflow.direct_run import MAX_DIRECT_ROWS
from kpg.dataflow.operator import Message, Operator, Times
from kpg.operators.payload import Payload
from kpg.trace.batcher import Batcher

MAX_KEPT_NUMBERS = 1 << 10  # of a block that a sealed row may keep alive


class SealedInput(NamedTuple):
    """Updates at times that are complete."""

    updates: Updates | list[Updates]
    upper: Frontier
    times: Times


def seal(operator: Operator, batcher: Batcher, messages: list[Message], unsorted: bool = False) -> SealedInput | None:
    """Push the messages, and return the updates that the frontier has passed, or None if there are none."""
    worker = operator.dataflow.worker
    if worker.direct.active and messages and batcher.is_empty:
        complete = complete_updates(messages, worker.clock.frontier)
        if complete is not None:
            return SealedInput(complete, worker.clock.frontier, messages[0].times)
    arrived = bool(messages)
    messages.reverse()
    while messages:
        push(batcher, messages.pop().payload)
    if arrived and operator.is_cyclic:
        # Hold before reading the frontier: the output of this step may come back to this input through a loop.
        hold_pending(operator, batcher)
    frontier = operator.frontier(0)
    # In a loop, send only at held times: the frontier may have passed the times of the messages.
    usable = operator.held if operator.is_cyclic else operator.usable
    ready = tuple([time for time in usable if not frontier.beyond(time)])
    if not ready:
        return None
    load = batcher.seal_load(frontier) if unsorted else None
    if load is not None:
        return SealedInput(load, frontier, ready)
    updates = batcher.seal(frontier)
    return SealedInput(updates, frontier, ready) if len(updates) else None


def complete_updates(messages: list[Message], frontier: Frontier) -> Updates | None:
    """Return the few updates of all messages of an epoch, sorted and consolidated; None if some are at other times."""
    rows, times = 0, messages[0].times
    if len(times) > 1 or frontier.beyond(times[0]):
        return None
    for message in messages:
        updates = message.payload
        if not isinstance(updates, Updates) or updates.times.shape[1] > 1 or message.times != times:
            return None
        if int(updates.times[0, 0]) != times[0][0]:
            return None
        rows += updates.data.shape[1]
    if rows == 0 or rows > MAX_DIRECT_ROWS:
        return None
    updates = one_sorted(messages[0].payload) if len(messages) == 1 else consolidate_all([m.payload for m in messages])
    return updates if updates.data.shape[1] else None


def one_sorted(updates: Updates) -> Updates:
    """Return updates sorted and consolidated, in memory of their own size."""
    n = updates.data.shape[1]
    is_sorted = updates.consolidated or (n == 1 and updates.diffs.size == 1 and int(updates.diffs[0, 0]) != 0)
    base = updates.data.base  # a batch must not keep a large block alive
    if not is_sorted or not updates.data.flags.c_contiguous or (base is not None and base.size > MAX_KEPT_NUMBERS):
        return consolidate(updates)
    return updates


def hold_pending(operator: Operator, batcher: Batcher) -> None:
    """Hold the minimal times of the updates in a batcher."""
    operator.hold(batcher.pending().elements)


def push(batcher: Batcher, payload: Payload) -> None:
    """Push the updates of a payload, and say if they are sorted already."""
    if isinstance(payload, Updates):
        if len(payload):
            batcher.push(payload, payload.consolidated)
    else:
        for batch in payload:
            if len(batch):
                batcher.push(batch.updates, consolidated=True)
