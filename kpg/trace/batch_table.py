"""Batches as numbers: where their arrays lie, for kernels that read a whole trace in one call.

A table is valid as long as the batches it was made of are kept; callers hold them over the call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpg.columns.updates import Ints, Updates
from kpg.kernels.array_address import FIELDS
from kpg.kernels.batch_addresses import batch_addresses
from kpg.trace.lookup_table import NONE, LookupTable

Row = tuple[int, ...]


def describe(updates: Updates, signposts: LookupTable = NONE) -> Row:
    """The addresses and sizes of the arrays of some updates, and of their signposts."""
    data, times, diffs = updates.data, updates.times, updates.diffs
    for each in (data, times, diffs):
        assert each.flags.c_contiguous, "kernels read arrays row after row"
    at_data, at_times, at_diffs = batch_addresses(data, times, diffs)
    depth, time_rows = times.shape
    signs = len(signposts.at)
    return (
        at_data, data.shape[1], at_times, time_rows, at_diffs, diffs.shape[1], depth,
        address(signposts.at) if signs else 0, signs, signposts.base, signposts.shift,
    )  # fmt: skip


def address(array: Ints) -> int:
    """Where an array begins."""
    return int(array.__array_interface__["data"][0])


def table_of(rows: Sequence[Row]) -> Ints:
    """Some batches as int64[batches, FIELDS]."""
    return np.array(rows, np.int64).reshape(len(rows), FIELDS)
