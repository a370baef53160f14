"""Twins of kpg.kernels.advance_times."""

from __future__ import annotations

from collections.abc import Sequence

from kpg.algebra.frontier import Frontier, representative
from kpg.algebra.order import Time, less_equal


def advance_times(times: Sequence[Time], frontier: Frontier) -> list[Time]:
    """Return the representative of each time; with an empty frontier, the time itself."""
    return [representative(frontier, time) if frontier else time for time in times]


def split_times(times: Sequence[Time], frontier: Frontier) -> tuple[list[int], list[int]]:
    """Return the positions of the times that are not beyond the frontier, and of the others."""
    early = [i for i, time in enumerate(times) if not frontier.beyond(time)]
    return early, [i for i, time in enumerate(times) if frontier.beyond(time)]


def minimal_times(times: Sequence[Time]) -> set[Time]:
    """Return the times that no other time is before."""
    return {time for time in times if not any(other != time and less_equal(other, time) for other in times)}
