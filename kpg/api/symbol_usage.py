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


def symbols_in_use(db: EmbeddedDatabase) -> Ints:
    """Return the ids of all symbols that occur in some row, sorted."""
    symbols: set[int] = set()
    for schema, updates in kept_rows(db):
        for lane in schema.symbolic_lanes():
            if lane < updates.lanes:
                symbols.update(np.unique(updates.data[lane]).tolist())
    return np.array(sorted(symbols), np.int64)


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
