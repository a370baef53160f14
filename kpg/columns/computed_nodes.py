"""Functions that a query language defines over columns: `Apply` of the kinds "total", "lanes", "distinct", "values".

    total      function(*options, *lanes) -> lanes                             no row fails
    lanes      function(*options, *lanes) -> lanes, [(failed rows, reason), …]
    distinct   function(*options, *values) -> value, once for each distinct combination of values in a batch; a
               ValueError fails the rows with its message as the reason. Results of a single text column are kept by
               symbol (kpg/columns/kept_results.py), so that later batches do not compute them again
    batches    function(*options, count, *columns) -> values, for up to CALLS_PER_PAUSE distinct combinations at once; a
               column is a list of values, of one value for a constant; a ValueError fails all these rows
    values     as distinct, also for null, which is None
    volatile   function(*options, n) -> lanes of n rows, without arguments; each row has a value of its own

All but `values` give null for null. A type with null as the result means that the function may return null itself. A
lane of length 1 stands for any number of equal values, so a function must broadcast, and may return a lane of length 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice, repeat
from typing import Any

import numpy as np

from kpg.columns.bound_nodes import (
    BindingScope,
    Bools,
    BoundNode,
    NodeResult,
    any_nullable,
    first_code,
    null_rows,
    run_all,
)
from kpg.columns.decode_column import decode_list
from kpg.columns.encode_column import empty_lane, encode_list
from kpg.columns.expression import Apply
from kpg.columns.expression_origin import Failure
from kpg.columns.kept_results import KeptResults
from kpg.columns.lane_values import NULL, is_null
from kpg.columns.pause_points import CALLS_PER_PAUSE, pause
from kpg.columns.schema import Type
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints
from kpg.errors import SchemaMismatch

SHARED_KINDS = ("distinct", "batches", "values")  # costly; equal calls in an expression share one result
COMPUTED_KINDS = ("total", "lanes", "distinct", "batches", "values", "volatile")
_MAX_REASON_CHARACTERS = 300  # reasons are cut here, because each distinct one is kept


def bind_computed(expression: Apply, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind a function of one of the kinds of this module."""
    if expression.kind == "volatile":
        return VolatileNode(expression, scope)
    if expression.kind in ("total", "lanes"):
        return LaneFunctionNode(expression, arguments, scope)
    if expression.kind == "batches":
        return BatchFunctionNode(expression, arguments, scope)
    return DistinctFunctionNode(expression, arguments, scope)


class ComputedNode(BoundNode):
    """A function with its options and arguments. `_code` gives the failure code of a reason."""

    __slots__ = ("_nullable", "_origin", "_scope", "arguments", "function", "options")

    def __init__(self, expression: Apply, arguments: Sequence[BoundNode], scope: BindingScope, strict: bool) -> None:
        nullable = expression.returns.nullable or (strict and any_nullable(arguments))
        super().__init__(expression.returns.optional(nullable), arguments, expression.kind != "total")
        self.sliceable &= expression.kind in ("total", "lanes")
        self.arguments = tuple(arguments)
        self.function = expression.function
        self.options = expression.options
        self._scope = scope
        self._origin = scope.origin
        self._nullable = tuple(p for p, argument in enumerate(arguments) if strict and argument.type.nullable)

    def _code(self, reason: str) -> int:
        reason = reason[:_MAX_REASON_CHARACTERS]
        if self._origin is None:
            return self._scope.code_of(Failure(reason))
        return self._scope.code_of(Failure(f"{reason} in {self._origin.text}", self._origin))


class LaneFunctionNode(ComputedNode):
    """A vectorised function of lanes."""

    __slots__ = ("_checks_collision", "_total")

    def __init__(self, expression: Apply, arguments: Sequence[BoundNode], scope: BindingScope) -> None:
        super().__init__(expression, arguments, scope, strict=True)
        self._total = expression.kind == "total"
        # A result of -2**63 would read as null.
        self._checks_collision = self.type.nullable and self.type.kind == "int64" and not expression.returns.nullable

    def run(self, data: Ints) -> NodeResult:
        values, codes = run_all(self.arguments, data)
        failures: tuple[tuple[Bools, str], ...] = ()
        if self._total:
            computed = self.function(*self.options, *values)
        else:
            computed, failures = self.function(*self.options, *values)
        null = null_rows(values, self._nullable) if self._nullable else None
        if self._checks_collision:
            failures = (*failures, (is_null(computed), "bigint out of range"))
        for failed, reason in failures:
            failed = failed if null is None else failed & ~null
            if np.count_nonzero(failed):
                codes = first_code(codes, np.where(failed, self._code(reason), 0))
        if null is not None and np.count_nonzero(null):
            computed = np.where(null, NULL, computed)
        return computed, codes


class VolatileNode(ComputedNode):
    """A function that has another value for each row. It claims to read a column, so that it is not a constant."""

    __slots__ = ()

    def __init__(self, expression: Apply, scope: BindingScope) -> None:
        super().__init__(expression, (), scope, strict=True)
        if len(scope.schema):
            self.columns = frozenset({0})

    def run(self, data: Ints) -> NodeResult:
        return self.function(*self.options, data.shape[1]), None


class DistinctFunctionNode(ComputedNode):
    """A function of Python values, called once for each distinct combination of values in a batch."""

    __slots__ = ("_kept", "_text")

    def __init__(self, expression: Apply, arguments: Sequence[BoundNode], scope: BindingScope) -> None:
        super().__init__(expression, arguments, scope, strict=expression.kind != "values")
        varying = [position for position, argument in enumerate(arguments) if argument.columns]
        by_symbol = len(varying) == 1 and arguments[varying[0]].type.is_symbolic and self.type.lanes == 1
        self._text = varying[0] if by_symbol else 0  # the argument that is not constant, if results are kept
        self._kept = KeptResults(scope.symbols) if by_symbol else None

    def run(self, data: Ints) -> NodeResult:
        known = self._scope.computed.get(self)
        if known is None or known[0] is not data:
            known = self._scope.computed[self] = data, self._evaluate(data)
        return known[1]

    def _evaluate(self, data: Ints) -> NodeResult:
        n = data.shape[1]
        if n == 0:
            return empty_lane(self.type, 0), None
        values, codes = run_all(self.arguments, data)
        skip = codes != 0 if codes is not None else None  # values of failed rows have no meaning
        if self._nullable:
            null = null_rows(values, self._nullable)
            skip = null if skip is None else null | skip
        if skip is None or not np.count_nonzero(skip):
            computed, failed = self._apply(values)
            return computed, first_code(codes, failed)
        take: Bools = np.broadcast_to(~skip, n)
        computed = empty_lane(self.type, n)
        computed.fill(NULL)
        row_codes = np.zeros(n, np.int64)
        if np.count_nonzero(take):
            computed[..., take], failed = self._apply([_take(value, take) for value in values])
            row_codes[take] = 0 if failed is None else failed
        return computed, first_code(codes, row_codes)

    def _apply(self, values: list[Ints]) -> NodeResult:
        if self._kept is None or not self._kept.is_useful:
            return self._compute(values)
        ids = values[self._text]
        computed, missing = self._kept.split(ids)
        count = int(np.count_nonzero(missing))
        if not count:
            return computed, None
        every = count == len(ids)
        computed[missing], failed = self._compute(values if every else [_take(value, missing) for value in values])
        codes = None if failed is None else _spread(missing, failed)
        new = missing if codes is None else missing & (codes == 0)
        self._kept.add(ids[new], computed[new])
        return computed, codes

    def _compute(self, values: list[Ints]) -> NodeResult:
        rows, inverse = distinct_rows(values, [argument.type for argument in self.arguments], self._scope.symbols)
        codes = np.zeros(len(rows), np.int64)
        size = CALLS_PER_PAUSE
        parts = [self._compute_rows(values, rows, codes, 0, size)]
        for start in range(size, len(rows), size):
            pause()
            parts.append(self._compute_rows(values, rows, codes, start, start + size))
        computed = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        return computed[..., inverse], codes[inverse] if np.count_nonzero(codes) else None

    def _compute_rows(self, values: list[Ints], rows: Ints, codes: Ints, start: int, stop: int) -> Ints:
        """Return the results of the combinations from `start` to `stop`; set the codes of those that fail."""
        rows, codes = rows[start:stop], codes[start:stop]
        columns = [
            self._decode(argument, value if value.shape[-1] == 1 else value[..., rows])
            for argument, value in zip(self.arguments, values, strict=True)
        ]
        return self._encode(self._results(columns, codes), codes)

    def _results(self, columns: list[list[Any]], codes: Ints) -> list[Any]:
        """Return a value for each combination; set the code of one that fails."""
        count = len(codes)
        inputs = [repeat(column[0]) if len(column) == 1 else column for column in columns]
        function = partial(self.function, *self.options) if self.options else self.function
        if inputs:
            try:
                return list(islice(map(function, *inputs), count))
            except ValueError:  # find out which ones fail
                pass
        results: list[Any] = [None] * count
        for row, *arguments in zip(range(count), *inputs, strict=False):
            try:
                results[row] = function(*arguments)
            except ValueError as error:
                codes[row] = self._code(str(error))
        return results

    def _decode(self, argument: BoundNode, lane: Ints) -> list[Any]:
        return decode_list(argument.type, lane, self._scope.symbols)

    def _encode(self, results: list[Any], codes: Ints) -> Ints:
        """Return the lanes of results. A result that its type cannot hold fails its row."""
        type_, symbols = self.type.optional(), self._scope.symbols
        try:
            return encode_list(type_, results, "", symbols)
        except SchemaMismatch:
            for row, result in enumerate(results):
                try:
                    encode_list(type_, [result], "", symbols)
                except SchemaMismatch as error:
                    results[row], codes[row] = None, self._code(error.detail or error.what)
            return encode_list(type_, results, "", symbols)


class BatchFunctionNode(DistinctFunctionNode):
    """A function of columns of Python values, called for many distinct combinations at once."""

    __slots__ = ()

    def _results(self, columns: list[list[Any]], codes: Ints) -> list[Any]:
        try:
            results: list[Any] = self.function(*self.options, len(codes), *columns)
        except ValueError as error:
            codes[:] = self._code(str(error))
            return [None] * len(codes)
        return results


def _spread(rows: Bools, codes: Ints) -> Ints:
    """Return the codes of some rows as codes of all rows."""
    spread = np.zeros(len(rows), np.int64)
    spread[rows] = codes
    return spread


def _take(value: Ints, rows: Bools) -> Ints:
    return value if value.shape[-1] == 1 else value[..., rows]


def distinct_rows(values: Sequence[Ints], types: Sequence[Type], symbols: Symbols) -> tuple[Ints, Ints]:
    """Return a row for each distinct combination of values, and for each row the index of its combination.

    Values of length 1 are constants and do not count. Costs a sort of the rows, or of symbol ids a pass over them.
    """
    inverse: Ints | None = None
    rows = np.zeros(1, np.int64)
    for value, type_ in zip(values, types, strict=True):
        if value.shape[-1] == 1:
            continue
        for lane in value.reshape(-1, value.shape[-1]):
            distinct, codes = symbols.distinct(lane) if type_.is_symbolic else np.unique(lane, return_inverse=True)
            if inverse is not None:
                distinct, codes = np.unique(inverse * len(distinct) + codes, return_inverse=True)
            inverse = codes
            rows = np.empty(len(distinct), np.int64)
            rows[codes] = np.arange(len(codes))
    return rows, np.zeros(1, np.int64) if inverse is None else inverse
