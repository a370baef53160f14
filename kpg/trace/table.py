"""Batches as numbers: where their arrays lie, for kernels that read a whole trace in one call.

A table is valid as long as the batches it was made of are kept; callers hold them over the call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpg.columns.updates import Ints, Updates
from kpg.kernels.address import FIELDS
from kpg.trace.signposts import NONE, Signposts

Row = tuple[int, ...]


def describe(updates: Updates, signposts: Signposts = NONE) -> Row:
    """The addresses and sizes of the arrays of some updates, and of their signposts."""
    return (
        address(updates.data),
        updates.data.shape[1],
        address(updates.times),
        updates.times.shape[1],
        address(updates.diffs),
        updates.diffs.shape[1],
        updates.times.shape[0],
        address(signposts.at),
        signposts.at.shape[0],
        signposts.base,
        signposts.shift,
    )


def address(array: Ints) -> int:
    """Where an array begins."""
    assert array.flags.c_contiguous, "kernels read arrays row after row"
    return int(array.__array_interface__["data"][0])


def table_of(rows: Sequence[Row]) -> Ints:
    """Some batches as int64[batches, FIELDS]."""
    return np.array(rows, np.int64).reshape(len(rows), FIELDS)
