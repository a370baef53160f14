"""What goes into a service and what comes out of it: changes of rows.

Change("edge", (1, 2), +1)      one row of a relation, to be put there (or, with -1, to be taken away)
Changes                         updates of an answer, up to a time before which nothing more will come
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from kpg.columns.schema import Schema
from kpg.columns.table_rows import decode, decode_rows
from kpg.columns.updates import Ints, Updates, spread

if TYPE_CHECKING:
    from kpg.api.database import Database

Row = tuple[Any, ...]


class Change(NamedTuple):
    """A row of a relation that comes (+1) or goes (-1)."""

    relation: str
    row: Row
    diff: int = 1


@dataclass(frozen=True, slots=True)
class Changes:
    """Some updates of an answer: iterate for (row, time, diff), or take them as tables.

    `upto`: all changes at times before it are here or were taken before.
    """

    updates: Updates
    schema: Schema  # without columns if the answer is only whether something holds
    db: Database
    upto: int

    def __len__(self) -> int:
        return len(self.updates)

    def __iter__(self) -> Iterator[tuple[Row, int, int]]:
        return zip(self.rows(), self.times.tolist(), self.diffs.tolist(), strict=True)

    def rows(self) -> list[Row]:
        """The rows as tuples, in the order of `times` and `diffs`."""
        return decode_rows(self.schema, self.updates.data[: len(self.schema)], self.db.symbols)

    @property
    def times(self) -> Ints:
        """The time of each row."""
        times: Ints = spread(self.updates.times, len(self.updates))[0]
        return times

    @property
    def diffs(self) -> Ints:
        """How often each row comes, or goes if below 0."""
        diffs: Ints = spread(self.updates.diffs, len(self.updates))[0]
        return diffs

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table."""
        return decode(self.schema, np.ascontiguousarray(self.updates.data[: len(self.schema)]), self.db.symbols)

    def to_arrow(self) -> pa.Table:
        """The rows with columns `_time` and `_diff`."""
        n = len(self.updates)
        table = self.table if len(self.schema) else pa.table({})
        ends = {"_time": pa.array(self.times), "_diff": pa.array(self.diffs)}
        assert all(len(column) == n for column in ends.values())
        return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **ends})
