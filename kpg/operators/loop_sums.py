"""Sums, counts and averages as stages for one row of a small loop (kpg.kernels.loop_stages).

    sums_program(into)      what kpg.operators.sums_in_diff.IntoDiffStage does: values become lanes of the diff
    totals_program(stage)   what OutOfDiffStage does: accumulated lanes become counts, sums and averages

Both are computations of lanes, so they need little code in the kernel. Floats and numbers of two lanes have
more parts, and are left to the operators.
"""

from __future__ import annotations

from itertools import chain

from kpg.columns.exact_sums import PART_BITS
from kpg.columns.floats import to_lane_one
from kpg.columns.lane_values import NULL
from kpg.columns.row_program import Untranslatable
from kpg.columns.schema import Type
from kpg.kernels import loop_stages
from kpg.kernels import row_expressions as kernel
from kpg.operators.sums_in_diff import IntoDiffStage, OutOfDiffStage, SumColumn

PART = 1 << PART_BITS  # a sum is kept in two lanes: the numbers below, and the multiples of this one


def sums_program(into: IntoDiffStage) -> list[int] | None:
    """Return the stage that moves values into a diff of several lanes, or None."""
    try:
        parts = [part for slot, type_ in into.columns for part in _parts(slot, type_)]
    except Untranslatable:
        return None
    lanes = [[kernel.READ, lane] for lane in into.keys] + [[kernel.CONSTANT, 1]] + parts
    return [loop_stages.COMPUTE, len(lanes), *counted(lanes), loop_stages.INTO_DIFF, len(into.keys), into.width]


def _parts(lane: int | slice, type_: Type) -> list[list[int]]:
    """Return the programs of the parts that a value is split into: as `kpg.columns.exact_sums.split`."""
    if not isinstance(lane, int) or type_.kind in ("float64", "uint64"):
        raise Untranslatable
    read, bit, or_zero = [kernel.READ, lane], int(type_.nullable), [kernel.CONSTANT, 0, kernel.COALESCE, 0]
    if type_.kind == "bool":
        return [[*read, kernel.CONSTANT, 1, kernel.EQUAL, bit, *or_zero]]
    present = [*read, kernel.IS_NULL, 0, kernel.NOT, 0] if type_.nullable else [kernel.CONSTANT, 1]
    halves = [[*read, kernel.CONSTANT, PART, op, bit, *or_zero] for op in (kernel.MODULO, kernel.DIVIDE)]
    return [present, *halves]


def totals_program(stage: OutOfDiffStage) -> list[int]:
    """Return the stages that compute counts, sums and averages of the groups with a count."""
    if stage.exact:
        raise Untranslatable
    count = [kernel.READ, stage.key_lanes, kernel.NOT_NULL, 0]
    exists = [*count, kernel.CONSTANT, 0, kernel.UNEQUAL, 0]
    lanes = [[kernel.READ, lane] for lane in range(stage.key_lanes)]
    lanes += [_total(wanted, stage.key_lanes + wanted.at) for wanted in stage.wanted]
    return [loop_stages.FILTER, *counted([exists]), loop_stages.COMPUTE, len(lanes), *counted(lanes)]


def _total(wanted: SumColumn, at: int) -> list[int]:
    """Return the program of a count, sum or average of parts that begin at a lane."""
    type_, result = wanted.type_, wanted.result
    count = [kernel.READ, at, kernel.NOT_NULL, 0]
    if wanted.kind == "count":
        return count
    if type_.lanes > 1 or result.lanes > 1 or type_.kind in ("bool", "float64", "uint64"):
        raise Untranslatable
    low, high = [kernel.READ, at + 1], [kernel.READ, at + 2]
    is_empty = [*count, kernel.CONSTANT, 0, kernel.EQUAL, 0]
    if wanted.kind == "sum":
        value = [*high, kernel.CONSTANT, PART, kernel.MULTIPLY, 0, *low, kernel.ADD, 0]
        if result.kind == "decimal":
            least, most = result.limits()
            value += [kernel.CONSTANT, least, kernel.AT_LEAST, 0, kernel.CONSTANT, most, kernel.AT_MOST, 0]
        may_be_null = result.nullable if result.kind == "decimal" else type_.nullable
    elif result.kind == "float64":
        value = [*low, kernel.FLOAT, 0, *high, kernel.FLOAT, 0, *_float(float(PART)), kernel.FLOAT_MULTIPLY, 0]
        value += [kernel.FLOAT_ADD, 0, *_float(10.0**type_.scale), kernel.FLOAT_DIVIDE, 0]
        divisor = [*is_empty, *_float(1.0), *count, kernel.FLOAT, 0, kernel.CHOOSE, 0]
        value += [*divisor, kernel.FLOAT_DIVIDE, 0]
        may_be_null = type_.nullable
    else:
        raise Untranslatable
    return [*is_empty, kernel.CONSTANT, NULL, *value, kernel.CHOOSE, 0] if may_be_null else value


def _float(number: float) -> list[int]:
    return [kernel.CONSTANT, to_lane_one(number)]


def counted(lanes: list[list[int]]) -> list[int]:
    """Return programs, each after the number of its instructions."""
    return list(chain.from_iterable([len(lane) // 2, *lane] for lane in lanes))
