"""The functor `range`: repeat each row of a table for each value of its range, or ask whether a value is in a range.

A range goes from its first bound towards its second, which it does not reach. Without a step, it steps by 1 up or, for
numbers with a sign, down. As in Soufflé, a step of the wrong sign gives nothing, and a step of 0 gives the first bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from kpg.columns.memory_budget import reserve
from kpg.errors import ResourceError

TEMPORARY_COLUMNS = 4  # int64 columns that hold a value of each range while ranges are expanded
MAX_RANGE_VALUES = 50_000_000  # of one batch: their int64 take 400 MB


Function = Callable[[pa.Table], tuple[Any, pa.Table]]


def over_ranges(kept: tuple[str, ...], bounds: tuple[str, ...], name: str) -> Function:
    """Return a function for `flat_map`: keep the columns `kept`, add `name` from the first bound to the second."""

    def values(table: pa.Table) -> tuple[Any, pa.Table]:
        start, end, *step = [table.column(bound).to_numpy() for bound in bounds]
        steps = step[0] if step else default_steps(start, end)
        lengths = lengths_of(start, end, steps)
        if not lengths.sum(dtype=np.float64) <= MAX_RANGE_VALUES:
            hint = "Narrow the bounds, or take larger steps."
            raise ResourceError(f"a range of more than {MAX_RANGE_VALUES:,} values", hint=hint)
        counts = lengths.astype(np.int64)
        reserve(int(counts.sum()) * 8 * (len(kept) + TEMPORARY_COLUMNS))
        positions = np.repeat(np.arange(len(counts)), counts)
        ordinal = np.arange(len(positions)) - np.repeat(np.cumsum(counts) - counts, counts)
        generated = start[positions] + ordinal.astype(start.dtype) * steps[positions]
        columns = {column: table.column(column).take(positions) for column in kept}
        return positions, pa.table({**columns, name: generated})

    return values


def default_steps(start: Any, end: Any) -> Any:
    """Return the steps of ranges without one."""
    if start.dtype == np.uint64:
        return np.ones(len(start), np.uint64)
    return np.where(start <= end, 1, -1).astype(start.dtype)


def lengths_of(start: Any, end: Any, steps: Any) -> Any:
    """Return the number of values of each range: of integers exactly."""
    up, down = (steps > 0) & (start < end), (steps < 0) & (end < start)
    single = ((steps == 0) & (start != end)).astype(np.uint64)
    with np.errstate(all="ignore"):
        if start.dtype == np.float64:
            counts = np.ceil((end - start) / np.where(steps == 0, 1.0, steps))
            return np.where(up | down, counts, single)
        first, last, step = (array.astype(np.uint64) for array in (start, end, steps))  # differences modulo 2**64
        span = np.where(up, last - first, first - last)
        size = np.where(steps < 0, np.uint64(0) - step, step)
        counts = (span - np.uint64(1)) // np.maximum(size, np.uint64(1)) + np.uint64(1)
    return np.where(up | down, counts, single)


def in_ranges(value: Any, start: Any, end: Any, *step: Any) -> Any:
    """Return whether each value is in its range."""
    steps = step[0] if step else default_steps(start, end)
    counts = lengths_of(start, end, steps)
    with np.errstate(all="ignore"):
        if start.dtype == np.float64:
            ordinal = np.round((value - start) / np.where(steps == 0, 1.0, steps))
            return (start + ordinal * steps == value) & (ordinal >= 0) & (ordinal < counts)
        between = np.where(start < end, (start <= value) & (value < end), (end < value) & (value <= start))
        first, at, step_bits = (array.astype(np.uint64) for array in (start, value, steps))
        distance = np.where(steps < 0, first - at, at - first)
        size = np.maximum(np.where(steps < 0, np.uint64(0) - step_bits, step_bits), np.uint64(1))
    return np.where(steps == 0, (value == start) & (counts > 0), between & (distance % size == 0) & (counts > 0))
