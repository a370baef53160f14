"""Compare values of one lane or of several, lane by lane; the most significant lane is the first.

    compare_lanes(np.less, a, b)   =   np.less(a, b)          for lanes int64[n or 1]
                                       a < b as tuples        for blocks int64[k, n or 1]

The functions are NumPy's comparisons. Cost: one pass, and for blocks a few passes for each lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kpg.columns.updates import Ints


def compare_lanes(function: Any, a: Ints, b: Ints) -> npt.NDArray[np.bool_]:
    """Return the comparison of each pair of values."""
    answer: npt.NDArray[np.bool_]
    if a.ndim == 1:
        answer = function(a, b)
    elif function is np.equal:
        answer = (a == b).all(axis=0)
    elif function is np.not_equal:
        answer = (a != b).any(axis=0)
    else:
        answer = function(three_way(a, b), 0)
    return answer


def three_way(a: Ints, b: Ints) -> npt.NDArray[np.int8]:
    """Return -1, 0 or 1 for each pair of values: less, equal or greater."""
    signs = (a > b).astype(np.int8) - (a < b)
    order: npt.NDArray[np.int8] = signs[-1]
    for sign in signs[-2::-1]:
        order = np.where(sign != 0, sign, order)
    return order
