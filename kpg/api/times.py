"""Times as users write and read them: an epoch is a number, a time of several coordinates a tuple."""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import Time
from kpg.errors import TypeMismatch

LAST = 2**62  # every time is before it, so that adding to a coordinate cannot overflow an int64


def as_time(time: int | Time, coordinates: int) -> Time:
    """Return a time as its coordinates; raise if it has another number of them, or values out of range."""
    if type(time) is int and coordinates == 1 and 0 <= time < LAST:
        return (time,)
    values = tuple(time) if isinstance(time, (tuple, list)) else (time,)
    in_range = all(isinstance(value, (int, np.integer)) and 0 <= value < LAST for value in values)
    if len(values) != coordinates or not in_range:
        raise TypeMismatch(
            f"{time!r} is not a time of this db",
            detail=f"Times have {coordinates} coordinate(s), whole numbers from 0 to below 2^62.",
        )
    return tuple(map(int, values))


def as_frontier(time: int | Time | Frontier, coordinates: int) -> Frontier:
    """Return a frontier; of one time, the times at or after it."""
    if type(time) is int and coordinates == 1 and 0 <= time < LAST:
        return Frontier.at((time,))
    if isinstance(time, Frontier):
        return Frontier(as_time(element, coordinates) for element in time)
    return Frontier.at(as_time(time, coordinates))


def show_time(time: Time) -> str:
    """Write a time as the user does: an epoch, or its coordinates."""
    return str(time[0]) if len(time) == 1 else str(time)


def show_frontier(frontier: Frontier) -> str:
    """Write a frontier as the user does."""
    return "the end" if frontier == CLOSED else ", ".join(map(show_time, frontier))
