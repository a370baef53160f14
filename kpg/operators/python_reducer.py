"""Reduce groups with a Python function, called once for each group and time, on decoded rows.

    function(key, rows)  →  output rows        key is a tuple, rows is a sorted list of (row, count)

Used for functions that no kernel implements; slower than a kernel. If the function raises, the group has an error row
instead of output. When the group changes and the function succeeds, the error is retracted like any other output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kpg.columns.expression_origin import Failure
from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.selection import keep
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode_rows, encode
from kpg.columns.updates import Ints, Updates
from kpg.operators.correction_columns import Corrections, InterestingTimes
from kpg.operators.corrections import evaluate_with
from kpg.operators.error_rows import ErrorRows, OperatorId
from kpg.operators.linear import ErrorReport
from kpg.operators.text_ranks import order_by_value
from kpg.trace.key_history import KeyHistory

NO_FAILURE = NULL  # the symbol of a failure, in an output row without one


@dataclass(frozen=True, slots=True)
class PythonReducer:
    """A user's function with its conversion from and to lanes. Lane 0 of its output is a failure's symbol or null."""

    function: Callable[[tuple[Any, ...], list[tuple[tuple[Any, ...], int]]], Any]
    keys: Schema
    values: Schema
    outputs: Schema
    symbols: Symbols
    failures: ErrorRows
    operator_id: OperatorId

    def evaluate(self, keys: Ints, times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        """Return the corrections of some groups."""

        def call(index: int, values: Ints, counts: Ints) -> tuple[Ints, Ints]:
            return self._call(keys[:, index : index + 1], values, counts)

        return evaluate_with(call, times, inputs, outputs)

    def _call(self, key: Ints, values: Ints, counts: Ints) -> tuple[Ints, Ints]:
        if any(type_.is_symbolic for type_ in self.values.types):
            order = order_by_value(self.values, values, self.symbols)
            values, counts = values[:, order], counts[order]
        key_row = decode_rows(self.keys, np.ascontiguousarray(key), self.symbols)[0]
        rows = decode_rows(self.values, np.ascontiguousarray(values), self.symbols)
        try:
            output_rows = list(self.function(key_row, list(zip(rows, counts.tolist(), strict=True))))
            data = encode(self.outputs, output_rows, self.symbols)
        except Exception as error:  # any exception of a user's function becomes an error row
            failure = Failure(f"{type(error).__name__}: {error}")
            symbol = self.failures.intern(self.operator_id, [failure], np.ascontiguousarray(key), self.keys)
            failed = np.zeros((1 + self.outputs.width, 1), np.int64)
            failed[0] = symbol
            return failed, np.ones(1, np.int64)
        marked = np.full((1 + self.outputs.width, data.shape[1]), NO_FAILURE, np.int64)
        marked[1:] = data
        return marked, np.ones(data.shape[1], np.int64)


@dataclass(frozen=True, slots=True)
class SplitFailuresStage:
    """Keep rows without a failure and drop the lane of failures. The others leave as errors."""

    lane: int

    fallible = True
    width = 0
    sliceable = True

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        failed = updates.data[self.lane] != NO_FAILURE
        kept = [lane for lane in range(updates.lanes) if lane != self.lane]
        if failed.any():
            errors = keep(updates, failed)
            fail.report_errors(Updates(errors.data[self.lane : self.lane + 1], errors.times, errors.diffs))
            updates = keep(updates, ~failed)
        return Updates(np.ascontiguousarray(updates.data[kept]), updates.times, updates.diffs)
