"""The description of a batch: which times it covers, and what it guarantees about them.

    For every time t beyond `since`:
        Σ diffs in the batch at times ≤ t   ==   Σ diffs of the original updates in [lower, upper) at times ≤ t

A time is in [lower, upper) if it is beyond lower and not beyond upper. There is no guarantee for times not beyond
`since`. All three are frontiers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Ints
from kpg.columns.value_class import value_class


@value_class
class Description:
    """The interval [lower, upper) of times, compacted to `since`."""

    lower: Frontier
    upper: Frontier
    since: Frontier


@lru_cache(maxsize=256)
def elements(frontier: Frontier, depth: int) -> Ints:
    """Return a frontier in the form that kernels take: int64[elements, depth]."""
    return np.array(frontier.elements, np.int64).reshape(len(frontier.elements), depth)
