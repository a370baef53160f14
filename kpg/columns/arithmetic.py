"""Checked arithmetic: + - * // % / negation, abs, min_of, max_of.

    int64     exact, or the row fails            // and % round down, as in Python
    uint64    exact, or the row fails            does not mix with int64, except with constants
    float64   IEEE: overflow is inf              any division by zero fails, also of floats
    decimal   exact at the scale of the result: + and - the larger scale, * the sum of both; / gives float64
              (kpg.columns.decimals)
    date      date + int64 days, date - date is int64 days
    timestamp timestamp + int64 microseconds, timestamp - timestamp is int64 microseconds; a timedelta counts as one

An int64 with a float64 becomes a float64; with a decimal it becomes a decimal of scale 0. All functions are vectorised.
They detect overflow from the wrapped result, without Python ints.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from kpg.columns import decimals, floats
from kpg.columns.bound_nodes import (
    BindingScope,
    BoundNode,
    ConstantNode,
    PartialFunctionNode,
    TotalFunctionNode,
    adapt_all,
    any_nullable,
    null_node,
)
from kpg.columns.coercion import as_float, coerce, common_type, refuse
from kpg.columns.expression import Expression, FunctionCall, wrap
from kpg.columns.intervals import span_lanes
from kpg.columns.lane_order import compare_lanes
from kpg.columns.lane_values import NULL
from kpg.columns.overflow import (
    Checked,
    absolute_ints,
    add_constant,
    add_ints,
    apply_within_limits,
    floor_divide_ints,
    modulo_ints,
    multiply_ints,
    negate_ints,
    nonzero_ints,
    subtract_ints,
)
from kpg.columns.schema import FLOAT64, INT64, UINT64, Type
from kpg.columns.text_order import order_keys
from kpg.columns.unsigned import on_unsigned
from kpg.columns.updates import Ints
from kpg.errors import TypeMismatch

TEMPORAL: Final = ("date", "timestamp", "timestamp_ntz")  # kinds that a number of days or microseconds shifts


def float_function(function: Callable[..., Any], *lanes: Ints) -> Ints:
    """Return a function of floats, by IEEE."""
    with np.errstate(all="ignore"):  # inf and NaN are values; the lanes of nulls are NaN
        return floats.to_lane(function(*map(floats.from_lane, lanes)))


def float_division(function: Callable[..., Any], a: Ints, b: Ints) -> Checked:
    """Return a division or remainder of floats; it fails for b = 0."""
    divisor = floats.from_lane(b)
    zero = divisor == 0.0
    with np.errstate(all="ignore"):
        return floats.to_lane(function(floats.from_lane(a), np.where(zero, 1.0, divisor))), zero


def _common_number(call: FunctionCall, arguments: Sequence[BoundNode]) -> str:
    kinds = {argument.type.kind for argument in arguments}
    if not all(argument.type.is_numeric for argument in arguments):
        refuse(call, arguments, "Arithmetic is for int64, float64 and decimal: cast first.")
    if kinds >= {"float64", "decimal"}:
        refuse(call, arguments, 'A decimal is exact and a float64 is not: .cast("float64") the decimal.')
    if "uint64" in kinds and kinds & {"int64", "decimal"}:
        refuse(call, arguments, 'Numbers with and without a sign do not mix: .cast("int64") or .cast("uint64") one.')
    if kinds == {"uint64"}:
        return "uint64"
    return next((kind for kind in ("decimal", "float64") if kind in kinds), "int64")


def _adapted(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> list[BoundNode]:
    """Return null as the type of the other argument, and int constants as floats beside floats."""
    if all(isinstance(a, ConstantNode) and a.untyped for a in arguments):
        refuse(call, arguments, 'Give null a type: lit(None).cast("int64").')
    if any(a.type.kind == "decimal" for a in arguments):  # an int keeps scale 0, so that 2 * price has price's scale
        untyped = [isinstance(a, ConstantNode) and a.untyped for a in arguments]
        return adapt_all(arguments, scope) if any(untyped) else list(arguments)
    return adapt_all(arguments, scope)


def _failure_code(call: FunctionCall, scope: BindingScope, reason: str) -> int:
    return scope.code(reason, call)


def add(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind +."""
    a, b = arguments
    for temporal, other in ((a, b), (b, a)):
        if temporal.type.kind in TEMPORAL:
            return _shift(call, temporal, other, add_ints, scope)
    return _binary(call, arguments, scope, np.add, add_ints)


def subtract(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind -."""
    a, b = arguments
    if a.type.kind in TEMPORAL:
        if b.type.kind == a.type.kind:
            return TotalFunctionNode(
                INT64.optional(any_nullable(arguments)), arguments, np.subtract
            )  # the range of times is too small to overflow
        return _shift(call, a, b, subtract_ints, scope)
    return _binary(call, arguments, scope, np.subtract, subtract_ints)


def _shift(
    call: FunctionCall, temporal: BoundNode, other: BoundNode, function: Callable[..., Checked], scope: BindingScope
) -> BoundNode:
    if isinstance(other, ConstantNode) and other.untyped:
        other = null_node(INT64, scope)
    if isinstance(other, ConstantNode) and isinstance(other.value, datetime.timedelta) and temporal.type.kind == "date":
        if other.value % datetime.timedelta(days=1):
            refuse(call, (temporal, other), "You can add only whole days to a date; cast it to timestamp.")
        other = ConstantNode(INT64, other.value.days, (other.value.days,), scope.symbols)
    if other.type.kind != "int64":
        refuse(call, (temporal, other), "Add days to a date, microseconds or a timedelta to a timestamp.")
    type_ = temporal.type.optional(any_nullable((temporal, other)))
    code = _failure_code(call, scope, f"{type_.kind} out of range")
    return PartialFunctionNode(type_, (temporal, other), partial(apply_within_limits, *type_.limits(), function), code)


def multiply(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind *."""
    return _binary(call, arguments, scope, np.multiply, multiply_ints)


def _binary(
    call: FunctionCall,
    arguments: Sequence[BoundNode],
    scope: BindingScope,
    on_floats: Any,
    on_ints: Callable[..., Checked],
) -> BoundNode:
    arguments = _adapted(call, arguments, scope)
    kind = _common_number(call, arguments)
    nullable = any_nullable(arguments)
    if kind == "float64":
        return TotalFunctionNode(
            FLOAT64.optional(nullable), list(map(as_float, arguments)), partial(float_function, on_floats)
        )
    if kind == "decimal":
        return decimals.sum_or_product(call, [decimals.as_decimal(a, scope) for a in arguments], scope, on_ints)
    if kind == "uint64":
        code = _failure_code(call, scope, "unsigned overflow")
        return PartialFunctionNode(UINT64.optional(nullable), arguments, on_unsigned(on_ints), code)
    code = _failure_code(call, scope, "int64 overflow")
    a, b = arguments
    if isinstance(b, ConstantNode) and on_ints is add_ints and not b.type.nullable:
        return PartialFunctionNode(INT64.optional(nullable), (a,), partial(add_constant, b.lane_value), code)
    if isinstance(b, ConstantNode) and on_ints is subtract_ints and not b.type.nullable and b.lane_value != NULL:
        return PartialFunctionNode(INT64.optional(nullable), (a,), partial(add_constant, -b.lane_value), code)
    return PartialFunctionNode(INT64.optional(nullable), arguments, on_ints, code)


def divide(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind /, which gives float64."""
    arguments = _adapted(call, arguments, scope)
    _common_number(call, arguments)
    code = _failure_code(call, scope, "division by zero")
    type_ = FLOAT64.optional(any_nullable(arguments))
    return PartialFunctionNode(type_, list(map(as_float, arguments)), partial(float_division, np.divide), code)


def quotient(a: object, b: object, type_: Type) -> Expression:
    """Return the quotient of two numbers as a decimal type, rounded half away from zero; / gives a float64."""
    return FunctionCall("quotient", (wrap(a), wrap(b)), (type_,))


def bind_quotient(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind quotient."""
    numbers = _adapted(call, arguments, scope)
    if not {argument.type.kind for argument in numbers} <= {"int64", "decimal"}:
        refuse(call, arguments, "Only int64 and decimals have exact quotients.")
    exact = [decimals.as_decimal(number, scope) for number in numbers]
    return decimals.quotient_at_scale(call, exact, call.options[0], scope)


def floor_divide(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind //."""
    return _integral(call, arguments, scope, np.floor_divide, floor_divide_ints)


def modulo(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind %."""
    return _integral(call, arguments, scope, np.mod, modulo_ints)


def _integral(
    call: FunctionCall,
    arguments: Sequence[BoundNode],
    scope: BindingScope,
    on_floats: Any,
    on_ints: Callable[..., Checked],
) -> BoundNode:
    arguments = _adapted(call, arguments, scope)
    kind = _common_number(call, arguments)
    zero = _failure_code(call, scope, "division by zero")
    nullable = any_nullable(arguments)
    if kind == "decimal":
        refuse(call, arguments, 'Cast decimals to "int64" or "float64" first.')
    if kind == "float64":
        floating = list(map(as_float, arguments))
        return PartialFunctionNode(FLOAT64.optional(nullable), floating, partial(float_division, on_floats), zero)
    if kind == "uint64":
        return PartialFunctionNode(UINT64.optional(nullable), arguments, on_unsigned(on_ints), zero)
    a, b = arguments
    divisor = PartialFunctionNode(b.type, (b,), nonzero_ints, zero)
    code = _failure_code(call, scope, "int64 overflow")
    return PartialFunctionNode(INT64.optional(nullable), (a, divisor), on_ints, code)


def negate(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind unary -."""
    return _unary(call, arguments, scope, np.negative, negate_ints)


def absolute(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind abs."""
    return _unary(call, arguments, scope, np.abs, absolute_ints)


def _unary(
    call: FunctionCall,
    arguments: Sequence[BoundNode],
    scope: BindingScope,
    function: Any,
    on_ints: Callable[..., Checked],
) -> BoundNode:
    type_ = arguments[0].type
    kind = _common_number(call, arguments)
    if kind == "float64":
        return TotalFunctionNode(type_, arguments, partial(float_function, function))
    if kind == "decimal":
        return decimals.negated(arguments[0]) if call.op == "neg" else decimals.absolute(arguments[0])
    if kind == "uint64":
        return PartialFunctionNode(
            type_, arguments, on_unsigned(on_ints), _failure_code(call, scope, "unsigned overflow")
        )
    return PartialFunctionNode(type_, arguments, on_ints, _failure_code(call, scope, "int64 overflow"))


def least(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind min_of: null if any argument is."""
    return _extreme(call, arguments, scope, np.less_equal)


def greatest(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind max_of: null if any argument is."""
    return _extreme(call, arguments, scope, np.greater_equal)


def _extreme(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope, wins: Any) -> BoundNode:
    if not arguments:
        raise TypeMismatch(f"{call.op} needs at least one value")
    arguments = adapt_all(arguments, scope)
    type_ = common_type(call, arguments)
    if not type_.definition.is_ordered and type_.kind != "interval":
        refuse(call, arguments, f"Values of {type_.optional(False)} have no order.")
    node = coerce(arguments[0], type_.optional(arguments[0].type.nullable), scope)
    for argument in arguments[1:]:
        other = coerce(argument, type_.optional(argument.type.nullable), scope)
        nullable = node.type.nullable or other.type.nullable
        node = _pick(type_.optional(nullable), node, other, wins, scope, _failure_code(call, scope, "int64 overflow"))
    return node


def _pick(type_: Type, a: BoundNode, b: BoundNode, wins: Any, scope: BindingScope, code: int) -> BoundNode:
    if type_.is_symbolic:
        return TotalFunctionNode(type_, (a, b), partial(_pick_symbols, scope.symbols, wins), sliceable=False)
    if type_.kind == "interval":
        return TotalFunctionNode(type_, (a, b), partial(_pick_intervals, wins))
    if type_.kind == "int64" and type_.nullable and not (a.type.nullable and b.type.nullable):
        return PartialFunctionNode(type_, (a, b), partial(pick_checked, wins), code)  # -2**63 would read as null
    return TotalFunctionNode(type_, (a, b), partial(pick_lanes, wins))


def pick_lanes(wins: Any, a: Ints, b: Ints) -> Ints:
    """Return a where it wins the comparison, else b."""
    return np.where(compare_lanes(wins, a, b), a, b)


def _pick_intervals(wins: Any, a: Ints, b: Ints) -> Ints:
    return np.where(compare_lanes(wins, span_lanes(a), span_lanes(b)), a, b)


def pick_checked(wins: Any, a: Ints, b: Ints) -> Checked:
    """Return a where it wins the comparison, else b; a result of -2**63 fails if it would read as null."""
    return np.where(wins(a, b), a, b), None


def _pick_symbols(symbols: Any, wins: Any, a: Ints, b: Ints) -> Ints:
    return np.where(wins(*order_keys(symbols, a, b)), a, b)
