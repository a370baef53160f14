"""What messages carry: `Updates` on the stream of a collection, batches on the stream of an arrangement.

A batch is updates that happen to be sorted, so any operator on collections reads the stream of an arrangement too.
"""

from __future__ import annotations

from typing import TypeAlias

from kpg.columns.updates import Updates
from kpg.trace.batch import Batch

Batches: TypeAlias = tuple[Batch, ...]
Payload: TypeAlias = Updates | Batches


def updates_of(payload: Payload) -> list[Updates]:
    """The updates of a message, however they came."""
    if isinstance(payload, Updates):
        return [payload]
    return [batch.updates for batch in payload]
