"""Twins of kpg.kernels.gather_rows and kpg.kernels.sum_diffs.

`gather_rows` is the twin of `copy_histories` and `consolidate_keys` together, `read_as_of` of `copy_rows_as_of` after
consolidation.
"""

from __future__ import annotations

from collections.abc import Sequence

from kpg.algebra.order import Time, join, less_equal
from kpg.testing.kernel_twins.consolidate_rows_twin import consolidate
from kpg.testing.kernel_twins.row_tuples import Row, Update


def gather_rows(
    batches: Sequence[Sequence[Update]], keys: Sequence[Row], floor: Time | None, depth: int
) -> list[list[Update]]:
    """Return the values, times and diffs of each key over all batches, times joined with the floor."""
    histories = []
    for key in keys:
        history = []
        for data, time, diff in (row for batch in batches for row in batch):
            if data[: len(key)] == key:
                extended = time + (0,) * (depth - len(time))
                history.append((data[len(key) :], join(extended, floor) if floor is not None else extended, diff))
        histories.append(consolidate(history))
    return histories


def sum_diffs(batches: Sequence[Sequence[Update]], keys: Sequence[Row], width: int) -> list[Row]:
    """Return the sum of the diffs of each key."""
    return [
        tuple(
            sum(diff[lane] for batch in batches for data, _, diff in batch if data[: len(key)] == key)
            for lane in range(width)
        )
        for key in keys
    ]


def group_offsets(data: Sequence[Row], key_lanes: int) -> list[tuple[Row, int]]:
    """Return each key with the position of its first row."""
    keys = [row[:key_lanes] for row in data]
    return [(key, i) for i, key in enumerate(keys) if i == 0 or keys[i - 1] != key]


def read_as_of(batches: Sequence[Sequence[Update]], at: Time, keys: Sequence[Row] | None) -> list[tuple[Row, Row]]:
    """Return the rows present at a time, with their multiplicity: of some keys, or of all."""
    chosen = [
        (data, (), diff)
        for batch in batches
        for data, time, diff in batch
        if less_equal(time, at) and (keys is None or data[: len(keys[0]) if keys else 0] in keys)
    ]
    return [(data, diff) for data, _, diff in consolidate(chosen)]
