"""Binding: `bind` checks the types of an expression once; `BoundExpression.evaluate` computes it for each batch.

    bind(expression, schema, symbols).evaluate(data)  ->  a value for each row, and the failed rows with their reasons

An error of the query (an unknown column, types that do not fit) raises in `bind`. An error of a row (overflow, division
by zero, a failing cast, a user function that raises) marks that row and never raises. Evaluation costs a few
microseconds a batch and a few nanoseconds a row for each operation on numbers.

To add a function of expressions, for example a date function `dt.quarter`:
    1. in kpg/columns/expression_methods.py, add a method that builds a `FunctionCall` (to `DateMethods`);
    2. in the module of its subject (kpg/columns/dates.py, text.py, arithmetic.py, ...), write its binder: it checks the
       argument types and returns a node that computes the values of a batch;
    3. here, add its name and binder to `BINDERS`;
    4. in tests/columns/row_interpreter.py, write it in plain Python (tests compare both), and add it to
       docs/expressions.md.
A Datalog functor needs further steps: see kpg/query/ir/functors.py.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from kpg.columns import (
    arithmetic,
    casts,
    comparison,
    dates,
    intervals,
    logic,
    number_functions,
    records,
    regular_expressions,
    text,
    unsigned,
    user_functions,
)
from kpg.columns.bound_nodes import (
    BindingScope,
    Bools,
    BoundNode,
    ColumnNode,
    ConstantNode,
    fold,
    null_node,
    spread_lane,
)
from kpg.columns.computed_nodes import SHARED_KINDS
from kpg.columns.expression import (
    Apply,
    ColumnReference,
    Expression,
    FunctionCall,
    Literal,
    Named,
    Written,
    name_of,
    wrap,
)
from kpg.columns.expression_origin import Failure
from kpg.columns.pause_points import pause
from kpg.columns.scalar_values import encode_lanes
from kpg.columns.schema import INT64, Schema, literal_type
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints
from kpg.errors import TypeMismatch

__all__ = ["BoundExpression", "Evaluated", "Expression", "bind", "bind_condition", "name_of"]

Binder = Callable[[FunctionCall, Sequence[BoundNode], BindingScope], BoundNode]


def _add(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind +: the concatenation of strings, the sum of numbers."""
    if all(a.type.is_symbolic for a in arguments):
        return text.concat(call, arguments, scope)
    return arithmetic.add(call, arguments, scope)


BINDERS: Final[dict[str, Binder]] = {
    "+": _add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "//": arithmetic.floor_divide,
    "%": arithmetic.modulo,
    "**": number_functions.bind_real_power,
    "round": number_functions.bind_round,
    "neg": arithmetic.negate,
    "abs": arithmetic.absolute,
    "min_of": arithmetic.least,
    "max_of": arithmetic.greatest,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), comparison.compare),
    "is_null": comparison.is_null,
    "not_null": logic.not_null,
    "fails": logic.fails,
    "succeeds": logic.succeeds,
    "is_in": comparison.is_in,
    "&": logic.conjunction,
    "|": logic.disjunction,
    "~": logic.negation,
    "when": logic.when,
    "coalesce": logic.coalesce,
    "hash": comparison.hash_value,
    "symbol_id": comparison.symbol_id,
    "cast": casts.cast,
    "str.lower": text.lower,
    "str.upper": text.upper,
    "str.strip": text.strip,
    "str.length": text.length,
    "str.concat": text.concat,
    "str.contains": text.contains,
    "str.starts_with": text.starts_with,
    "str.ends_with": text.ends_with,
    "str.replace": text.replace,
    "str.substring": text.substring,
    "str.matches": regular_expressions.matches,
    "str.replace_regex": regular_expressions.replace_matches,
    "dt.truncate": dates.truncate,
    **dict.fromkeys(("dt.year", "dt.month", "dt.day", "dt.weekday", "dt.hour", "dt.minute", "dt.second"), dates.part),
    "record.make": records.make,
    "record.has_tag": records.has_tag,
    "record.field": records.field,
    "within": unsigned.within,
    "bits": number_functions.bind_bits,
    "power": number_functions.bind_power,
    "math": number_functions.bind_math,
    "parse_number": number_functions.bind_parse_number,
    "unsigned.reinterpret": unsigned.reinterpret,
    "interval.span": intervals.bind_span,
    "interval.part": intervals.bind_part,
    "interval.make": intervals.bind_make,
    "quotient": arithmetic.bind_quotient,
}


class Evaluated(NamedTuple):
    """The values of a batch. Where `codes` is not None and not 0, the row failed and its value has no meaning."""

    values: Ints
    codes: Ints | None
    failures: Sequence[Failure]

    @property
    def failed(self) -> Bools | None:
        """The rows that failed, None if none did."""
        return None if self.codes is None else self.codes != 0

    def reason(self, row: int) -> str:
        """Return why a row failed, in words."""
        return self.failure(row).reason

    def failure(self, row: int) -> Failure:
        """Return why a row failed, with the source text of the failing expression."""
        return self.failures[0 if self.codes is None else int(self.codes[row])]


class BoundExpression:
    """An expression with known columns and types.

    type      the type of its values           column   the position of the column if it is just a column, else None
    columns   the positions of the columns it reads     fallible   whether a row can fail
    """

    __slots__ = ("_node", "_scope", "column", "columns", "expression", "fallible", "name", "sliceable", "type")

    def __init__(self, expression: Expression, node: BoundNode, scope: BindingScope) -> None:
        self.expression = expression
        self.name = name_of(expression)
        self.type = node.type
        self.fallible = node.fallible
        self.sliceable = node.sliceable
        self.columns = tuple(sorted(node.columns))
        self.column = node.position if isinstance(node, ColumnNode) else None
        self._node = node
        self._scope = scope

    @property
    def node(self) -> BoundNode:
        """The root of its bound nodes."""
        return self._node

    @property
    def schema(self) -> Schema:
        """The schema that it is bound to."""
        return self._scope.schema

    @property
    def read_lanes(self) -> list[int | None]:
        """For each lane of the value, the lane of the data if the expression is just a column, else None."""
        if self.column is None:
            return [None] * self.type.lanes
        return list(self._scope.schema.lanes_at(self.column))

    def required_constants(self, silent: bool = False) -> dict[int, int]:
        """Return lanes that have these values in every row on which this condition is true, or fails.

        With `silent`, rows that fail do not matter.
        """
        schema = self._scope.schema
        return {
            lane: value
            for column, values in self._node.required_constants().items()
            if silent or not (self.fallible and schema.types[column].nullable)  # null & a failure is a failure
            for lane, value in zip(schema.lanes_at(column), values, strict=True)
        }

    def evaluate(self, data: Ints) -> Evaluated:
        """Return the value of each of the n rows of int64[lanes, n]: int64[n], or int64[k, n] if it has k lanes."""
        try:
            values, codes = self._node.run(data)
        finally:
            self._scope.computed.clear()
        n = data.shape[1]
        if values.shape[-1] != n:
            values = spread_lane(values, n)
        if codes is not None:
            codes = spread_lane(codes, n) if np.count_nonzero(codes) else None
        return Evaluated(values, codes, self._scope.failures)

    def __repr__(self) -> str:
        return f"{self.expression!r}: {self.type}"


def bind(expression: object, schema: Schema, symbols: Symbols) -> BoundExpression:
    """Bind an expression to a schema; a value that is not an expression becomes a constant."""
    written = wrap(expression)
    scope = BindingScope(schema, symbols)
    node = _bind(written, scope)
    if isinstance(node, ConstantNode) and node.untyped:
        raise TypeMismatch("null has no type by itself", hint='Give it one: lit(None).cast("int64").')
    return BoundExpression(written, node, scope)


def bind_condition(expression: object, schema: Schema, symbols: Symbols) -> BoundExpression:
    """Bind an expression that must be a condition; a filter keeps the rows where its value is 1 (true)."""
    bound = bind(expression, schema, symbols)
    if bound.type.kind != "bool":
        raise TypeMismatch(
            f"a condition is a bool, not {bound.type}",
            detail=f"It is {bound.expression!r}.",
            hint="Compare it with something.",
        )
    return bound


def _bind(expression: Expression, scope: BindingScope) -> BoundNode:
    pause()
    if isinstance(expression, ColumnReference):
        return ColumnNode(scope.schema, scope.schema.index(expression.name))
    if isinstance(expression, Literal):
        return _literal(expression.value, scope)
    if isinstance(expression, Named):
        return _bind(expression.expression, scope)
    if isinstance(expression, Written):
        outer, scope.origin = scope.origin, expression.origin
        try:
            return _bind(expression.expression, scope)
        finally:
            scope.origin = outer
    if isinstance(expression, FunctionCall):
        arguments = [_bind(argument, scope) for argument in expression.arguments]
        return fold(BINDERS[expression.op](expression, arguments, scope), scope)
    if isinstance(expression, Apply):
        return _bind_apply(expression, scope)
    raise TypeMismatch(f"not an expression: {expression!r}")


def _bind_apply(expression: Apply, scope: BindingScope) -> BoundNode:
    """Bind a function; a costly one that occurs again in the expression is evaluated once."""
    if expression.kind not in SHARED_KINDS:
        return user_functions.apply(expression, [_bind(argument, scope) for argument in expression.arguments], scope)
    key = expression.structure(), scope.origin
    if key not in scope.nodes:
        arguments = [_bind(argument, scope) for argument in expression.arguments]
        scope.nodes[key] = user_functions.apply(expression, arguments, scope)
    return scope.nodes[key]


def _literal(value: Any, scope: BindingScope) -> ConstantNode:
    if value is None:
        return null_node(INT64, scope, untyped=True)
    if isinstance(value, datetime.timedelta):  # a number of microseconds, the unit of timestamps
        return ConstantNode(INT64, value, (value // datetime.timedelta(microseconds=1),), scope.symbols)
    type_ = literal_type(value)
    try:
        return ConstantNode(type_, value, encode_lanes(type_, value, scope.symbols), scope.symbols)
    except (ValueError, TypeError) as error:
        raise TypeMismatch(f"no column can hold the constant {repr(value)[:80]}", detail=f"{error}.") from None
