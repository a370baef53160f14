"""Changes as users read them: rows of Python values, with time and diff. Decoding costs the rows that are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.columns.count_limits import counts_as_int64
from kpg.columns.schema import Schema
from kpg.columns.selection import take
from kpg.columns.table_rows import decode, decode_rows
from kpg.columns.updates import Updates, spread
from kpg.columns.value_class import value_class

if TYPE_CHECKING:
    from kpg.api.contracts import Database

Change = tuple[tuple[Any, ...], Any, int]  # row, time, diff


@value_class
class Changes:
    """Updates of an answer: iterate over (row, time, diff), or convert them to a table."""

    updates: Updates
    schema: Schema
    db: Database

    def __len__(self) -> int:
        return len(self.updates)

    def __iter__(self) -> Iterator[Change]:
        updates = self.updates
        rows = decode_rows(self.schema, updates.data, self.db.symbols)
        times = spread(updates.times, len(updates)).T.tolist()
        diffs = spread(updates.diffs, len(updates))[0].tolist()
        for row, time, diff in zip(rows, times, diffs, strict=True):
            yield row, time[0] if len(time) == 1 else tuple(time), diff

    def to_arrow(self) -> pa.Table:
        """Return the rows with columns `_time` (the epoch) and `_diff`."""
        n = len(self.updates)
        table = decode(self.schema, self.updates.data, self.db.symbols)
        table = table.append_column("_time", pa.array(spread(self.updates.times, n)[0]))
        diffs = spread(self.updates.diffs, n)[0]
        diffs = counts_as_int64("the answer", self.schema, self.updates.data, diffs, self.db.symbols)
        return table.append_column("_diff", pa.array(diffs))


@dataclass(frozen=True, slots=True)
class EachChange:
    """A function of updates that calls another function with each (row, time, diff)."""

    db: Database
    schema: Schema
    function: Callable[..., Any]

    def __call__(self, updates: Updates) -> None:
        for row, time, diff in Changes(updates, self.schema, self.db):
            self.function(row, time, diff)


def in_time_order(updates: Updates) -> Updates:
    """Return the same updates, earlier times first."""
    if updates.times.shape[1] == 1:
        return updates
    return take(updates, np.lexsort(updates.times[::-1]))
