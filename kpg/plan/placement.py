"""Placement: what determines the worker of each row of a stream.

    placed = (2, 0)           each row is on the worker that owns the key formed by its lanes 2 and 0, in this order
    placed = OneWorker(1)     all rows are on worker 1; their values do not matter
    placed = None             unknown

Rows that are placed by a key need no exchange to be arranged by it. Rows of any known placement need none if equal rows
must only meet. `None` is always correct: an exchange then sends each row to the worker of its key, at the cost of
moving rows that need not move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kpg.columns.schema import Schema
from kpg.operators import linear


@dataclass(frozen=True, slots=True)
class OneWorker:
    """All rows are on one worker, by its index."""

    index: int


Placed: TypeAlias = tuple[int, ...] | OneWorker | None


def after_stages(placed: Placed, stages: Iterable[linear.LinearStage]) -> Placed:
    """Return the placement after some stages."""
    if isinstance(placed, OneWorker):
        return placed
    for stage in stages:
        match stage:
            case linear.PickStage(lanes):
                placed = after_projection(placed, lanes)
            case linear.ComputeStage():
                placed = after_projection(placed, stage.read_lanes)
            case linear.FilterStage() | linear.NegateStage() | linear.DelayStage():
                pass
            case _:
                return None
    return placed


def after_projection(placed: Placed, lanes: Sequence[int | None]) -> Placed:
    """Return the placement after a projection; `lanes` has the old lane of each new lane, None for a computed one."""
    if isinstance(placed, OneWorker):
        return placed
    if placed is None or not all(lane in lanes for lane in placed):
        return None
    return tuple(lanes.index(lane) for lane in placed)


def common_placement(placements: Iterable[Placed]) -> Placed:
    """Return the placement of the concatenation of streams with the same lanes."""
    distinct = set(placements)
    return distinct.pop() if len(distinct) == 1 else None


def placement_of_join(columns: Sequence[tuple[int, str]], keys: Sequence[tuple[str, str]], schema: Schema) -> Placed:
    """Return the placement of the pairs of a join: its key, if the join produces all columns of the key.

    `schema` is that of the pairs.
    """
    positions = [
        next((position for position, column in enumerate(columns) if column in ((0, left), (1, right))), None)
        for left, right in keys
    ]
    produced = tuple(position for position in positions if position is not None)
    if len(produced) < len(positions):
        return None
    return tuple(lane for position in produced for lane in schema.lanes_at(position))
