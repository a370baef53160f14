"""Counts that do not fit 64 bits, as error rows.

    a group's count fits          →  its row (key, count)
    a group's count does not fit  →  an error (key, reason), and no row

The exact evaluation (kpg.operators.exact_corrections) marks such a count by NULL, which no count that fits is.
Operators take these rows out of their output before they send it, so that no reader sees the mark. The error is
retracted when the count fits again, because the row with the mark is. Sums are checked when they are read out of their
lanes (kpg.operators.sums_in_diff).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.columns.expression_origin import ExpressionOrigin, Failure
from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.selection import keep
from kpg.columns.updates import Updates
from kpg.operators.error_rows import ErrorRows, OperatorId

NUMBER_OF_ROWS = "the number of rows does not fit 64 bits"
SUM_OF_ROWS = "the sum does not fit its type"


@dataclass(frozen=True, slots=True)
class UnfitTotals:
    """How an operator reports totals that do not fit: the kind of error, and the columns of its key."""

    failures: ErrorRows
    reason: str
    keys: Schema
    origin: ExpressionOrigin | None = None  # the text of the count, if a query language compiled it

    def errors(self, rows: Updates, operator_id: OperatorId) -> Updates:
        """Return the errors of rows with the mark."""
        data = np.ascontiguousarray(rows.data[: self.keys.width])
        symbols = self.failures.intern(operator_id, [Failure(self.reason, self.origin)] * len(rows), data, self.keys)
        return Updates(symbols.reshape(1, -1), rows.times, rows.diffs)


def split_unfit(updates: Updates, lane: int) -> tuple[Updates, Updates]:
    """Return the rows without the mark in a lane, and those with it."""
    unfit = updates.data[lane] == NULL
    return keep(updates, ~unfit), keep(updates, unfit)
