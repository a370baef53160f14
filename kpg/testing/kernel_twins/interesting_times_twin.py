"""Twins of kpg.kernels.interesting_times and kpg.kernels.join_closure."""

from __future__ import annotations

from collections.abc import Iterable

from kpg.algebra.frontier import Frontier, minimal
from kpg.algebra.order import Time, join


def closure(seeds: Iterable[Time], others: Iterable[Time]) -> set[Time]:
    """Return the least set that holds the seeds and is closed under join with seeds and others."""
    seeds = set(seeds)
    closed = set(seeds)
    for time in seeds | set(others):
        closed |= {join(time, other) for other in closed}
    return closed


def find_interesting_times(
    seeds: Iterable[Time], others: Iterable[Time], upper: Frontier
) -> tuple[list[Time], list[Time]]:
    """Return the times of the closure that are not beyond `upper`, and the minimal ones that are."""
    closed = closure(seeds, others)
    return sorted(t for t in closed if not upper.beyond(t)), list(minimal(t for t in closed if upper.beyond(t)))
