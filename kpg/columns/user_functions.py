"""User functions of columns: call them for each batch, and turn their exceptions into failed rows.

A function of arrays is called once per batch. If it raises, or does not return a column of its type, the batch is
halved repeatedly until the rows at fault are isolated. Only these rows fail, with the exception as message. So the
value of a row must not depend on the other rows, and a function must not change the arrays, which are read-only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from kpg.columns.bound_nodes import (
    BindingScope,
    BoundNode,
    NodeResult,
    any_nullable,
    first_code,
    null_rows,
    run_all,
    spread_lane,
)
from kpg.columns.computed_nodes import COMPUTED_KINDS, bind_computed
from kpg.columns.decode_column import decode_arrow_array, decode_list, decode_numpy
from kpg.columns.encode_column import empty_lane
from kpg.columns.expression import Apply
from kpg.columns.expression_origin import Failure
from kpg.columns.functor_results import call_once, results_of
from kpg.columns.lane_values import NULL
from kpg.columns.scalar_values import encode_lanes
from kpg.columns.schema import Type
from kpg.columns.table_rows import encode_column
from kpg.columns.updates import Ints
from kpg.errors import KpgError, OverBudget

_MAX_MESSAGE_CHARACTERS = 300  # exception messages are cut here, because each distinct one is kept


def apply(expression: Apply, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind udf and row_udf, and functions of query languages."""
    if expression.kind in COMPUTED_KINDS:
        return bind_computed(expression, arguments, scope)
    if expression.kind == "arrow":
        return ArrayFunctionNode(expression.returns, expression, arguments, scope)
    type_ = expression.returns.optional(expression.returns.nullable or any_nullable(arguments))
    nodes: dict[str, type[UserFunctionNode]] = {"rows": RowFunctionNode, "functor": FunctorNode}
    return nodes.get(expression.kind, ArrayFunctionNode)(type_, expression, arguments, scope)


class UserFunctionNode(BoundNode):
    """A user function. Rows with a null argument give null without a call, except for functions of Arrow arrays."""

    __slots__ = ("_arguments", "_expression", "_nullable", "_origin", "_scope")

    def __init__(self, type_: Type, expression: Apply, arguments: Sequence[BoundNode], scope: BindingScope) -> None:
        super().__init__(type_, arguments, True)
        self.sliceable = False
        self._expression = expression
        self._arguments = tuple(arguments)
        self._scope = scope
        self._origin = scope.origin
        skips_null = expression.kind != "arrow"
        self._nullable = tuple(
            position for position, argument in enumerate(arguments) if argument.type.nullable and skips_null
        )

    def run(self, data: Ints) -> NodeResult:
        n = data.shape[1]
        values, codes = run_all(self._arguments, data)
        lanes = [spread_lane(value, n) for value in values]
        keep = np.ones(n, np.bool_) if codes is None else spread_lane(codes, n) == 0
        if self._nullable:
            keep &= ~null_rows(lanes, self._nullable)
        kept_rows = int(np.count_nonzero(keep))
        if kept_rows == n > 0:
            results, row_codes = self._call(lanes, n)
        else:
            results, row_codes = empty_lane(self.type, n), np.zeros(n, np.int64)
            results[:] = NULL
            if kept_rows:
                results[..., keep], row_codes[keep] = self._call([lane[..., keep] for lane in lanes], kept_rows)
        return results, first_code(codes, row_codes if np.count_nonzero(row_codes) else None)

    @abstractmethod
    def _call(self, lanes: list[Ints], n: int) -> tuple[Ints, Ints]:
        """Return the results of n rows, and a failure code for each, 0 if it did not fail."""

    def _code(self, error: Exception) -> int:
        reason = error.detail or error.what if isinstance(error, KpgError) else str(error)
        named = f"{type(error).__name__}: {reason}"
        if self._origin is None:
            return self._scope.code_of(Failure(f"{self._expression.name} raised {named}"[:_MAX_MESSAGE_CHARACTERS]))
        words = (reason if isinstance(error, KpgError) else named)[:_MAX_MESSAGE_CHARACTERS]
        return self._scope.code_of(Failure(f"{words} in {self._origin.text}", self._origin))


class ArrayFunctionNode(UserFunctionNode):
    """A function of arrays."""

    __slots__ = ()

    def _call(self, lanes: list[Ints], n: int) -> tuple[Ints, Ints]:
        answer, codes = empty_lane(self.type, n), np.zeros(n, np.int64)
        answer[:] = 0
        pending = [(0, n)]
        while pending:
            start, stop = pending.pop()
            try:
                answer[..., start:stop] = self._attempt([lane[..., start:stop] for lane in lanes], stop - start)
            except OverBudget:
                raise
            except Exception as error:  # any other exception of a user function is a failure of the row
                if stop - start == 1:
                    codes[start] = self._code(error)
                else:
                    middle = (start + stop) // 2
                    pending += [(middle, stop), (start, middle)]
        return answer, codes

    def _attempt(self, lanes: list[Ints], n: int) -> Ints:
        decode = decode_arrow_array if self._expression.kind == "arrow" else decode_numpy
        symbols = self._scope.symbols
        inputs = [decode(a.type, lane, symbols) for a, lane in zip(self._arguments, lanes, strict=True)]
        result = self._expression.function(*inputs)
        if not hasattr(result, "__len__") or isinstance(result, (str, bytes)) or len(result) != n:
            size = f"{len(result)} values" if hasattr(result, "__len__") else type(result).__name__
            raise ValueError(f"it returned {size} for {n} rows")
        out = empty_lane(self._expression.returns, n)
        encode_column(self._expression.returns, result, self._expression.name, symbols, out)
        return out


class RowFunctionNode(UserFunctionNode):
    """A function of one row's values."""

    __slots__ = ()

    def _call(self, lanes: list[Ints], n: int) -> tuple[Ints, Ints]:
        symbols = self._scope.symbols
        answer, codes = empty_lane(self.type, n), np.zeros(n, np.int64)
        answer[:] = 0
        columns = [decode_list(a.type, lane, symbols) for a, lane in zip(self._arguments, lanes, strict=True)]
        for row in range(n):
            try:
                value = self._value(tuple(column[row] for column in columns))
                encoded = encode_lanes(self._expression.returns, value, symbols)
                answer[..., row] = encoded if len(encoded) > 1 else encoded[0]
            except OverBudget:
                raise
            except Exception as error:  # any other exception of a user function is a failure of the row
                codes[row] = self._code(error)
        return answer, codes

    def _value(self, arguments: tuple[Any, ...]) -> Any:
        return self._expression.function(*arguments)


class FunctorNode(RowFunctionNode):
    """A user-defined functor of Datalog: each result is computed once and kept (kpg.columns.functor_results)."""

    __slots__ = ("_results",)

    def __init__(self, type_: Type, expression: Apply, arguments: Sequence[BoundNode], scope: BindingScope) -> None:
        super().__init__(type_, expression, arguments, scope)
        self._results = results_of(expression.function, scope.symbols)

    def _value(self, arguments: tuple[Any, ...]) -> Any:
        return call_once(self._expression.function, self._results, arguments)
