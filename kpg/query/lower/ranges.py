"""`range` as a function from tables to tables: each row as often as its range has values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from kpg.errors import ResourceError

MOST = 50_000_000  # values made by one call


Function = Callable[[pa.Table], tuple[Any, pa.Table]]


def over_ranges(kept: tuple[str, ...], bounds: tuple[str, ...], name: str) -> Function:
    """A function for `flat_map`: the kept columns, and `name` from the first bound up to the second."""

    def values(table: pa.Table) -> tuple[Any, pa.Table]:
        start, end, *step = [table.column(bound).to_numpy() for bound in bounds]
        steps = step[0] if step else np.where(start <= end, 1, -1).astype(start.dtype)
        with np.errstate(all="ignore"):
            lengths = np.where(steps == 0, 0, np.ceil((end - start) / np.where(steps == 0, 1, steps)))
        lengths = np.maximum(lengths, 0)
        if not lengths.sum() <= MOST:
            raise ResourceError(f"a range of more than {MOST:,} values")
        counts = lengths.astype(np.int64)
        positions = np.repeat(np.arange(len(counts)), counts)
        ordinal = np.arange(len(positions)) - np.repeat(np.cumsum(counts) - counts, counts)
        made = (start[positions] + ordinal * steps[positions]).astype(start.dtype)
        columns = {column: table.column(column).take(positions) for column in kept}
        return positions, pa.table({**columns, name: made})

    return values
