"""Sums in the diff: rows become lanes that add up, and accumulated lanes become the sums people asked for.

    into:    (key, v), diff      →  (key), (diff, diff × parts of v ...)
    out of:  (key, accumulated)  →  (key, count, sum, average ...)

Between the two lies an ordinary reduction over wide diffs, so sums are maintained in time proportional to the change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.columns.exact_sums import average, part_count, split, total
from kpg.columns.lane_values import NULL
from kpg.columns.schema import Type
from kpg.columns.selection import keep
from kpg.columns.updates import Updates
from kpg.operators.exact_float_sums import mark
from kpg.operators.linear import ErrorReport


@dataclass(frozen=True, slots=True)
class IntoDiff:
    """Key lanes stay; the diff becomes (count, parts of each summed column), and a mark if floats are among them.

    A row with a float that has no parts is counted, marked, and leaves by port 1 as it is: see kpg.operators.exact_float_sums.
    """

    keys: tuple[int, ...]
    columns: tuple[tuple[int, Type], ...]

    @property
    def floats(self) -> tuple[int, ...]:
        """The lanes of floats."""
        return tuple(lane for lane, type_ in self.columns if type_.kind == "float64")

    fallible = False

    @property
    def width(self) -> int:
        return 1 + sum(part_count(type_) for _, type_ in self.columns) + bool(self.floats)

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        diff = updates.diffs[0]
        diffs = np.empty((self.width, len(updates)), np.int64)
        diffs[0], at, odd = diff, 1, np.zeros(len(updates), np.bool_)
        for lane, type_ in self.columns:
            parts, failed = split(updates.data[lane], type_)
            diffs[at : at + len(parts)] = parts * diff
            at += len(parts)
            if failed is not None:
                odd |= failed
        if self.floats:
            diffs[at] = 0
        if odd.any():
            diffs[at] = mark(updates.data[list(self.floats)], odd) * diff
            outliers = keep(updates, odd)
            kept = np.ascontiguousarray(outliers.data[[*self.keys, *self.floats]])
            fail.errors(Updates(kept, outliers.times, outliers.diffs))
        return Updates(updates.data[list(self.keys)], updates.times, diffs)


@dataclass(frozen=True, slots=True)
class SumColumn:
    """One output of a sum: what is asked (count, sum, avg) of which column's type, and where its parts begin."""

    kind: str
    type_: Type
    at: int


@dataclass(frozen=True, slots=True)
class OutOfDiff:
    """Accumulated lanes, after `key_lanes` lanes of key, read as counts, sums and averages.

    `exact` says where sum and average of a column of floats are to be found instead, by where its parts begin.
    """

    key_lanes: int
    wanted: tuple[SumColumn, ...]
    exact: tuple[tuple[int, int], ...] = ()

    fallible = True
    width = 0

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        there = updates.data[self.key_lanes] != 0  # a group whose counts cancel is not there, whatever its sums
        if not there.all():
            updates = keep(updates, there)
        data = np.empty((self.key_lanes + len(self.wanted), len(updates)), np.int64)
        data[: self.key_lanes] = updates.data[: self.key_lanes]
        bad = np.zeros(len(updates), np.bool_)
        exact = dict(self.exact)
        for index, wanted in enumerate(self.wanted):
            at = self.key_lanes + wanted.at
            parts = updates.data[at : at + part_count(wanted.type_)]
            if wanted.kind == "count":
                data[self.key_lanes + index] = updates.data[self.key_lanes]
            elif wanted.at in exact:
                data[self.key_lanes + index] = updates.data[self.key_lanes + exact[wanted.at] + (wanted.kind == "avg")]
            elif wanted.kind == "avg":
                data[self.key_lanes + index] = average(parts, wanted.type_)
            else:
                sums, failed = total(parts, wanted.type_)
                data[self.key_lanes + index] = sums
                bad |= failed
                if wanted.type_.kind == "decimal":
                    most = 10**wanted.type_.precision
                    bad |= (sums >= most) | ((sums <= -most) & (sums != NULL))
        made = Updates(data, updates.times, updates.diffs)
        if not bad.any():
            return made
        fail.rows(updates, bad, lambda row: "the sum does not fit its type")
        return keep(made, ~bad)
