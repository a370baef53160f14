"""The payload of messages: `Updates` on the stream of a collection, batches on the stream of an arrangement.

A batch contains `Updates`, so an operator on collections can also read the stream of an arrangement.
"""

from __future__ import annotations

from typing import TypeAlias

from kpg.columns.updates import Updates
from kpg.trace.batch import Batch

Batches: TypeAlias = tuple[Batch, ...]
Payload: TypeAlias = Updates | Batches


def updates_of(payload: Payload) -> list[Updates]:
    """Return the updates of a payload of either kind."""
    if isinstance(payload, Updates):
        return [payload]
    return [batch.updates for batch in payload]
