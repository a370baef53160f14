"""The functor `range` on tables: repeat each row for each value of its range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from kpg.errors import ResourceError

MAX_RANGE_VALUES = 50_000_000  # of one batch: their int64 take 400 MB


Function = Callable[[pa.Table], tuple[Any, pa.Table]]


def over_ranges(kept: tuple[str, ...], bounds: tuple[str, ...], name: str) -> Function:
    """Return a function for `flat_map`: keep the columns `kept`, add `name` from the first bound to the second."""

    def values(table: pa.Table) -> tuple[Any, pa.Table]:
        start, end, *step = [table.column(bound).to_numpy() for bound in bounds]
        steps = step[0] if step else np.where(start <= end, 1, -1).astype(start.dtype)
        with np.errstate(all="ignore"):
            lengths = np.where(steps == 0, 0, np.ceil((end - start) / np.where(steps == 0, 1, steps)))
        lengths = np.maximum(lengths, 0)
        if not lengths.sum() <= MAX_RANGE_VALUES:
            hint = "Narrow the bounds, or take larger steps."
            raise ResourceError(f"a range of more than {MAX_RANGE_VALUES:,} values", hint=hint)
        counts = lengths.astype(np.int64)
        positions = np.repeat(np.arange(len(counts)), counts)
        ordinal = np.arange(len(positions)) - np.repeat(np.cumsum(counts) - counts, counts)
        generated = (start[positions] + ordinal * steps[positions]).astype(start.dtype)
        columns = {column: table.column(column).take(positions) for column in kept}
        return positions, pa.table({**columns, name: generated})

    return values
