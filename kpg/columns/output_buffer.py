"""Blocks that are written before it is known how many columns they will have.

    block = allocate_block(lanes, most);  ... write the first n columns ...;  block = release_unused(block, n)

A large block is one stretch of memory whose unused end goes back to the system, without copying what is used. Nobody
else may look at a block that is given to `release_unused`.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints, trim
from kpg.kernels.consolidate_rows import close_lane_gaps

SMALL = 1 << 14  # columns that are cheaper to copy than to move


def allocate_block(lanes: int, columns: int) -> Ints:
    """A block to be written, of which perhaps only the first columns will be used."""
    if columns < SMALL:
        return np.empty((lanes, columns), np.int64)
    return np.empty(lanes * columns, np.int64).reshape(lanes, columns)


def release_unused(block: Ints, columns: int) -> Ints:
    """The first columns of a block; the memory of the others is given back."""
    lanes, most = block.shape
    if columns == most:
        return block
    flat = block.base
    if flat is None or lanes == 0:
        return trim(block, columns)
    close_lane_gaps(flat, lanes, most, columns)
    del block
    flat.resize(lanes * columns, refcheck=False)
    return flat.reshape(lanes, columns)
