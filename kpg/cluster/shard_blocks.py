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


def shard_block(
    db: EmbeddedDatabase,
    installed: InstalledArrangement,
    schema: Schema,
    as_of: Time | int | None,
    keys: Ints | None,
    since: Frontier | None = None,
) -> RowBlock:
    """Return this rank's rows as of a time: those with some keys, or all."""
    time = check_readable(db, installed, as_of, since)
    return _block(schema, time, *read_rows(installed, schema, time, keys))


def first_rows_block(
    db: EmbeddedDatabase, installed: InstalledArrangement, schema: Schema, as_of: Time | int | None, size: int
) -> tuple[RowBlock, int]:
    """Return the first `size` of this rank's rows as of a time, and the number of all."""
    time = check_readable(db, installed, as_of)
    data, counts, total = read_first_rows(installed, schema, time, size)
    return _block(schema, time, data, counts), total


def _block(schema: Schema, time: Time, data: Ints, counts: Ints) -> RowBlock:
    diffs = np.ascontiguousarray(counts.reshape(1, -1))
    diffs = constant((1,)) if not diffs.size or (diffs == 1).all() else diffs
    return RowBlock(Updates(np.ascontiguousarray(data), constant(time), diffs), symbolic_lanes(schema))
