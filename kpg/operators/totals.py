"""Sums in the diff: rows become lanes that add up, and accumulated lanes become the sums people asked for.

    into:    (key, v), diff      →  (key), (diff, diff × parts of v ...)
    out of:  (key, accumulated)  →  (key, count, sum, average ...)

Between the two lies an ordinary reduction over wide diffs, so sums are maintained in time proportional to the change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.columns.schema import NULL, Type
from kpg.columns.totals import average, part_count, split, total
from kpg.columns.updates import Updates
from kpg.operators.linear import Fail, keep

OUT_OF_RANGE = "float outside the exact range of a sum (2^-128 to 2^63), infinite or not a number"


@dataclass(frozen=True, slots=True)
class IntoDiff:
    """Key lanes stay; the diff becomes (count, parts of each summed column)."""

    keys: tuple[int, ...]
    columns: tuple[tuple[int, Type], ...]

    @property
    def fallible(self) -> bool:
        return any(type_.kind == "float64" for _, type_ in self.columns)

    @property
    def width(self) -> int:
        return 1 + sum(part_count(type_) for _, type_ in self.columns)

    def apply(self, updates: Updates, fail: Fail) -> Updates:
        diff = updates.diffs[0]
        diffs = np.empty((self.width, len(updates)), np.int64)
        diffs[0], at, bad = diff, 1, np.zeros(len(updates), np.bool_)
        for lane, type_ in self.columns:
            parts, failed = split(updates.data[lane], type_)
            diffs[at : at + len(parts)] = parts * diff
            at += len(parts)
            if failed is not None:
                bad |= failed
        made = Updates(updates.data[list(self.keys)], updates.times, diffs)
        if not bad.any():
            return made
        fail.rows(updates, bad, lambda row: OUT_OF_RANGE)
        return keep(made, ~bad)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One output of a sum: what is asked (count, sum, avg) of which column's type, and where its parts begin."""

    kind: str
    type_: Type
    at: int


@dataclass(frozen=True, slots=True)
class OutOfDiff:
    """Accumulated lanes, after `key_lanes` lanes of key, read as counts, sums and averages."""

    key_lanes: int
    wanted: tuple[Wanted, ...]

    fallible = True
    width = 0

    def apply(self, updates: Updates, fail: Fail) -> Updates:
        there = updates.data[self.key_lanes] != 0  # a group whose counts cancel is not there, whatever its sums
        if not there.all():
            updates = keep(updates, there)
        data = np.empty((self.key_lanes + len(self.wanted), len(updates)), np.int64)
        data[: self.key_lanes] = updates.data[: self.key_lanes]
        bad = np.zeros(len(updates), np.bool_)
        for index, wanted in enumerate(self.wanted):
            at = self.key_lanes + wanted.at
            parts = updates.data[at : at + part_count(wanted.type_)]
            if wanted.kind == "count":
                data[self.key_lanes + index] = updates.data[self.key_lanes]
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
