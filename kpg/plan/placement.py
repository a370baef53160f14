"""Where the rows of a stream are, among workers: by the hash of which lanes, if that is known.

    placed = (2, 0)     each row is with the worker that owns the key made of its lanes 2 and 0, in this order

Rows that are placed by a key need not be sent anywhere to be arranged by it. Not knowing is always right: then rows are
sent to where they belong, most of them perhaps to where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kpg.operators import linear

Placed: TypeAlias = tuple[int, ...] | None


def after_stages(placed: Placed, stages: Iterable[linear.LinearStage]) -> Placed:
    """Where rows are that have passed some stages on their worker."""
    for stage in stages:
        match stage:
            case linear.PickStage(lanes):
                placed = moved(placed, lanes)
            case linear.ComputeStage(expressions):
                placed = moved(placed, [expression.column for expression in expressions])
            case linear.FilterStage() | linear.NegateStage() | linear.DelayStage():
                pass
            case _:
                return None
    return placed


def moved(placed: Placed, lanes: Sequence[int | None]) -> Placed:
    """The same when the lanes are now those lanes of before, None for one that is new."""
    if placed is None or not all(lane in lanes for lane in placed):
        return None
    return tuple(lanes.index(lane) for lane in placed)


def common(many: Iterable[Placed]) -> Placed:
    """Where rows of several streams with the same lanes are."""
    found = set(many)
    return found.pop() if len(found) == 1 else None


def of_pairs(columns: Sequence[tuple[int, str]], keys: Sequence[tuple[str, str]]) -> Placed:
    """Where the pairs that a join makes are: with the key, if its columns are among those that are read."""
    lanes = [
        next((lane for lane, column in enumerate(columns) if column in ((0, left), (1, right))), None)
        for left, right in keys
    ]
    known = tuple(lane for lane in lanes if lane is not None)
    return known if len(known) == len(lanes) else None
