"""The two lane values with a meaning of their own: null, and the greatest one.

A lane has one int64 per row; these are the least and the greatest int64. Null sorts before every value.
"""

from __future__ import annotations

from typing import Final

NULL: Final = -(2**63)  # null, in a column that may hold null; no value of such a column is encoded as this number
MAX: Final = 2**63 - 1  # the greatest lane value
