"""The stages of a linear operator as numbers, for the kernel that runs small loops (kpg.kernels.loop_stages).

    stages_program(stages)  ->  the numbers, the lanes of the output and the most lanes of a stage, or None

None if a stage has no such form: an expression without a program for one row (kpg.columns.row_program), or
a function of Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from kpg.columns.bind import BoundExpression
from kpg.columns.row_program import Untranslatable, row_program
from kpg.kernels import loop_stages
from kpg.operators.linear import (
    ComplementStage,
    ComputeStage,
    ExplodeStage,
    FilterStage,
    LinearStage,
    NegateStage,
    PickStage,
)
from kpg.operators.loop_sums import counted, totals_program
from kpg.operators.sums_in_diff import OutOfDiffStage


class StagesProgram(NamedTuple):
    """Stages as numbers."""

    numbers: list[int]
    lanes: int | None  # of the output; None if it is that of the input
    most_lanes: int  # that a stage writes


def stages_program(stages: Sequence[LinearStage]) -> StagesProgram | None:
    """Return the stages as numbers, or None if one of them has no such form."""
    numbers: list[int] = []
    lanes: int | None = None
    most = 0
    for stage in stages:
        try:
            numbers += _stage(stage)
        except Untranslatable:
            return None
        lanes = _output_lanes(stage, lanes)
        most = max(most, lanes or 0)
    return StagesProgram(numbers, lanes, most)


def _stage(stage: LinearStage) -> list[int]:
    match stage:
        case PickStage():
            return [loop_stages.PICK, len(stage.lanes), *stage.lanes]
        case NegateStage():
            return [loop_stages.NEGATE]
        case ComplementStage():
            return [loop_stages.COMPLEMENT, len(stage.lanes), *stage.lanes]
        case ExplodeStage():
            return [loop_stages.EXPLODE, stage.lane, len(stage.kept), *stage.kept]
        case FilterStage():
            return [loop_stages.FILTER, *_program_of(stage.expression, stage.lanes[0] if stage.lanes else 0)]
        case ComputeStage():
            return [loop_stages.COMPUTE, len(stage.read_lanes), *_computed(stage)]
        case OutOfDiffStage():
            return totals_program(stage)
    raise Untranslatable


def _output_lanes(stage: LinearStage, before: int | None) -> int | None:
    match stage:
        case PickStage():
            return len(stage.lanes)
        case ExplodeStage():
            return len(stage.kept)
        case ComputeStage():
            return len(stage.read_lanes)
        case OutOfDiffStage():
            return stage.key_lanes + len(stage.wanted)
    return before


def _computed(stage: ComputeStage) -> list[int]:
    return list(chain.from_iterable(_program_of(expression) for expression in stage.expressions))


def _program_of(bound: BoundExpression, first_lane: int = 0) -> list[int]:
    """Return for each lane of an expression the number of its instructions, and the instructions."""
    return counted(row_program(bound, first_lane))
