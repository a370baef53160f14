"""Example arguments of kernels: `warm` compiles each kernel for the types of its example, before it is needed.

Each module with kernels that Python calls ends with

    def examples() -> Iterator[Example]:
        yield merge_runs, (TABLE, TABLE, COLUMN, NUMBER)

Only the types of the arguments matter; no kernel is run. A kernel that only other kernels call needs no example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Example: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]

TABLE = np.zeros((1, 1), np.int64)  # int64[lanes, n]: data, times, diffs, frontiers
COLUMN = np.zeros(1, np.int64)  # int64[n]: positions, counts, one lane
NARROW_COLUMN = np.zeros(1, np.uint32)  # uint32[n]: packed rows of at most 32 bits
NUMBER = 0  # int64: a count, a position or a flag
