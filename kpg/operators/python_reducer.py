"""Any Python function of a group: called once per group and time, on decoded rows.

    function(key, rows)  →  output rows        key a tuple, rows a sorted list of (row, count)

The slow way, for what no kernel does. A function that raises makes its group an error row instead of output; when the
group changes so that it succeeds again, the error is retracted like any other output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.selection import keep
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode_rows, encode
from kpg.columns.updates import Ints, Updates
from kpg.operators.corrections import Corrections, InterestingTimes, evaluate_with
from kpg.operators.error_rows import ErrorRows, Place
from kpg.operators.linear import ErrorReport
from kpg.operators.text_ranks import by_value
from kpg.trace.key_history import KeyHistory

NO_FAILURE = NULL


@dataclass(frozen=True, slots=True)
class PythonReducer:
    """A user's function, between lanes and Python values; lane 0 of its output is the symbol of a failure or null."""

    function: Callable[[tuple[Any, ...], list[tuple[tuple[Any, ...], int]]], Any]
    keys: Schema
    values: Schema
    outputs: Schema
    symbols: Symbols
    failures: ErrorRows
    place: Place

    def evaluate(self, keys: Ints, times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        """Corrections of the groups of some keys."""

        def call(index: int, values: Ints, counts: Ints) -> tuple[Ints, Ints]:
            return self._call(keys[:, index : index + 1], values, counts)

        return evaluate_with(call, times, inputs, outputs)

    def _call(self, key: Ints, values: Ints, counts: Ints) -> tuple[Ints, Ints]:
        if any(type_.is_symbolic for type_ in self.values.types):
            order = by_value(self.values, values, self.symbols)
            values, counts = values[:, order], counts[order]
        key_row = decode_rows(self.keys, np.ascontiguousarray(key), self.symbols)[0]
        rows = decode_rows(self.values, np.ascontiguousarray(values), self.symbols)
        try:
            made = list(self.function(key_row, list(zip(rows, counts.tolist(), strict=True))))
            data = encode(self.outputs, made, self.symbols)
        except Exception as error:  # whatever a user's function raises is data
            reason = f"{type(error).__name__}: {error}"
            number = self.failures.intern("reduce", self.place, [reason], np.ascontiguousarray(key), self.keys)
            failed = np.zeros((1 + len(self.outputs), 1), np.int64)
            failed[0] = number
            return failed, np.ones(1, np.int64)
        marked = np.full((1 + len(self.outputs), data.shape[1]), NO_FAILURE, np.int64)
        marked[1:] = data
        return marked, np.ones(data.shape[1], np.int64)


@dataclass(frozen=True, slots=True)
class SplitFailures:
    """Rows without a failure, the lane that says so dropped; the others leave as errors."""

    lane: int

    fallible = True
    width = 0

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        failed = updates.data[self.lane] != NO_FAILURE
        kept = [lane for lane in range(updates.lanes) if lane != self.lane]
        if failed.any():
            numbers = keep(updates, failed)
            fail.errors(Updates(numbers.data[self.lane : self.lane + 1], numbers.times, numbers.diffs))
            updates = keep(updates, ~failed)
        return Updates(np.ascontiguousarray(updates.data[kept]), updates.times, updates.diffs)
