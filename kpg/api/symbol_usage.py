"""The symbols in use: the others can be freed.

A symbol is in use while it occurs in a row that a trace, an operator, the pending rows or the unread changes hold. Call
this between steps, when no message is in flight. Expressions hold their own constants. The cost is one
pass over all rows with symbols.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from kpg.columns.schema import Schema
from kpg.columns.updates import Ints, Updates

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase

ROWS_PER_PART = 1 << 17  # read at a time, so that temporary arrays stay in the cache


def symbols_in_use(db: EmbeddedDatabase) -> Ints:
    """Return the ids of all symbols that occur in some row, sorted."""
    used = np.zeros(db.symbols.id_bound + 1, np.bool_)  # by id; the last entry stands for null
    for schema, updates in kept_rows(db):
        lanes = [lane for lane in schema.symbolic_lanes() if lane < updates.lanes]
        data = updates.data if lanes else None  # packed updates unpack all lanes at once
        for lane in lanes:
            assert data is not None
            for start in range(0, len(updates), ROWS_PER_PART):
                used[np.maximum(data[lane, start : start + ROWS_PER_PART], -1)] = True
    return np.flatnonzero(used[:-1])


def kept_rows(db: EmbeddedDatabase) -> Iterator[tuple[Schema, Updates]]:
    """Yield all rows that the db holds anywhere, with the columns of their lanes."""
    for dataflow in db.worker.dataflows.values():
        for operator in dataflow.operators:
            yield from operator.kept_rows()
    for name in db.pending:
        for updates in db.pending.of(name):
            yield db.inputs[name].schema, updates
    for holder in (*db.outputs.values(), *db.holders):
        yield from holder.unread()
    if db.durable is not None:
        yield from db.durable.kept_rows()
