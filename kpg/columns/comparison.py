"""Conditions on values: == != < <= > >=, is_null, is_in; and hash, which depends on the value alone.

No row fails. Lanes compare as their values do, except strings and binary values, which compare by their rank in the
symbol table. NaN equals itself and is above +inf. Decimals of different scales compare by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from kpg.columns.bound_nodes import (
    BindingScope,
    Bools,
    BoundNode,
    ColumnNode,
    ConstantNode,
    NodeResult,
    TotalFunctionNode,
    adapt_all,
    any_nullable,
    as_bool,
)
from kpg.columns.coercion import refuse
from kpg.columns.decimals import compare_decimals
from kpg.columns.expression import FunctionCall
from kpg.columns.hashing import mix
from kpg.columns.intervals import span_of
from kpg.columns.lane_order import compare_lanes
from kpg.columns.lane_values import MAX, NULL
from kpg.columns.lane_values import is_null as is_null_value
from kpg.columns.scalar_values import encode_lanes
from kpg.columns.schema import BOOL, INT64
from kpg.columns.symbols import Symbols
from kpg.columns.text_order import order_keys
from kpg.columns.updates import Ints
from kpg.errors import SchemaMismatch, TypeMismatch

_COMPARE: dict[str, Any] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_MAX_COMPARED_MEMBERS = 8  # up to this number of constants, comparing with each one is faster than a search


def compare(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind == != < <= > >=."""
    a, b = adapt_all(arguments, scope)
    if isinstance(a, ConstantNode) and a.untyped and isinstance(b, ConstantNode) and b.untyped:
        refuse(call, (a, b), "Use is_null() to ask for null.")
    function = _COMPARE[call.op]
    type_ = BOOL.optional(any_nullable((a, b)))
    number = {a.type.kind, b.type.kind} == {"decimal", "int64"} and (
        isinstance(a, ConstantNode) or isinstance(b, ConstantNode)
    )
    if a.type.kind != b.type.kind and not number:
        refuse(call, (a, b), f'Types must be equal to be compared: cast one, as in .cast("{a.type.optional(False)}").')
    if not a.type.definition.is_ordered and a.type.kind != "interval" and call.op not in ("==", "!="):
        refuse(call, (a, b), f"Values of {a.type.optional(False)} are equal or not; they have no order.")
    if a.type.kind == "interval":
        a, b = span_of(a), span_of(b)
    if "decimal" in (a.type.kind, b.type.kind) and max(a.type.lanes, b.type.lanes) > 1:
        scale = max(a.type.scale, b.type.scale)
        shifts = scale - a.type.scale, scale - b.type.scale
        return TotalFunctionNode(type_, (a, b), partial(compare_decimals, function, shifts))
    if a.type.scale != b.type.scale:
        scale = max(a.type.scale, b.type.scale)
        ups = 10 ** (scale - a.type.scale), 10 ** (scale - b.type.scale)
        return TotalFunctionNode(type_, (a, b), partial(compare_scaled, function, *ups))
    if a.type.is_symbolic and call.op not in ("==", "!="):
        return TotalFunctionNode(type_, (a, b), partial(_compare_symbols, scope.symbols, function), sliceable=False)
    if call.op == "==":
        return EqualityNode(type_, (a, b), partial(compare_to_lane, function))
    return TotalFunctionNode(type_, (a, b), partial(compare_to_lane, function))


class EqualityNode(TotalFunctionNode):
    """Whether two values have equal lanes."""

    __slots__ = ()

    def required_constants(self) -> dict[int, tuple[int, ...]]:
        for column, constant in (self.arguments, self.arguments[::-1]):
            if isinstance(column, ColumnNode) and isinstance(constant, ConstantNode) and constant.value is not None:
                return {column.position: constant.lane_values}
        return {}


def compare_to_lane(function: Any, a: Ints, b: Ints) -> Ints:
    """Return a comparison of values, as a lane."""
    return as_bool(compare_lanes(function, a, b))


def _compare_symbols(symbols: Symbols, function: Any, a: Ints, b: Ints) -> Ints:
    return as_bool(function(*order_keys(symbols, a, b)))


def compare_scaled(function: Any, up_a: int, up_b: int, a: Ints, b: Ints) -> Ints:
    """Return a comparison of decimals that are multiplied to a common scale, as a lane."""
    return as_bool(function(_saturated(a, up_a), _saturated(b, up_b)))


def _saturated(lane: Ints, up: int) -> Ints:
    """Return lane * up, or ±MAX where that overflows: no decimal that it is compared with reaches these."""
    limit = MAX // up
    return np.where(lane > limit, MAX, np.where(lane < -limit, -MAX, lane * up))


def is_null(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind is_null."""
    return IsNullNode(arguments[0])


class IsNullNode(BoundNode):
    """Whether the value is null."""

    __slots__ = ("argument",)

    def __init__(self, argument: BoundNode) -> None:
        super().__init__(BOOL, (argument,), False)
        self.argument = argument

    def run(self, data: Ints) -> NodeResult:
        values, codes = self.argument.run(data)
        if not self.argument.type.nullable:
            return np.zeros(values.shape[-1], np.int64), codes
        return as_bool(is_null_value(values)), codes


def is_in(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind is_in."""
    (argument,) = arguments
    type_ = argument.type.optional(False)
    lanes = []
    for literal in call.options:
        if literal.value is None:
            raise TypeMismatch("is_in does not take null", detail=f"In {call!r}.", hint="Use is_null() for null.")
        try:
            lanes.append(encode_lanes(type_, literal.value, scope.symbols))
        except (ValueError, TypeError, SchemaMismatch) as error:
            raise TypeMismatch(f"{literal.value!r} is not {type_}", detail=f"{error}, in {call!r}.") from None
    return IsInNode(argument, np.array(sorted(set(lanes)), np.int64).reshape(-1, type_.lanes), scope.symbols)


class IsInNode(BoundNode):
    """Whether the value is one of some constants."""

    __slots__ = ("_held", "argument", "members")

    def __init__(self, argument: BoundNode, members: Ints, symbols: Symbols) -> None:
        super().__init__(BOOL.optional(argument.type.nullable), (argument,), False)
        self.argument = argument
        self.members = members[:, 0] if argument.type.lanes == 1 else members
        self._held = symbols.hold(self.members) if argument.type.is_symbolic else None

    def run(self, data: Ints) -> NodeResult:
        values, codes = self.argument.run(data)
        answer = as_bool(self._matches(values))
        if self.argument.type.nullable:
            answer = np.where(is_null_value(values), NULL, answer)
        return answer, codes

    def _matches(self, values: Ints) -> Bools:
        matches = np.zeros(values.shape[-1], np.bool_)
        if len(self.members) > _MAX_COMPARED_MEMBERS and values.ndim == 1:
            return np.isin(values, self.members)
        for member in self.members:
            matches |= values == member if values.ndim == 1 else (values == member.reshape(-1, 1)).all(axis=0)
        return matches


def symbol_id(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind symbol_id: a number that identifies a string or record as long as a row holds it."""
    (argument,) = arguments
    if not argument.type.is_symbolic:
        refuse(call, arguments, "Only strings and other symbols have ids.")
    return TotalFunctionNode(INT64.optional(argument.type.nullable), arguments, _same)


def _same(lane: Ints) -> Ints:
    return lane


def hash_value(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind hash."""
    return HashNode(arguments[0], scope.symbols)


class HashNode(BoundNode):
    """A hash of the value: of the text of strings, of the lanes of all other types."""

    __slots__ = ("_argument", "_symbols")

    def __init__(self, argument: BoundNode, symbols: Symbols) -> None:
        super().__init__(INT64, (argument,), False)
        self._argument = argument
        self._symbols = symbols

    def run(self, data: Ints) -> NodeResult:
        lane, codes = self._argument.run(data)
        if self._argument.type.is_symbolic:
            lane = self._symbols.hash_of(lane)
        if lane.ndim == 1:
            return mix(lane), codes
        hashed = np.zeros(lane.shape[1], np.int64)
        for part in lane:
            hashed = mix(hashed ^ part)
        return hashed, codes
