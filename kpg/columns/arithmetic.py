"""Arithmetic on lanes, checked: + - * // % / negation, abs, min_of, max_of.

    int64     exact, or the row fails            // and % round down, as in Python
    float64   IEEE: too large is inf             any division by zero fails, also of floats
    decimal   exact at the scale of the result: + and - the larger scale, * the sum of both; / gives float64
    date      date + int64 days, date - date is int64 days
    timestamp timestamp + int64 microseconds, timestamp - timestamp is int64 microseconds; a timedelta is such a number

An int64 beside a float64 becomes one, beside a decimal a decimal of scale 0. Everything is vectorised; overflow is seen
in the wrapped result, never by way of Python ints.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from kpg.columns import floats
from kpg.columns.column import limits
from kpg.columns.node import Bools, Constant, Node, Partial, Scope, Total, adapt_all, any_nullable
from kpg.columns.ordering import order_keys
from kpg.columns.schema import FLOAT64, INT64, MAX, MAX_DIGITS, NULL, NUMERIC, SYMBOLIC, Type, decimal
from kpg.columns.syntax import Call
from kpg.columns.updates import Ints
from kpg.errors import TypeMismatch

Checked = tuple[Ints, Bools | None]

# --- checked lanes --------------------------------------------------------------------------------------------------


def add_ints(a: Ints, b: Ints) -> Checked:
    """a + b; overflow where both differ in sign from the sum."""
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0


def add_constant(constant: int, a: Ints) -> Checked:
    """a + constant."""
    total = a + constant
    return total, total < a if constant >= 0 else total > a


def subtract_ints(a: Ints, b: Ints) -> Checked:
    """a - b; overflow where a and b differ in sign and so do a and the difference."""
    difference = a - b
    return difference, ((a ^ b) & (a ^ difference)) < 0


def multiply_ints(a: Ints, b: Ints) -> Checked:
    """a * b; overflow where dividing does not give back."""
    product = a * b
    if _magnitude(a) * _magnitude(b) <= MAX:
        return product, None
    divisor = np.where((b == 0) | (b == -1), 1, b)  # a product with 0 fits; with -1 only that of -2**63 does not
    wrong = (product // divisor != a) & (b != 0) & (b != -1)
    return product, wrong | ((b == -1) & (a == NULL))


def _magnitude(values: Ints) -> int:
    if not values.shape[0]:
        return 0
    return max(-int(values.min()), int(values.max()), 0)


def floor_divide_ints(a: Ints, b: Ints) -> Checked:
    """a // b, rounded down; fails for b = 0 and for -2**63 // -1."""
    failed = (b == 0) | ((a == NULL) & (b == -1))
    return a // np.where(failed, 1, b), failed


def modulo_ints(a: Ints, b: Ints) -> Checked:
    """a % b, with the sign of b; fails for b = 0."""
    failed = b == 0
    return a % np.where(failed | (b == -1), 1, b), failed


def negate_ints(a: Ints) -> Checked:
    """-a; fails for -2**63."""
    return -a, a == NULL


def absolute_ints(a: Ints) -> Checked:
    """abs(a); fails for -2**63."""
    return np.abs(a), a == NULL


def _float_function(function: Callable[..., Any], *lanes: Ints) -> Ints:
    with np.errstate(all="ignore"):  # inf and NaN are values; the lanes of nulls are NaN
        return floats.to_lane(function(*map(floats.from_lane, lanes)))


def _float_division(function: Callable[..., Any], a: Ints, b: Ints) -> Checked:
    divisor = floats.from_lane(b)
    zero = divisor == 0.0
    with np.errstate(all="ignore"):
        return floats.to_lane(function(floats.from_lane(a), np.where(zero, 1.0, divisor))), zero


def _within(low: int, high: int, function: Callable[..., Checked], *lanes: Ints) -> Checked:
    """A function of ints whose result must stay in the range of a type."""
    values, failed = function(*lanes)
    outside = (values < low) | (values > high)
    return values, outside if failed is None else failed | outside


def _scaled(up_a: int, up_b: int, function: Callable[..., Checked], a: Ints, b: Ints) -> Checked:
    """A function of two decimals brought to one scale: each at most 18 digits before and after."""
    limit = 10**MAX_DIGITS - 1
    wide = (np.abs(a) > limit // up_a) | (np.abs(b) > limit // up_b)
    values, failed = function(a * up_a, b * up_b)
    return values, wide if failed is None else wide | failed


# --- conversions ----------------------------------------------------------------------------------------------------


def int_to_float(lane: Ints) -> Ints:
    """The lane of the nearest floats."""
    return floats.to_lane(lane.astype(np.float64))


def decimal_to_float(scale: int, lane: Ints) -> Ints:
    """The lane of decimals as floats."""
    return floats.to_lane(lane.astype(np.float64) / 10.0**scale)


def as_float(node: Node) -> Node:
    """A number of any type as float64."""
    if node.type.kind == "int64":
        return Total(FLOAT64.optional(node.type.nullable), [node], int_to_float)
    if node.type.kind == "decimal":
        return Total(FLOAT64.optional(node.type.nullable), [node], partial(decimal_to_float, node.type.scale))
    return node


def as_decimal(node: Node, scope: Scope) -> Node:
    """An int64 as a decimal without fraction; a decimal as it is."""
    if node.type.kind == "decimal":
        return node
    if isinstance(node, Constant):
        digits = len(str(abs(node.lane_value)))
        if digits > MAX_DIGITS:
            raise TypeMismatch(f"{node.value} has more than the {MAX_DIGITS} digits of a decimal")
        return Constant(decimal(digits), node.value, node.lane_value, scope.symbols)
    type_ = decimal(MAX_DIGITS).optional(node.type.nullable)
    code = scope.code(f"int64 too large for {type_}")
    return Partial(type_, [node], partial(_within, *limits(type_), _unchanged), code)


def _unchanged(lane: Ints) -> Checked:
    return lane, None


# --- rules: from a call and its bound arguments to a node ------------------------------------------------------------


def refuse(call: Call, arguments: Sequence[Node], hint: str | None = None) -> NoReturn:
    """Say that a function has no meaning for these types."""
    found = " and ".join("null" if isinstance(a, Constant) and a.untyped else str(a.type) for a in arguments)
    raise TypeMismatch(f"{call.op!r} does not fit {found}", detail=f"In {call!r}.", hint=hint)


def _common_number(call: Call, arguments: Sequence[Node]) -> str:
    kinds = {argument.type.kind for argument in arguments}
    if not kinds <= NUMERIC:
        refuse(call, arguments, "Arithmetic is for int64, float64 and decimal: cast first.")
    if kinds >= {"float64", "decimal"}:
        refuse(call, arguments, 'A decimal is exact and a float64 is not: .cast("float64") the decimal.')
    return next((kind for kind in ("decimal", "float64") if kind in kinds), "int64")


def _settled(call: Call, arguments: Sequence[Node], scope: Scope) -> list[Node]:
    """Null as the type of the other side, and ints as floats beside floats."""
    if all(isinstance(a, Constant) and a.untyped for a in arguments):
        refuse(call, arguments, 'Give null a type: lit(None).cast("int64").')
    if any(a.type.kind == "decimal" for a in arguments):  # an int keeps scale 0, so that 2 * price has price's scale
        untyped = [isinstance(a, Constant) and a.untyped for a in arguments]
        return adapt_all(arguments, scope) if any(untyped) else list(arguments)
    return adapt_all(arguments, scope)


def _failure(call: Call, scope: Scope, what: str) -> int:
    return scope.code(f"{what} in {call!r}")


def add(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of +."""
    a, b = arguments
    for temporal, other in ((a, b), (b, a)):
        if temporal.type.kind in ("date", "timestamp"):
            return _shift(call, temporal, other, add_ints, scope)
    return _binary(call, arguments, scope, np.add, add_ints)


def subtract(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of -."""
    a, b = arguments
    if a.type.kind in ("date", "timestamp"):
        if b.type.kind == a.type.kind:
            return Total(INT64.optional(any_nullable(arguments)), arguments, np.subtract)  # too small to overflow
        return _shift(call, a, b, subtract_ints, scope)
    return _binary(call, arguments, scope, np.subtract, subtract_ints)


def _shift(call: Call, temporal: Node, other: Node, function: Callable[..., Checked], scope: Scope) -> Node:
    if isinstance(other, Constant) and other.untyped:
        other = Constant(INT64.optional(), None, NULL, scope.symbols)
    if isinstance(other, Constant) and isinstance(other.value, datetime.timedelta) and temporal.type.kind == "date":
        if other.value % datetime.timedelta(days=1):
            refuse(call, (temporal, other), "Only whole days can be added to a date; cast it to timestamp.")
        other = Constant(INT64, other.value.days, other.value.days, scope.symbols)
    if other.type.kind != "int64":
        refuse(call, (temporal, other), "Add days to a date, microseconds or a timedelta to a timestamp.")
    type_ = temporal.type.optional(any_nullable((temporal, other)))
    code = _failure(call, scope, f"{type_.kind} out of range")
    return Partial(type_, (temporal, other), partial(_within, *limits(type_), function), code)


def multiply(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of *."""
    return _binary(call, arguments, scope, np.multiply, multiply_ints)


def _binary(
    call: Call, arguments: Sequence[Node], scope: Scope, on_floats: Any, on_ints: Callable[..., Checked]
) -> Node:
    arguments = _settled(call, arguments, scope)
    kind = _common_number(call, arguments)
    nullable = any_nullable(arguments)
    if kind == "float64":
        return Total(FLOAT64.optional(nullable), list(map(as_float, arguments)), partial(_float_function, on_floats))
    if kind == "decimal":
        return _decimal_binary(call, [as_decimal(a, scope) for a in arguments], scope, on_ints)
    code = _failure(call, scope, "int64 overflow")
    a, b = arguments
    if isinstance(b, Constant) and on_ints is add_ints and not b.type.nullable:
        return Partial(INT64.optional(nullable), (a,), partial(add_constant, b.lane_value), code)
    if isinstance(b, Constant) and on_ints is subtract_ints and not b.type.nullable and b.lane_value != NULL:
        return Partial(INT64.optional(nullable), (a,), partial(add_constant, -b.lane_value), code)
    return Partial(INT64.optional(nullable), arguments, on_ints, code)


def _decimal_binary(call: Call, arguments: Sequence[Node], scope: Scope, on_ints: Callable[..., Checked]) -> Node:
    a, b = (argument.type for argument in arguments)
    if on_ints is multiply_ints:
        scale, precision = a.scale + b.scale, a.precision + b.precision
        if scale > MAX_DIGITS:
            refuse(call, arguments, f"The product would have {scale} digits after the point, more than {MAX_DIGITS}.")
        function = on_ints
    else:
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
        function = partial(_scaled, 10 ** (scale - a.scale), 10 ** (scale - b.scale), on_ints)
    type_ = decimal(min(precision, MAX_DIGITS), scale).optional(any_nullable(arguments))
    code = _failure(call, scope, f"{type_} overflow")
    return Partial(type_, arguments, partial(_within, *limits(type_), function), code)


def divide(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of /, which gives float64."""
    arguments = _settled(call, arguments, scope)
    _common_number(call, arguments)
    code = _failure(call, scope, "division by zero")
    type_ = FLOAT64.optional(any_nullable(arguments))
    return Partial(type_, list(map(as_float, arguments)), partial(_float_division, np.divide), code)


def floor_divide(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of //."""
    return _integral(call, arguments, scope, np.floor_divide, floor_divide_ints)


def modulo(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of %."""
    return _integral(call, arguments, scope, np.mod, modulo_ints)


def _integral(
    call: Call, arguments: Sequence[Node], scope: Scope, on_floats: Any, on_ints: Callable[..., Checked]
) -> Node:
    arguments = _settled(call, arguments, scope)
    kind = _common_number(call, arguments)
    code = _failure(call, scope, "division by zero or overflow")
    nullable = any_nullable(arguments)
    if kind == "decimal":
        refuse(call, arguments, 'Cast decimals to "int64" or "float64" first.')
    if kind == "float64":
        floating = list(map(as_float, arguments))
        return Partial(FLOAT64.optional(nullable), floating, partial(_float_division, on_floats), code)
    return Partial(INT64.optional(nullable), arguments, on_ints, code)


def negate(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of unary -."""
    return _unary(call, arguments, scope, np.negative, negate_ints)


def absolute(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of abs."""
    return _unary(call, arguments, scope, np.abs, absolute_ints)


def _unary(call: Call, arguments: Sequence[Node], scope: Scope, function: Any, on_ints: Callable[..., Checked]) -> Node:
    type_ = arguments[0].type
    kind = _common_number(call, arguments)
    if kind == "float64":
        return Total(type_, arguments, partial(_float_function, function))
    if kind == "decimal":
        return Total(type_, arguments, function)  # the range of a decimal is symmetric
    return Partial(type_, arguments, on_ints, _failure(call, scope, "int64 overflow"))


def least(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of min_of: null if any argument is."""
    return _extreme(call, arguments, scope, np.less_equal)


def greatest(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of max_of: null if any argument is."""
    return _extreme(call, arguments, scope, np.greater_equal)


def _extreme(call: Call, arguments: Sequence[Node], scope: Scope, wins: Any) -> Node:
    if not arguments:
        raise TypeMismatch(f"{call.op} of nothing")
    arguments = adapt_all(arguments, scope)
    type_ = common_type(call, arguments)
    node = coerce(arguments[0], type_.optional(arguments[0].type.nullable), scope)
    for argument in arguments[1:]:
        other = coerce(argument, type_.optional(argument.type.nullable), scope)
        nullable = node.type.nullable or other.type.nullable
        node = _pick(type_.optional(nullable), node, other, wins, scope, _failure(call, scope, "int64 overflow"))
    return node


def _pick(type_: Type, a: Node, b: Node, wins: Any, scope: Scope, code: int) -> Node:
    if type_.kind in SYMBOLIC:
        return Total(type_, (a, b), partial(_pick_symbols, scope.symbols, wins))
    if type_.kind == "int64" and type_.nullable and not (a.type.nullable and b.type.nullable):
        return Partial(type_, (a, b), partial(_pick_checked, wins), code)  # -2**63 beside a null column
    return Total(type_, (a, b), partial(_pick_lanes, wins))


def _pick_lanes(wins: Any, a: Ints, b: Ints) -> Ints:
    return np.where(wins(a, b), a, b)


def _pick_checked(wins: Any, a: Ints, b: Ints) -> Checked:
    return np.where(wins(a, b), a, b), None


def _pick_symbols(symbols: Any, wins: Any, a: Ints, b: Ints) -> Ints:
    return np.where(wins(*order_keys(symbols, a, b)), a, b)


# --- one type for several arguments -----------------------------------------------------------------------------------


def common_type(call: Call, arguments: Sequence[Node]) -> Type:
    """The type all arguments can be given without changing a value: equal, up to null and the scale of decimals."""
    first = arguments[0].type
    for argument in arguments:
        if argument.type.kind != first.kind:
            refuse(call, arguments, "The types must be equal: cast one of them.")
    nullable = any_nullable(arguments)
    if first.kind != "decimal":
        return first.optional(nullable)
    scale = max(a.type.scale for a in arguments)
    whole = max(a.type.precision - a.type.scale for a in arguments)
    return decimal(min(MAX_DIGITS, whole + scale), scale).optional(nullable)


def coerce(node: Node, type_: Type, scope: Scope) -> Node:
    """A node as a type of the same kind: of a larger scale, or with null."""
    if node.type.kind == "decimal" and (node.type.scale != type_.scale or node.type.precision > type_.precision):
        up = 10 ** (type_.scale - node.type.scale)
        code = scope.code(f"{type_} overflow")
        scaled = partial(_within, *limits(type_), partial(_scale_up, up))
        return Partial(type_.optional(node.type.nullable), [node], scaled, code)
    if type_.kind == "int64" and type_.nullable and not node.type.nullable:
        if isinstance(node, Constant) and node.lane_value != NULL:
            return node
        return Partial(type_, [node], _refuse_lowest, scope.code("-2**63 is null in a nullable column"))
    return node


def _scale_up(up: int, lane: Ints) -> Checked:
    return lane * up, np.abs(lane) > (10**MAX_DIGITS - 1) // up


def _refuse_lowest(lane: Ints) -> Checked:
    return lane, lane == NULL


def as_bool(values: Bools) -> Ints:
    """The lane of conditions."""
    return values.astype(np.int64)
