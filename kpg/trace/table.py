"""Batches as numbers: where their arrays lie, for kernels that read a whole trace in one call.

A table is valid as long as the batches it was made of are kept; callers hold them over the call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpg.columns.updates import Ints, Updates
from kpg.kernels.address import FIELDS
from kpg.kernels.locate import FENCE_SPACING

Row = tuple[int, ...]


NO_FENCES = np.empty(0, np.int64)
FENCED_ROWS = 1 << 16  # a batch with fewer rows is searched well enough without fences


def fences_of(updates: Updates) -> Ints:
    """The first lane of every 64th row: a copy small enough to stay in cache, that tells where to look in the rest."""
    if updates.data.shape[0] == 0 or updates.data.shape[1] < FENCED_ROWS:
        return NO_FENCES
    return np.ascontiguousarray(updates.data[0, ::FENCE_SPACING])


def describe(updates: Updates, fences: Ints = NO_FENCES) -> Row:
    """The addresses and sizes of the arrays of some updates, and of the fences among their keys."""
    return (
        address(updates.data),
        updates.data.shape[1],
        address(updates.times),
        updates.times.shape[1],
        address(updates.diffs),
        updates.diffs.shape[1],
        updates.times.shape[0],
        address(fences),
        fences.shape[0],
    )


def address(array: Ints) -> int:
    """Where an array begins."""
    assert array.flags.c_contiguous, "kernels read arrays row after row"
    return int(array.__array_interface__["data"][0])


def table_of(rows: Sequence[Row]) -> Ints:
    """Some batches as int64[batches, FIELDS]."""
    return np.array(rows, np.int64).reshape(len(rows), FIELDS)
