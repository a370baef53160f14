"""Select updates, or reorder their lanes; constants stay constants.

keep(updates, mask)                    the updates where a mask is true
take(updates, rows)                    the updates at some positions, in that order
slice_updates(updates, begin, end)     the updates from one position to another
reorder_lanes(updates, lanes)          all updates, with their lanes in another order
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kpg.columns.exact_diffs import narrow
from kpg.columns.updates import Ints, Updates

MASKED_ROWS = 256  # up to this number of rows, a mask is faster than positions, which are gathered lane by lane


def keep(updates: Updates, mask: npt.NDArray[np.bool_]) -> Updates:
    """Return the updates where `mask` is true."""
    return Updates(
        _gather(updates.data, np.flatnonzero(mask)) if len(mask) > MASKED_ROWS else _masked(updates.data, mask),
        updates.times if updates.times.shape[1] == 1 else np.ascontiguousarray(updates.times[:, mask]),
        updates.diffs if updates.diffs.shape[1] == 1 else narrow(np.ascontiguousarray(updates.diffs[:, mask])),
    )


def take(updates: Updates, rows: Ints) -> Updates:
    """Return the updates at some positions, in that order."""
    return Updates(
        np.take(updates.data, rows, axis=1),
        updates.times if updates.times.shape[1] == 1 else np.take(updates.times, rows, axis=1),
        updates.diffs if updates.diffs.shape[1] == 1 else narrow(np.take(updates.diffs, rows, axis=1)),
    )


def slice_updates(updates: Updates, begin: int, end: int) -> Updates:
    """Return the updates from position `begin` up to `end`."""
    if end - begin == len(updates):
        return updates
    return Updates(
        np.ascontiguousarray(updates.data[:, begin:end]),
        updates.times if updates.times.shape[1] == 1 else np.ascontiguousarray(updates.times[:, begin:end]),
        updates.diffs if updates.diffs.shape[1] == 1 else narrow(np.ascontiguousarray(updates.diffs[:, begin:end])),
    )


def reorder_lanes(updates: Updates, lanes: list[int]) -> Updates:
    """Return the same updates with their lanes in another order."""
    if lanes == sorted(lanes):
        return updates
    return updates.with_data(np.ascontiguousarray(updates.data[lanes]))


def _masked(data: Ints, mask: npt.NDArray[np.bool_]) -> Ints:
    return np.ascontiguousarray(data[:, mask])


def _gather(data: Ints, rows: Ints) -> Ints:
    """Return some columns of a block; its lanes need not be adjacent in memory."""
    out = np.empty((data.shape[0], len(rows)), np.int64)
    for lane in range(data.shape[0]):
        data[lane].take(rows, out=out[lane], mode="clip")  # "clip" avoids the copy that checking indices would need
    return out
