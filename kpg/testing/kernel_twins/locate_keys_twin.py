"""Twins of kpg.kernels.locate_keys, kpg.kernels.lookup_tables and kpg.kernels.bitmap_lookup."""

from __future__ import annotations

from collections.abc import Sequence

from kpg.testing.kernel_twins.row_tuples import Row


def locate_keys(blocks: Sequence[Sequence[Row]], keys: Sequence[Row]) -> list[list[tuple[int, int]]]:
    """Return, for each sorted block and each key, where the rows that start with the key begin and end."""
    return [
        [
            (
                sum(row[: len(key)] < key for row in block),
                sum(row[: len(key)] <= key for row in block),
            )
            for key in keys
        ]
        for block in blocks
    ]


def fill_intervals(lane: Sequence[int], base: int, shift: int, count: int) -> tuple[list[int], int, int]:
    """Return the first row of each interval, the number of distinct values, and the sum of its squares by interval."""
    lows = [(base + interval) << shift for interval in range(count)]
    starts = [sum(value < low for value in lane) for low in lows]
    distinct = [len(set(lane[start:end])) for start, end in zip(starts, starts[1:], strict=False)]
    return starts, sum(distinct), sum(values * values for values in distinct)
