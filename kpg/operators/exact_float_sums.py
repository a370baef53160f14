"""Exact sums of floats that do not fit the accumulator. Groups that contain such floats are summed again.

    sum  =  value of the group's parts  +  Σ over its outliers of value × count,   rounded once

An outlier is a float that is infinite, NaN, 2^63 or more in magnitude, or has bits below 2^-128; see
kpg.columns.exact_sums. `IntoDiffStage` sends outliers to a port of their own and marks their group in the last lane of
the diff. A join brings the marked groups (usually none) together with their outliers, and each group is summed in
integer multiples of 2^-1074. The result is that of IEEE arithmetic for exact sums: infinite if it is too large for a
float, and NaN if it contains NaN or infinities of both signs.
Cost: one Python call for each marked group and time, linear in its outliers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kpg.columns.exact_sums import FLOAT_BITS_BELOW, FLOAT_PARTS, split
from kpg.columns.floats import from_lane, to_lane_one
from kpg.columns.lane_values import NULL
from kpg.columns.schema import Type
from kpg.columns.selection import keep
from kpg.columns.updates import Ints, Updates
from kpg.operators.correction_columns import Corrections, InterestingTimes
from kpg.operators.corrections import evaluate_with
from kpg.operators.linear import ErrorReport, InfallibleStage
from kpg.trace.key_history import KeyHistory

LEAST_EXPONENT = 1074  # every float is an integer multiple of 2^-1074
MARK_MASK = (1 << 40) - 1  # so that sums of a million marks stay far from 64 bits
_HASH_FACTOR = np.int64(-7046029254386353131)  # odd, with bits set throughout (golden ratio)


def outlier_marks(values: Ints, odd: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Ints:
    """Return a mark for each row: zero for an ordinary row, a hash of its values for an outlier.

    Diffs add up the marks, so a group is marked as long as its outliers do not cancel.
    """
    mixed = np.full(values.shape[1], 1, np.int64)
    for lane in values:
        mixed = (mixed ^ lane) * _HASH_FACTOR
        mixed ^= mixed >> np.int64(29)
    return np.where(odd, (mixed & MARK_MASK) | 1, 0)


@dataclass(frozen=True, slots=True)
class UnmarkedGroupsStage(InfallibleStage):
    """Keep the groups without outliers."""

    lane: int

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        ordinary = updates.data[self.lane] == 0
        return updates if ordinary.all() else keep(updates, ordinary)


@dataclass(frozen=True, slots=True)
class MarkedGroupsStage(InfallibleStage):
    """Keep the groups with outliers, except those with a count of zero."""

    lane: int
    count: int

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        return keep(updates, (updates.data[self.lane] != 0) & (updates.data[self.count] != 0))


@dataclass(frozen=True, slots=True)
class FloatColumn:
    """A float column: the first lane of its parts, its position among the values of an outlier, and its type."""

    at: int
    value: int
    type_: Type


@dataclass(frozen=True, slots=True)
class ExactSums:
    """Compute for each group its unchanged parts, then the sum and the average of each float column."""

    parts: int
    columns: tuple[FloatColumn, ...]

    @property
    def lanes(self) -> int:
        """The number of output lanes."""
        return self.parts + 2 * len(self.columns)

    def evaluate(self, keys: Ints, times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        """Return the corrections of some groups. Their input rows consist of parts and the values of one outlier."""

        def call(index: int, values: Ints, counts: Ints) -> tuple[Ints, Ints]:
            return self._sum(values, counts), np.ones(1, np.int64)

        return evaluate_with(call, times, inputs, outputs)

    def _sum(self, rows: Ints, counts: Ints) -> Ints:
        output = np.empty((self.lanes, 1), np.int64)
        output[: self.parts] = rows[: self.parts, :1]
        for index, column in enumerate(self.columns):
            present = int(rows[column.at, 0])
            values = np.ascontiguousarray(rows[self.parts + column.value])
            odd = split(values, column.type_)[1]
            whole = _of_parts(rows[column.at + 1 : column.at + 1 + FLOAT_PARTS, 0])
            outliers = [] if odd is None else zip(from_lane(values[odd]).tolist(), counts[odd].tolist(), strict=True)
            total, special = _add(whole, list(outliers))
            at = self.parts + 2 * index
            for lane, count in ((at, 1), (at + 1, present)):
                value = round_to_float(total, count) if special is None and present else special
                output[lane] = to_lane_one(value) if present and value is not None else NULL
        return output


def _of_parts(parts: Ints) -> int:
    """Return the value of accumulated parts as an integer multiple of 2^-1074."""
    total = sum(part << (32 * index) for index, part in enumerate(parts.tolist()))
    return int(total) << (LEAST_EXPONENT - FLOAT_BITS_BELOW)


def _add(total: int, outliers: list[tuple[float, int]]) -> tuple[int, float | None]:
    """Return the exact sum, and infinity or NaN if an outlier makes the sum that."""
    special: float | None = None
    for value, count in outliers:
        if math.isfinite(value):
            top, bottom = value.as_integer_ratio()
            total += count * ((top << LEAST_EXPONENT) // bottom)
        elif count:
            special = value if special is None else special + value  # inf + -inf and NaN + x are NaN
    return total, special


def round_to_float(total: int, count: int) -> float:
    """Return the float nearest to total × 2^-1074 / count; infinity if it is too large for a float."""
    try:
        return total / (count << LEAST_EXPONENT)
    except OverflowError:
        return math.inf if (total < 0) == (count < 0) else -math.inf
