"""Batches as rows of integers: addresses and sizes of their arrays, for kernels that read a whole trace in one call.

The rows contain raw addresses, so a table is valid only while its batches are alive. Callers keep them alive over the
call of a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpg.columns.exact_diffs import is_exact
from kpg.columns.updates import Ints, Updates
from kpg.kernels.array_address import FIELDS
from kpg.kernels.batch_addresses import batch_addresses
from kpg.trace.lookup_table import NO_TABLE, LookupTable

BatchRow = tuple[int, ...]  # the fields of kpg.kernels.array_address


def describe_batch(updates: Updates, lookup_table: LookupTable = NO_TABLE) -> BatchRow:
    """Return the addresses and sizes of the arrays of some updates and of their lookup table."""
    data, times, diffs = updates.data, updates.times, updates.diffs
    for block in (data, times, diffs):
        assert block.flags.c_contiguous, "kernels read contiguous rows"
    if is_exact(diffs):  # readers of exact diffs read a copy with digits, and only search in this batch
        at_data, at_times, at_diffs = address(data), address(times), address(diffs)
    else:
        at_data, at_times, at_diffs = batch_addresses(data, times, diffs)
    depth, time_rows = times.shape
    entries = len(lookup_table.array)
    return (
        at_data, data.shape[1], at_times, time_rows, at_diffs, diffs.shape[1], depth,
        address(lookup_table.array) if entries else 0, entries, lookup_table.base, lookup_table.shift,
    )  # fmt: skip


def address(array: Ints) -> int:
    """Return the address of an array's first element."""
    return int(array.__array_interface__["data"][0])


def table_of(rows: Sequence[BatchRow]) -> Ints:
    """Return the table of some batches: int64[batches, FIELDS]."""
    return np.array(rows, np.int64).reshape(len(rows), FIELDS)
