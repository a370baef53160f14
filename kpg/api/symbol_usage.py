"""Which symbols are in use: what is needed to let go of the others.

A symbol is in use while some row that a trace, an operator, an input or an unread change keeps has it. Called between
steps, when no message is on its way; expressions hold their own constants.
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
    """The ids of all symbols that some kept row has."""
    found: set[int] = set()
    for schema, updates in kept_rows(db):
        for lane in range(updates.lanes):
            if schema.types[lane].is_symbolic:
                found.update(np.unique(updates.data[lane]).tolist())
    return np.array(sorted(found), np.int64)


def kept_rows(db: EmbeddedDatabase) -> Iterator[tuple[Schema, Updates]]:
    """All rows that are kept anywhere, with the meaning of their lanes."""
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
