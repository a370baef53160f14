"""Waiting until times are complete: what arrange and consolidate have in common.

    seal(operator, batcher, messages)  →  what is complete, sorted and consolidated; its upper; the times to send it at

The operator still has to hold what the batcher keeps (`hold_pending`), after it has sent what came out. Messages are
let go of as they are taken in, so that a large load is not in memory twice while it is sorted.
"""

from __future__ import annotations

from typing import NamedTuple

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Updates
from kpg.dataflow.operator import Message, Operator, Times
from kpg.operators.payload import Payload
from kpg.trace.batcher import Batcher


class SealedInput(NamedTuple):
    """Updates at times that are complete."""

    updates: Updates
    upper: Frontier
    times: Times


def seal(operator: Operator, batcher: Batcher, messages: list[Message]) -> SealedInput | None:
    """Take in what arrived; give up what the frontier has passed, if there is something."""
    arrived = bool(messages)
    messages.reverse()
    while messages:
        push(batcher, messages.pop().payload)
    if arrived and operator.is_cyclic:
        # Held before the frontier is asked for: what is sent may come round to this very input.
        hold_pending(operator, batcher)
    frontier = operator.frontier(0)
    # In a loop only times that were held when the frontier was asked for: it may have passed those of messages.
    usable = operator.held if operator.is_cyclic else operator.usable
    ready = tuple([time for time in usable if not frontier.beyond(time)])
    if not ready:
        return None
    updates = batcher.seal(frontier)
    return SealedInput(updates, frontier, ready) if len(updates) else None


def hold_pending(operator: Operator, batcher: Batcher) -> None:
    """Hold the times at which a batcher keeps updates."""
    operator.hold(batcher.pending().elements)


def push(batcher: Batcher, payload: Payload) -> None:
    """Give the updates of a message to a batcher, saying when they are sorted already."""
    if isinstance(payload, Updates):
        if len(payload):
            batcher.push(payload, payload.tidy)
    else:
        for batch in payload:
            if len(batch):
                batcher.push(batch.updates, tidy=True)
