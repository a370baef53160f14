"""Conditions as comparisons of lanes, for rules of recursions: column op column, column op constant, and "and".

    lane_tests(condition, schema, constants)    the comparisons that must all hold; None if the condition says more

A comparison of a row is true exactly if the comparisons of its lanes hold. Null compares with nothing, so a column that
may be null adds the comparison that it is not. Text compares for equality alone, since symbols are in no order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kpg.columns.expression import ColumnReference, Expression, FunctionCall, Literal, wrap
from kpg.columns.lane_values import NULL
from kpg.columns.scalar_values import encode_value
from kpg.columns.schema import INT64, Schema, Type
from kpg.columns.symbols import SymbolHold, Symbols
from kpg.errors import KpgError
from kpg.plan.renamed_nodes import unnamed

OPS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
OPPOSITES = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
EXACT_CONSTANTS = {"int64": int, "string": str, "bool": bool, "float64": float}  # kinds, and the Python type of values


class ConstantLanes:
    """Encodes the constants of a recursion, and keeps their symbols."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._symbol_ids: list[int] = []

    def lane(self, expression: Expression, type_: Type) -> int | None:
        """Return the lane value of a constant that is exactly of a type; None if it may be converted, or is null."""
        if isinstance(expression, FunctionCall) and expression.op == "cast" and type_.same(expression.options[0]):
            expression = unnamed(expression.arguments[0])  # of the same type, as it must be below
        if not isinstance(expression, Literal) or type(expression.value) is not EXACT_CONSTANTS.get(type_.kind):
            return None
        try:
            lane = encode_value(type_.optional(False), expression.value, self.symbols)
        except (KpgError, TypeError, ValueError):
            return None
        if type_.nullable and lane == NULL:
            return None  # the number that stands for null, which a column that may be null cannot hold
        self._symbol_ids += [lane] if type_.is_symbolic else []
        return lane

    def selected_lane(self, expression: Expression, type_: Type) -> int | None:
        """Return the lane value of a constant that a selection has for a column: of null, or as `lane` does."""
        inner = unnamed(expression)
        if isinstance(inner, FunctionCall) and inner.op == "cast" and type_ == inner.options[0]:
            inner = unnamed(inner.arguments[0])
            if isinstance(inner, Literal) and inner.value is None and type_.lanes == 1:
                return NULL
        return self.lane(expression, type_)

    def hold(self) -> SymbolHold:
        """Return a hold on the symbols of all constants so far."""
        return self.symbols.hold(np.array(self._symbol_ids, np.int64))


def widened_column(expression: Expression, schema: Schema, type_: Type) -> str | None:
    """Return the column that an expression is if it only makes integers without null ones that may be null."""
    if not isinstance(expression, FunctionCall) or expression.op != "cast" or type_ != INT64.optional():
        return None
    column = unnamed(expression.arguments[0])
    if not isinstance(column, ColumnReference) or schema.type_of(column.name) != INT64:
        return None
    return column.name if expression.options[0] == type_ else None


class LaneTest(NamedTuple):
    """A comparison of a column with another one, or with a lane value. The operators are those of rules."""

    op: str
    left: str
    right: str | int

    def opposite(self) -> LaneTest:
        """Return the test that holds where this one does not."""
        return LaneTest(OPPOSITES[self.op], self.left, self.right)


def lane_tests(condition: object, schema: Schema, constants: ConstantLanes) -> list[LaneTest] | None:
    """Return the comparisons that a condition consists of; None if it is no conjunction of comparisons."""
    expression = unnamed(wrap(condition))
    if not isinstance(expression, FunctionCall):
        return None
    if expression.op == "&":
        sides = [lane_tests(argument, schema, constants) for argument in expression.arguments]
        return None if None in sides else [test for side in sides for test in side or ()]
    if expression.op == "~":
        return tests_of_negation(expression.arguments[0], schema, constants)
    if expression.op == "is_null":
        return tests_of_null(expression, "=", schema)
    return tests_of_comparison(expression, OPS.get(expression.op), schema, constants)


def tests_of_negation(argument: Expression, schema: Schema, constants: ConstantLanes) -> list[LaneTest] | None:
    """Return the comparisons of a negated condition: of one comparison, or a test for null."""
    argument = unnamed(argument)
    if not isinstance(argument, FunctionCall):
        return None
    if argument.op == "is_null":
        return tests_of_null(argument, "!=", schema)
    op = OPS.get(argument.op)
    return None if op is None else tests_of_comparison(argument, OPPOSITES[op], schema, constants)


def tests_of_null(call: FunctionCall, op: str, schema: Schema) -> list[LaneTest] | None:
    """Return the test whether a column is null, or that it is not."""
    column = unnamed(call.arguments[0])
    if not isinstance(column, ColumnReference) or schema.type_of(column.name).lanes != 1:
        return None
    if schema.type_of(column.name).nullable:
        return [LaneTest(op, column.name, NULL)]
    return [] if op == "!=" else None


def tests_of_comparison(
    call: FunctionCall, op: str | None, schema: Schema, constants: ConstantLanes
) -> list[LaneTest] | None:
    """Return the tests of a comparison of two columns, or of a column with a constant."""
    if op is None:
        return None
    left, right = map(unnamed, call.arguments)
    if not isinstance(left, ColumnReference):
        left, right, op = right, left, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
    if not isinstance(left, ColumnReference) or not is_comparable(schema.type_of(left.name), op):
        return None
    columns = [left.name]
    if isinstance(right, ColumnReference):
        if not schema.type_of(right.name).same(schema.type_of(left.name)):
            return None
        columns.append(right.name)
        test = LaneTest(op, left.name, right.name)
    else:
        value = constants.lane(right, schema.type_of(left.name))
        if value is None:
            return None
        test = LaneTest(op, left.name, value)
    return [test, *[LaneTest("!=", name, NULL) for name in columns if schema.type_of(name).nullable]]


def is_comparable(type_: Type, op: str) -> bool:
    """Return whether values of a type compare as their lanes do."""
    return type_.lanes == 1 and (op in ("=", "!=") or (type_.definition.is_ordered and not type_.is_symbolic))
