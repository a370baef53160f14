"""Sums of floats that do not fit the accumulator: groups that have some are summed anew, exactly.

    sum  =  what the parts of a group stand for  +  Σ over its outliers of value × count,   rounded once

An outlier is a float that is infinite, not a number, 2^63 or more, or with bits below 2^-128 (see kpg.columns.exact_sums).
Outliers leave `IntoDiff` by a port of their own and mark their group in a last lane of the diff. The marked groups, of
which there are mostly none, meet their outliers in a join, and each is summed in whole numbers of 2^-1074. Then a sum
is what IEEE arithmetic says of exact sums: too large for a float is infinite; infinities of both signs, or anything
that is not a number, make it not a number. Cost: a Python call per such group and time, in the number of its outliers.
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
from kpg.operators.corrections import Corrections, InterestingTimes, evaluate_with
from kpg.operators.linear import ErrorReport, InfallibleStage
from kpg.trace.key_history import KeyHistory

LEAST = 1074  # every float is a whole number of 2^-1074
_MIX = np.int64(-7046029254386353131)  # an odd number with bits everywhere


def mark(values: Ints, odd: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Ints:
    """A number for each row: zero for ordinary ones, for outliers one that only the same values have.

    Marks are added up in diffs, so that a group is marked as long as its outliers do not cancel.
    """
    mixed = np.full(values.shape[1], 1, np.int64)
    for lane in values:
        mixed = (mixed ^ lane) * _MIX
        mixed ^= mixed >> np.int64(29)
    return np.where(odd, mixed | 1, 0)


@dataclass(frozen=True, slots=True)
class Unmarked(InfallibleStage):
    """Groups without outliers."""

    lane: int

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        ordinary = updates.data[self.lane] == 0
        return updates if ordinary.all() else keep(updates, ordinary)


@dataclass(frozen=True, slots=True)
class Marked(InfallibleStage):
    """Groups with outliers; one whose counts cancel is not there."""

    lane: int
    count: int

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        return keep(updates, (updates.data[self.lane] != 0) & (updates.data[self.count] != 0))


@dataclass(frozen=True, slots=True)
class Summed:
    """A column of floats: where its parts begin, where its values are among those of an outlier, and its type."""

    at: int
    value: int
    type_: Type


@dataclass(frozen=True, slots=True)
class ExactSums:
    """Of each group the parts as they are, then for each column of floats its sum and its average."""

    parts: int
    columns: tuple[Summed, ...]

    @property
    def lanes(self) -> int:
        """How many lanes come out."""
        return self.parts + 2 * len(self.columns)

    def evaluate(self, keys: Ints, times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        """Corrections of the groups of some keys; their rows are parts and the values of one outlier."""

        def call(index: int, values: Ints, counts: Ints) -> tuple[Ints, Ints]:
            return self._sum(values, counts), np.ones(1, np.int64)

        return evaluate_with(call, times, inputs, outputs)

    def _sum(self, rows: Ints, counts: Ints) -> Ints:
        made = np.empty((self.lanes, 1), np.int64)
        made[: self.parts] = rows[: self.parts, :1]
        for index, column in enumerate(self.columns):
            present = int(rows[column.at, 0])
            values = np.ascontiguousarray(rows[self.parts + column.value])
            odd = split(values, column.type_)[1]
            whole = _of_parts(rows[column.at + 1 : column.at + 1 + FLOAT_PARTS, 0])
            outliers = [] if odd is None else zip(from_lane(values[odd]).tolist(), counts[odd].tolist(), strict=True)
            total, strange = _add(whole, list(outliers))
            at = self.parts + 2 * index
            for lane, count in ((at, 1), (at + 1, present)):
                value = rounded(total, count) if strange is None and present else strange
                made[lane] = to_lane_one(value) if present and value is not None else NULL
        return made


def _of_parts(parts: Ints) -> int:
    """What some accumulated parts stand for, in whole numbers of 2^-1074."""
    total = sum(part << (32 * index) for index, part in enumerate(parts.tolist()))
    return int(total) << (LEAST - FLOAT_BITS_BELOW)


def _add(total: int, outliers: list[tuple[float, int]]) -> tuple[int, float | None]:
    """The exact sum; and what it is instead, if something infinite or not a number is in it."""
    strange: float | None = None
    for value, count in outliers:
        if math.isfinite(value):
            top, bottom = value.as_integer_ratio()
            total += count * ((top << LEAST) // bottom)
        elif count:
            strange = value if strange is None else strange + value  # inf + -inf and NaN + x are NaN
    return total, strange


def rounded(total: int, count: int) -> float:
    """The float nearest to total × 2^-1074 / count; infinite if it is larger than all."""
    try:
        return total / (count << LEAST)
    except OverflowError:
        return math.inf if (total < 0) == (count < 0) else -math.inf
