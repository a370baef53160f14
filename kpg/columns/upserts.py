"""Upserts: of several rows with the same key, keep the last one."""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints


def last_row_of_each_key(data: Ints, lanes: list[int]) -> Ints:
    """Return the last row of each key, in the order of the rows; `lanes` are those of the key."""
    n = data.shape[1]
    order = np.lexsort((np.arange(n), *data[lanes][::-1]))
    keys = data[lanes][:, order]
    last = np.ones(n, np.bool_)
    if n > 1:
        last[:-1] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    return np.ascontiguousarray(data[:, np.sort(order[last])])
