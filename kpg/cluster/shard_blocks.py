"""A rank's shard of an output or relation as a block to send: rows as of a time, their counts as diffs."""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.installed_arrangement import InstalledArrangement
from kpg.api.trace_reads import check_readable, read_first_rows, read_rows
from kpg.cluster.request_frames import RowBlock, symbolic_lanes
from kpg.columns.schema import Schema
from kpg.columns.updates import Ints, Updates, constant
from kpg.trace.read_parts import KeyReader, PartReader, count_rows


def shard_block(
    db: EmbeddedDatabase,
    installed: InstalledArrangement,
    schema: Schema,
    as_of: Time | int | None,
    keys: Ints | None,
    since: Frontier | None = None,
    failing: bool = False,
) -> RowBlock:
    """Return this rank's rows as of a time: those with some keys, or all. If `failing`, also if some have failed."""
    time = check_readable(db, installed, as_of, since, failing)
    return _block(schema, time, *read_rows(installed, schema, time, keys))


def first_rows_block(
    db: EmbeddedDatabase,
    installed: InstalledArrangement,
    schema: Schema,
    as_of: Time | int | None,
    size: int,
    failing: bool = False,
) -> tuple[RowBlock, int]:
    """Return the first `size` of this rank's rows as of a time, and the number of all."""
    time = check_readable(db, installed, as_of, failing=failing)
    data, counts, total = read_first_rows(installed, schema, time, size)
    return _block(schema, time, data, counts), total


class ShardRead:
    """A read of this rank's rows as of a time, in parts: all, or those with some keys.

    It holds the batches, so that changes do not affect it.
    """

    def __init__(
        self,
        db: EmbeddedDatabase,
        installed: InstalledArrangement,
        schema: Schema,
        as_of: Time | int | None,
        failing: bool = False,
        keys: Ints | None = None,
    ) -> None:
        self._schema = schema
        self._time = check_readable(db, installed, as_of, failing=failing)
        self._lanes = list(installed.schema.lanes_of(schema.names))
        batches = installed.handle.batches(None)
        self._reader = PartReader(batches, self._time) if keys is None else KeyReader(batches, self._time, keys)
        self._batches = batches

    @property
    def total(self) -> int:
        """The number of all rows of the shard."""
        return count_rows(self._batches, self._time)

    @property
    def is_done(self) -> bool:
        """Whether all rows have been read."""
        return self._reader.is_done

    def next_block(self, size: int) -> RowBlock:
        """Return the next rows, at least `size` of them if there are as many."""
        if self.is_done:
            return _block(self._schema, self._time, np.empty((self._schema.width, 0), np.int64), np.empty(0, np.int64))
        data, counts = self._reader.next_rows(size)
        return _block(self._schema, self._time, data[self._lanes], counts[0])


def _block(schema: Schema, time: Time, data: Ints, counts: Ints) -> RowBlock:
    diffs = np.ascontiguousarray(counts.reshape(1, -1))
    diffs = constant((1,)) if not diffs.size or (diffs == 1).all() else diffs
    return RowBlock(Updates(np.ascontiguousarray(data), constant(time), diffs), symbolic_lanes(schema))
