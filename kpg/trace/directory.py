"""A directory of a batch: where the rows of each few values of its first lane begin.

A search for a key is a look at the directory and a short search from there, which is worth an array of about a fifth
of the batch's rows once the batch was asked for keys often enough; batches live long where traces are large. Values
that lie close together are told exactly, others by intervals of 2^shift values. Cost to make: one pass over the lane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.columns.updates import Ints, Updates
from kpg.kernels.find import offsets_of
from kpg.trace.table import Row, address, table_of

LEAST = 4096  # a batch with fewer rows is searched well enough without
ROWS_A_PLACE = 4  # about
WORTH = 32  # a directory is made when a batch was asked for a key for each so many of its rows


@dataclass(frozen=True, slots=True)
class Directory:
    """Where the rows with a first lane of at least low + p * 2^shift begin, for each place p; then where all end."""

    offsets: Ints
    row: tuple[int, int, int, int]  # as kernels read it: see kpg.kernels.find


NONE = Directory(np.empty(0, np.int64), (0, 0, 0, 0))


def directory_of(updates: Updates, row: Row) -> Directory:
    """Make the directory of a batch that holds something, if it can have one; `row` says where its arrays lie."""
    lane = updates.data[0]
    low, span = int(lane[0]), int(lane[-1]) - int(lane[0])
    if span >= 1 << 63:
        return NONE  # too far apart to be subtracted
    shift = 0
    while span >> shift >= max(ROWS_A_PLACE, len(lane) // ROWS_A_PLACE):
        shift += 1
    offsets = np.empty((span >> shift) + 2, np.int64)
    offsets_of(table_of([row]), 0, low, shift, offsets)
    return Directory(offsets, (address(offsets), low, low + span, shift))
