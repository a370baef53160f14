"""The two lane values with a meaning of their own: null, and the greatest one.

A lane has one int64 per row; these are the least and the greatest int64. Null sorts before every value. A value of
several lanes is null if all of them are NULL; a value that is not null may have NULL in some of its lanes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

NULL: Final = -(2**63)  # null, in a column that may hold null; no value of such a column is encoded as this number
MAX: Final = 2**63 - 1  # the greatest lane value


def is_null(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which rows are null, of a lane int64[n] or of the lanes of one column, int64[lanes, n]."""
    null: npt.NDArray[np.bool_] = values == NULL if values.ndim == 1 else np.logical_and.reduce(values == NULL)
    return null
