"""A rank's shard of an answer or relation, as blocks to send: rows as of a time, their counts as diffs."""

from __future__ import annotations

from typing import Any

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.installed_arrangement import InstalledArrangement
from kpg.api.trace_reads import check_readable, read_rows
from kpg.cluster.message import Rows, symbolic_lanes
from kpg.columns.schema import Schema
from kpg.columns.updates import Ints, Updates, constant
from kpg.errors import TypeMismatch


def rows_of(
    db: EmbeddedDatabase,
    installed: InstalledArrangement,
    schema: Schema,
    as_of: Any,
    keys: Ints | None,
    since: Frontier | None = None,
) -> Rows:
    """The rows of this rank as of a time: those with some keys, or all."""
    if as_of is not None and not isinstance(as_of, (int, list)):
        raise TypeMismatch(f"{as_of!r} is not a time")
    time = check_readable(db, installed, tuple(as_of) if isinstance(as_of, list) else as_of, since)
    data, counts = read_rows(installed, schema, time, keys)
    diffs = np.ascontiguousarray(counts.reshape(1, -1))
    diffs = constant((1,)) if not diffs.size or (diffs == 1).all() else diffs
    return Rows(Updates(np.ascontiguousarray(data), constant(time), diffs), symbolic_lanes(schema))
