"""The speed of this machine, for the limits of TPC-H's experiments.

The limits hold as written where np.sort of 10M int64 takes 0.16 s. They grow in proportion on slower machines, and stay
on faster ones.
"""

from __future__ import annotations

from kpg.bench.results import SORT_SECONDS
from kpg.bench.run import Run

TPCH_SORT_SECONDS = 0.16


def machine_slowdown(run: Run) -> float:
    """Return how many times slower this machine sorts; at least 1."""
    return max(1.0, float(run.result.machine.get(SORT_SECONDS, TPCH_SORT_SECONDS)) / TPCH_SORT_SECONDS)
