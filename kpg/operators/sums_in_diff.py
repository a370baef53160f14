"""Sums in the diff: one stage moves values into lanes of the diff, another computes sums from accumulated diffs.

    into:    (key, v), diff      →  (key), (diff, diff × parts of v ...)
    out of:  (key, accumulated)  →  (key, count, sum, average ...)

Between the two is an ordinary reduction over wide diffs, so sums are maintained in time proportional to the change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.columns.exact_diffs import multiply_diffs
from kpg.columns.exact_sums import average, decimal_average, is_out_of_range, part_count, split, total
from kpg.columns.expression_origin import ExpressionOrigin, Failure
from kpg.columns.lane_values import NULL
from kpg.columns.schema import Type, slots_of
from kpg.columns.selection import keep
from kpg.columns.updates import Updates
from kpg.operators.exact_float_sums import outlier_marks
from kpg.operators.linear import ErrorReport
from kpg.operators.unfit_totals import NUMBER_OF_ROWS, SUM_OF_ROWS


@dataclass(frozen=True, slots=True)
class IntoDiffStage:
    """Keep the key lanes. The diff becomes (count, parts of each summed column), and a mark if some are floats.

    A row with an outlier, a float without parts, is counted and marked, and leaves through port 1 unchanged: see
    kpg.operators.exact_float_sums.
    """

    keys: tuple[int, ...]
    columns: tuple[tuple[int | slice, Type], ...]  # slots and types

    @property
    def floats(self) -> tuple[int, ...]:
        """The lanes of float columns."""
        return tuple(slot for slot, type_ in self.columns if type_.kind == "float64" and isinstance(slot, int))

    fallible = False
    sliceable = True

    @property
    def width(self) -> int:
        return 1 + sum(part_count(type_) for _, type_ in self.columns) + bool(self.floats)

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        factors = np.empty((self.width, len(updates)), np.int64)
        factors[0], at, odd = 1, 1, np.zeros(len(updates), np.bool_)
        for slot, type_ in self.columns:
            parts, failed = split(updates.data[slot], type_)
            factors[at : at + len(parts)] = parts
            at += len(parts)
            if failed is not None:
                odd |= failed
        if self.floats:
            factors[at] = outlier_marks(updates.data[list(self.floats)], odd) if odd.any() else 0
        if odd.any():
            outliers = keep(updates, odd)
            kept = np.ascontiguousarray(outliers.data[[*self.keys, *self.floats]])
            fail.report_errors(Updates(kept, outliers.times, outliers.diffs))
        diffs = multiply_diffs(factors, updates.diffs)
        return Updates(updates.data[list(self.keys)], updates.times, diffs)


@dataclass(frozen=True, slots=True)
class SumColumn:
    """One output column: its kind (count, sum, avg), the type of its input column, and the first lane of its parts."""

    kind: str
    type_: Type
    at: int
    result: Type  # the type of the output column


@dataclass(frozen=True, slots=True)
class OutOfDiffStage:
    """Compute counts, sums and averages from accumulated lanes, which follow `key_lanes` lanes of the key.

    `exact` maps the first lane of a float column's parts to the lane with its exact sum, which is used instead.
    """

    key_lanes: int
    wanted: tuple[SumColumn, ...]
    exact: tuple[tuple[int, int], ...] = ()
    origin: ExpressionOrigin | None = None

    fallible = True
    width = 0
    sliceable = True

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        present = updates.data[self.key_lanes] != 0  # a group with a count of zero does not exist, even if sums remain
        if not present.all():
            updates = keep(updates, present)
        slots, width = slots_of([wanted.result for wanted in self.wanted])
        data = np.empty((self.key_lanes + width, len(updates)), np.int64)
        data[: self.key_lanes] = updates.data[: self.key_lanes]
        outputs = data[self.key_lanes :]
        overflow, uncounted = np.zeros(len(updates), np.bool_), np.zeros(len(updates), np.bool_)
        exact = dict(self.exact)
        for slot, wanted in zip(slots, self.wanted, strict=True):
            at = self.key_lanes + wanted.at
            parts = updates.data[at : at + part_count(wanted.type_)]
            if wanted.kind != "sum":
                uncounted |= parts[0] == NULL
            if wanted.kind == "count":
                outputs[slot] = parts[0]
            elif wanted.at in exact:
                outputs[slot] = updates.data[self.key_lanes + exact[wanted.at] + (wanted.kind == "avg")]
                overflow |= is_out_of_range(parts)
            elif wanted.kind == "avg" and wanted.result.kind == "float64":
                outputs[slot] = average(parts, wanted.type_)
            else:
                compute = decimal_average if wanted.kind == "avg" else total
                outputs[slot], failed = compute(parts, wanted.type_, wanted.result)
                overflow |= failed
        totals = Updates(data, updates.times, updates.diffs)
        failed = overflow | uncounted
        if not failed.any():
            return totals
        reasons = (NUMBER_OF_ROWS, SUM_OF_ROWS)
        fail.report_rows(updates, failed, lambda row: Failure(reasons[int(overflow[row])], self.origin))
        return keep(totals, ~failed)
