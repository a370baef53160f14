"""Decoded changes of one subscription, ready to send. Thread-safe: holds only an Arrow table and integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from kpg.columns.consolidation import consolidate
from kpg.columns.pause_points import aside
from kpg.columns.rows import rows_of
from kpg.columns.updates import Ints, Updates, constant
from kpg.errors import Closed, DataError, KpgError, Stopped
from kpg.protocol.error_messages import failure_of
from kpg.protocol.parts import ColumnSpec
from kpg.protocol.replies import ChangesMessage, RowsReply
from kpg.protocol.table_messages import slices
from kpg.protocol.value_codec import EXACT
from kpg.service import AnswerChanges, Interest

MAX_REQUESTS_PER_POLL: Final = (
    16  # requests processed before pending changes are sent, so that subscribers do not starve
)
EMPTY_TABLE: Final = pa.table({})


@dataclass(frozen=True, slots=True)
class ChangePayload:
    """The changes taken from one interest, or the error of its answer."""

    owner: int  # the session that holds the interest
    interest: int
    upto: int
    table: pa.Table
    times: Sequence[int] | Ints = ()  # arrays, if there are rows: messages hold a part of them as numbers
    diffs: Sequence[int] | Ints = ()
    failed: KpgError | None = None

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return int(self.table.nbytes) + 16 * len(self.times)

    def messages(self, max_rows: int, step: int, reset: bool = False) -> Iterator[ChangesMessage]:
        """Yield the messages of this step, of at most `max_rows` rows, all but the last with `more`."""
        if self.failed is not None:
            yield ChangesMessage(
                self.interest, self.upto, (), (), (), failed=failure_of(self.failed), step=step, reset=reset
            )
            return
        start = 0
        for page, more in slices(self.table, max_rows):
            end = start + page.num_rows
            times, diffs = numbers(self.times[start:end]), numbers(self.diffs[start:end])
            rows = tuple(rows_of(page))
            yield ChangesMessage(self.interest, self.upto, rows, times, diffs, more, step=step, reset=reset)
            start = end


def take_payload(interest: Interest, wait: bool = True) -> ChangePayload:
    """Take the unread changes of an interest; the error of a failed answer becomes the payload.

    In a request, others run between two parts of large changes. If the request is ended meanwhile, the payload has its
    error, and the changes are unread again.
    """
    changes = None
    try:
        changes = interest.take(wait)
        with changes.db.in_turns():
            summed = consolidate_if_behind(changes)
            times, diffs = summed.times, summed.diffs
            check_counts(interest, summed.updates.diffs[0])
            table = summed.table if len(summed.schema) else EMPTY_TABLE
    except Exception as error:  # a bug too: this client gets an error, and the engine continues
        if isinstance(error, (Closed, Stopped)) and changes is not None:
            interest.put_back(changes)
        failed = error if isinstance(error, KpgError) else KpgError(f"the server failed ({type(error).__name__})")
        return ChangePayload(int(interest.owner), interest.id, interest.upto, EMPTY_TABLE, failed=failed)
    return ChangePayload(int(interest.owner), interest.id, changes.upto, table, times, diffs)


def numbers(values: Sequence[int] | Ints) -> tuple[int, ...]:
    """Return some times or diffs as a message holds them."""
    return tuple(values.tolist() if isinstance(values, np.ndarray) else values)


def check_counts(interest: Interest, diffs: Ints) -> None:
    """Raise if a message cannot hold a diff; the client misses it, so the interest fails from now on."""
    if len(diffs) and (int(diffs.max()) > EXACT or int(diffs.min()) < -EXACT):
        largest = max(int(diffs.max()), int(diffs.min()), key=abs)
        error = DataError(
            f"a row of {interest.name} was added or removed too many times",
            detail=f"Messages hold counts up to {EXACT}; this one is {largest}.",
            hint="Take distinct rows in the query, or count them there.",
        )
        interest.refuse(error)
        raise error


def consolidate_if_behind(changes: AnswerChanges) -> AnswerChanges:
    """Consolidate changes at their last time if they span more times than one poll can produce.

    A subscriber that keeps up receives at most `MAX_REQUESTS_PER_POLL` times in one payload, each of them separately.
    """
    if changes.updates.times.shape[1] == 1:  # all at one time
        return changes
    times = changes.times
    if len(times) == 0 or len(aside(len(times), np.unique, times)) <= MAX_REQUESTS_PER_POLL:
        return changes
    updates = changes.updates
    at_last_time = Updates(updates.data, constant((int(times.max()),)), updates.diffs)
    return replace(changes, updates=aside(at_last_time.data.size, consolidate, at_last_time))


@dataclass(frozen=True, slots=True)
class QueryRows:
    """The rows of a query, before they are split into messages."""

    table: pa.Table
    time: int
    cut: bool  # whether there are more rows than the limit
    tag: str | None = None  # of an SQL statement
    in_transaction: bool = False  # whether SQL has left a transaction open


def row_messages(request: int, rows: QueryRows, columns: tuple[ColumnSpec, ...], max_rows: int) -> Iterator[RowsReply]:
    """Yield the replies to a query: messages of at most `max_rows` rows, all but the last with `more`."""
    for page, more in slices(rows.table, max_rows):
        page_rows = tuple(rows_of(page))
        yield RowsReply(request, columns, page_rows, rows.time, more, rows.cut, rows.tag, rows.in_transaction)
