"""Blocks for output of unknown size: allocate the maximum, write, then release the rest.

    block = allocate_block(lanes, maximum);  ... write the first n columns ...;  block = release_unused(block, n)

A large block is contiguous memory; its unused end is returned to the system without copying the used part. The caller
must hold the only reference to a block that it passes to `release_unused`.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.memory_budget import reserve
from kpg.columns.updates import Ints, trim
from kpg.kernels.consolidate_rows import close_lane_gaps

COPIED_COLUMNS = 1 << 14  # a block of fewer columns is cheaper to copy than to resize


def allocate_block(lanes: int, columns: int) -> Ints:
    """Return a block to write to, of which perhaps only the first columns will be used."""
    if columns < COPIED_COLUMNS:
        return np.empty((lanes, columns), np.int64)
    reserve(lanes * columns * 8)
    return np.empty(lanes * columns, np.int64).reshape(lanes, columns)


def release_unused(block: Ints, columns: int) -> Ints:
    """Return the first columns of a block, and release the memory of the others."""
    lanes, allocated = block.shape
    if columns == allocated:
        return block
    flat = block.base
    if flat is None or lanes == 0:
        return trim(block, columns)
    close_lane_gaps(flat, lanes, allocated, columns)
    del block
    flat.resize(lanes * columns, refcheck=False)
    return flat.reshape(lanes, columns)
