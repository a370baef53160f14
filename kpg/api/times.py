"""Times as people write and read them.

A user writes an epoch as a number, a time of several coordinates as a tuple; messages show them likewise.
"""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import Time
from kpg.errors import TypeMismatch

LAST = 2**62  # times are before it, so that one can always be added to


def as_time(time: int | Time, coordinates: int) -> Time:
    """A time as its coordinates, so many; anything else is refused."""
    given = tuple(time) if isinstance(time, (tuple, list)) else (time,)
    whole = all(isinstance(x, (int, np.integer)) and 0 <= x < LAST for x in given)
    if len(given) != coordinates or not whole:
        raise TypeMismatch(
            f"{time!r} is not a time of this db",
            detail=f"Times have {coordinates} coordinate(s), whole numbers from 0 to below 2^62.",
        )
    return tuple(map(int, given))


def as_frontier(time: int | Time | Frontier, coordinates: int) -> Frontier:
    """A frontier, or the times at and after one time."""
    if isinstance(time, Frontier):
        return Frontier(as_time(each, coordinates) for each in time)
    return Frontier.at(as_time(time, coordinates))


def show_time(time: Time) -> str:
    """A time as people read it: an epoch, or its coordinates."""
    return str(time[0]) if len(time) == 1 else str(time)


def show_frontier(frontier: Frontier) -> str:
    """A frontier as people read it."""
    return "the end" if frontier == CLOSED else ", ".join(map(show_time, frontier))
