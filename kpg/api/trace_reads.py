"""Reading a trace from outside, as of a time.

    the table as of t  =  the rows whose diffs at times ≤ t add up to something, as often as that says

A time can be read when it is complete and not before the since of the handle. If an expression failed on a row that is
there at that time, the answer has no value: `DataError` names the row and the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.api.times import show_frontier, show_time
from kpg.columns.schema import INT64, Schema
from kpg.columns.table_rows import decode
from kpg.columns.updates import Ints
from kpg.errors import DataError, TimeNotReached, TimeTooEarly
from kpg.trace.key_history import read

if TYPE_CHECKING:
    from kpg.api.database import Database
    from kpg.api.installed_arrangement import InstalledArrangement


def check_readable(db: Database, installed: InstalledArrangement, as_of: Any, since: Frontier | None = None) -> Time:
    """The time to read at: complete, not forgotten (or held since some other time), and without failed rows."""
    db.settle()
    if installed.dataflow.failure is not None:
        raise installed.dataflow.failure
    if as_of is None:
        if db.sealed is None:
            raise TimeNotReached("nothing is complete yet", hint="Call db.advance() first.")
        time = next(element for element in db.sealed if not db.time.beyond(element))
    else:
        time = db.as_time(as_of)
    if installed.when_complete().beyond(time):
        raise TimeNotReached(
            f"{installed.name} is not complete at {show_time(time)} yet",
            detail=f"The clock is at {show_frontier(db.time)}.",
            hint="Call db.advance() first.",
        )
    since = installed.handle.since if since is None else since
    if not since.beyond(time):
        raise TimeTooEarly(
            f"{installed.name} cannot be read as of {show_time(time)} any more",
            detail=f"It is kept since {show_frontier(since)}.",
            hint="Open the db with history= to keep more of the past.",
        )
    if installed.errors is not None:
        check_errors(db, installed.name, installed.errors, time)
    return time


def check_errors(db: Database, name: str, errors: InstalledArrangement, time: Time) -> None:
    """Refuse if some row has failed at this time."""
    batches = errors.handle.batches(None)
    if not batches:
        return
    numbers, counts = read(batches, time, None)
    present = numbers[0][counts[0] != 0]
    if len(present):
        operator, reason, row = db.failures.describe(int(present[0]))
        raise DataError(
            f"{name} has no answer at {show_time(time)}: {reason}",
            detail=f"{len(present)} row(s) failed; one, in {operator}, has the lanes {row}.",
            hint="Remove or correct the row, and the answer comes back.",
        )


def read_rows(installed: InstalledArrangement, schema: Schema, time: Time, keys: Ints | None) -> tuple[Ints, Ints]:
    """Rows and how often each is there, lanes in the order of `schema`."""
    batches = installed.handle.batches(None)
    if not batches:
        return np.empty((len(schema), 0), np.int64), np.empty(0, np.int64)
    data, counts = read(batches, time, keys)
    order = [installed.schema.index(name) for name in schema.names]
    return (data if order == sorted(order) else np.ascontiguousarray(data[order])), counts[0]


def to_table(db: Database, installed: InstalledArrangement, schema: Schema, time: Time, keys: Ints | None) -> pa.Table:
    """Rows as an Arrow table, each as often as it is there."""
    return rows_table(db, installed.name, schema, *read_rows(installed, schema, time, keys))


def rows_table(db: Database, name: str, schema: Schema, data: Ints, counts: Ints) -> pa.Table:
    """Rows and counts as an Arrow table, each row as often as it is there."""
    if (counts == 1).all():
        return decode(schema, np.ascontiguousarray(data), db.symbols)
    if (counts < 0).any():
        row = int(np.argmax(counts < 0))
        raise DataError(
            f"{name} holds a row fewer than zero times",
            detail=f"Its count is {int(counts[row])}.",
            hint="Read it with counts=True, or find what removes rows that are not there.",
        )
    return decode(schema, np.repeat(data, counts, axis=1), db.symbols)


def to_counted_table(db: Database, installed: InstalledArrangement, schema: Schema, time: Time) -> pa.Table:
    """Rows as an Arrow table, each once, with a last column that says how often it is there."""
    return counted_table(db, schema, *read_rows(installed, schema, time, None))


def counted_table(db: Database, schema: Schema, data: Ints, counts: Ints) -> pa.Table:
    """Rows and counts as an Arrow table."""
    name = "count" if "count" not in schema.names else "_count"
    whole = np.concatenate([data, counts.reshape(1, -1)])
    return decode(schema.concat(Schema.of({name: INT64})), whole, db.symbols)
