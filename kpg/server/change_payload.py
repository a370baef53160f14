"""Changes of an answer, decoded and ready to travel: Arrow and numbers, of which any thread may make messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from kpg.columns.consolidation import consolidate
from kpg.columns.rows import rows_of
from kpg.columns.updates import Updates, constant
from kpg.errors import KpgError
from kpg.protocol.error_messages import failure_of
from kpg.protocol.parts import ColumnSpec
from kpg.protocol.replies import ChangesMessage, RowsReply
from kpg.protocol.table_messages import slices
from kpg.service import AnswerChanges, Interest

BURST: Final = 16  # pieces of work between two looks at who has changes; so whoever keeps up sees at most so many times


@dataclass(frozen=True, slots=True)
class ChangePayload:
    """What was taken from one interest."""

    owner: int
    interest: int
    upto: int
    table: pa.Table
    times: tuple[int, ...] = ()
    diffs: tuple[int, ...] = ()
    failed: KpgError | None = None

    def messages(self, rows: int) -> Iterator[ChangesMessage]:
        """Messages of at most so many rows, all but the last with `more`."""
        if self.failed is not None:
            yield ChangesMessage(self.interest, self.upto, (), (), (), failed=failure_of(self.failed))
            return
        start = 0
        for piece, more in slices(self.table, rows):
            end = start + piece.num_rows
            times, diffs = self.times[start:end], self.diffs[start:end]
            yield ChangesMessage(self.interest, self.upto, tuple(rows_of(piece)), times, diffs, more)
            start = end


NOTHING = pa.table({})


def take(interest: Interest) -> ChangePayload:
    """What waits of an interest, taken; an answer that failed is a parcel that says so."""
    try:
        changes = summed(interest.take())
        times, diffs = tuple(changes.times.tolist()), tuple(changes.diffs.tolist())
        table = changes.table if len(changes.schema) else NOTHING
    except Exception as error:  # also a bug of ours: this client is told, and the engine goes on
        failed = error if isinstance(error, KpgError) else KpgError(f"the server failed ({type(error).__name__})")
        return ChangePayload(int(interest.owner), interest.id, interest.upto, NOTHING, failed=failed)
    return ChangePayload(int(interest.owner), interest.id, changes.upto, table, times, diffs)


def summed(changes: AnswerChanges) -> AnswerChanges:
    """The same changes; if their reader was left behind, summed up at the time of the last."""
    times = changes.times
    if len(times) == 0 or len(np.unique(times)) <= BURST:
        return changes
    updates = changes.updates
    last = Updates(updates.data, constant((int(times.max()),)), updates.diffs)
    return replace(changes, updates=consolidate(last))


def pages(
    request: int, table: pa.Table, columns: tuple[ColumnSpec, ...], time: int | None, rows: int, cut: bool
) -> Iterator[RowsReply]:
    """The messages that an answer to a query is."""
    for piece, more in slices(table, rows):
        yield RowsReply(request, columns, tuple(rows_of(piece)), time, more, cut)
