"""Which times a batch covers, and what it promises about them.

    For every time t beyond `since`:
        Σ diffs in the batch at times ≤ t   ==   Σ diffs of the true updates in [lower, upper) at times ≤ t

A time is in [lower, upper) if it is beyond lower and not beyond upper. Nothing is promised about times not beyond
`since`. All three are frontiers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Ints


@dataclass(frozen=True, slots=True)
class Description:
    """The interval [lower, upper) of times, seen from `since`."""

    lower: Frontier
    upper: Frontier
    since: Frontier


@lru_cache(maxsize=256)
def elements(frontier: Frontier, depth: int) -> Ints:
    """A frontier as kernels take it: int64[elements, depth]."""
    return np.array(frontier.elements, np.int64).reshape(len(frontier.elements), depth)
