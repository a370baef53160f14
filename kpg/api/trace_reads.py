"""Read a trace from outside its dataflow, as of a time.

    the table as of t  =  each row as often as its diffs at times ≤ t add up to

A time can be read when it is complete and not before the since of the handle. If an expression fails on a row that is
present at that time, the answer has no value: `DataError` names the row and the reason. Reading all rows costs one
merge of the trace's batches; reading some keys costs a search of each batch, and their rows; reading the first n rows
costs n rows of each batch, and the count of all rows (kpg.trace.read_parts).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.api.times import show_frontier, show_time
from kpg.columns.count_limits import counts_as_int64, first_copies, repeat_rows
from kpg.columns.schema import INT64, Schema
from kpg.columns.table_rows import decode, decode_rows
from kpg.columns.updates import Ints
from kpg.errors import DataError, TimeNotReached, TimeTooEarly
from kpg.operators.error_rows import ErrorRows
from kpg.trace.key_history import read
from kpg.trace.read_parts import PartReader, count_rows

if TYPE_CHECKING:
    from kpg.api.contracts import Database
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.installed_arrangement import InstalledArrangement

MAX_DESCRIBED_ERRORS = 1000  # errors compared to choose the one that a message shows; bounds the cost of a failing read


def check_readable(
    db: EmbeddedDatabase,
    installed: InstalledArrangement,
    as_of: Any,
    since: Frontier | None = None,
    failing: bool = False,
) -> Time:
    """Return the time to read at; raise if it is not complete, compacted away, or has failed rows.

    `since` replaces the since of the arrangement, for a reader that holds an earlier one. If `failing`, the rows are
    read although some have failed.
    """
    time = _time_to_read(db, installed, as_of)
    if installed.dataflow.failure is not None:
        raise installed.dataflow.failure.with_traceback(None)  # it is raised again and again
    if not _is_sealed(db, time) and installed.frontier().beyond(time):
        raise TimeNotReached(
            f"{installed.name} is not complete at {show_time(time)} yet",
            detail=f"The clock is at {show_frontier(db.time)}.",
            hint="Call db.advance() first.",
        )
    since = installed.handle.since if since is None else since
    if not since.beyond(time):
        raise TimeTooEarly(
            f"{installed.name} cannot be read as of {show_time(time)} any more",
            detail=f"Its history begins at {show_frontier(since)}.",
            hint="Open the db with history= to keep more of the past.",
        )
    if installed.errors is not None and not failing:
        check_errors(db, installed.name, installed.errors, time)
    return time


def _time_to_read(db: EmbeddedDatabase, installed: InstalledArrangement, as_of: Any) -> Time:
    """Return the time to read at: `as_of`, or else the newest that the arrangement has completed; wait for it."""
    time = None if as_of is None else db.as_time(as_of)
    completion, dataflow = db.completion, installed.dataflow
    if completion.lags and db.config.coordinates == 1 and db.epoch > 0:
        if time is None:
            return (completion.newest(dataflow),)
        if time[0] < db.epoch:
            completion.wait_for(dataflow, time[0])
        return time
    db.settle()
    if dataflow.failure is None and time is None and db.sealed is None:
        raise TimeNotReached("nothing is complete yet", hint="Call db.advance() first.")
    if time is not None or db.sealed is None:
        return time or (0,) * db.config.coordinates
    return next(element for element in db.sealed if not db.time.beyond(element))


def _is_sealed(db: EmbeddedDatabase, time: Time) -> bool:
    """Return whether all dataflows were complete at a time, so that no frontier need be computed."""
    sealed = db.sealed
    if sealed is None or not db.is_single_worker or db.completion.lags or len(time) > 1:
        return False
    return time <= sealed.elements[0] and not db.time.beyond(time)


def check_errors(db: EmbeddedDatabase, name: str, errors: InstalledArrangement, time: Time) -> None:
    """Raise if some row has failed at this time."""
    batches = errors.handle.batches(None)
    if not batches:
        return
    numbers, counts = read(batches, time, None)
    present = numbers[0][counts[0] != 0]
    if len(present):
        shown = name.partition(" #")[0]  # a number behind the name distinguishes the dataflows of one query
        raise failed_answer(f"{shown} has no answer at {show_time(time)}", db.failures, present)


def failed_answer(what: str, failures: ErrorRows, present: Ints) -> DataError:
    """Return the error for an answer that some rows fail: the message shows the first of them, in order of its text."""
    first = min(
        failures.describe(present[:MAX_DESCRIBED_ERRORS]), key=lambda error: (error.at, error.reason, error.row)
    )
    position = f"{first.at}: " if first.at else ""
    row = f"It fails for {first.row}." if first.row else ""
    more = f"{len(present):,} rows fail." if len(present) > 1 else ""
    return DataError(
        f"{what}: {position}{first.reason}",
        detail="\n".join(filter(None, [first.excerpt, " ".join(filter(None, [row, more]))])) or None,
        hint="Remove or correct the row; then the answer has a value again."
        if not first.at
        else "Correct the row, or exclude it by another literal of the rule; then the answer has a value again.",
    )


def read_rows(installed: InstalledArrangement, schema: Schema, time: Time, keys: Ints | None) -> tuple[Ints, Ints]:
    """Return the rows and their counts, lanes in the order of `schema`."""
    batches = installed.handle.batches(None)
    if not batches:
        return np.empty((schema.width, 0), np.int64), np.empty(0, np.int64)
    data, counts = read(batches, time, keys)
    order = list(installed.schema.lanes_of(schema.names))
    return (data if order == sorted(order) else np.ascontiguousarray(data[order])), counts[0]


def read_first_rows(installed: InstalledArrangement, schema: Schema, time: Time, size: int) -> tuple[Ints, Ints, int]:
    """Return the first `size` rows that `read_rows` returns, their counts, and the sum of the counts of all rows."""
    batches = installed.handle.batches(None)
    if not batches or size <= 0:
        return np.empty((schema.width, 0), np.int64), np.empty(0, np.int64), count_rows(batches, time)
    data, counts = PartReader(batches, time).next_rows(size)
    data, order = data[:, :size], list(installed.schema.lanes_of(schema.names))
    first = np.ascontiguousarray(data if order == sorted(order) else data[order])
    return first, counts[0, :size], count_rows(batches, time)


def to_table(
    db: EmbeddedDatabase, installed: InstalledArrangement, schema: Schema, time: Time, keys: Ints | None
) -> pa.Table:
    """Return the rows as an Arrow table, each repeated by its count."""
    return rows_table(db, installed.name, schema, *read_rows(installed, schema, time, keys))


def to_tuples(
    db: EmbeddedDatabase, installed: InstalledArrangement, schema: Schema, time: Time, keys: Ints | None
) -> list[tuple[Any, ...]]:
    """Return the rows as tuples, each repeated by its count."""
    data, counts = read_rows(installed, schema, time, keys)
    repeated = data if (counts == 1).all() else repeat_rows(installed.name, data, counts)
    return decode_rows(schema, repeated, db.symbols)


def rows_table(db: Database, name: str, schema: Schema, data: Ints, counts: Ints) -> pa.Table:
    """Decode rows and counts to an Arrow table, each row repeated by its count."""
    if (counts == 1).all():
        return decode(schema, np.ascontiguousarray(data), db.symbols)
    return decode(schema, repeat_rows(name, data, counts), db.symbols)


def first_rows_table(db: Database, name: str, schema: Schema, data: Ints, counts: Ints, size: int) -> pa.Table:
    """Decode the first `size` rows of a table, each repeated by its count."""
    return rows_table(db, name, schema, *first_copies(data, counts, size)).slice(0, size)


def to_counted_table(db: EmbeddedDatabase, installed: InstalledArrangement, schema: Schema, time: Time) -> pa.Table:
    """Return the rows as an Arrow table, each once, with its count in the last column."""
    return counted_table(db, installed.name, schema, *read_rows(installed, schema, time, None))


def counted_table(db: Database, name: str, schema: Schema, data: Ints, counts: Ints) -> pa.Table:
    """Decode rows and counts to an Arrow table, each row once, with its count in the last column."""
    counts = counts_as_int64(name, schema, data, counts, db.symbols)
    column = "count" if "count" not in schema.names else "_count"
    whole = np.concatenate([data, counts.reshape(1, -1)])
    return decode(schema.concat(Schema.of({column: INT64})), whole, db.symbols)
