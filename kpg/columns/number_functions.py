"""Functions of numbers beyond arithmetic: bits, powers, sines and their kin, and numbers written in text.

    bits("band", a, b)       on int64 and uint64; shifts take the count modulo 64, "bshru" fills with zeros
    power(a, b)              of integers: exact, or the row fails; a negative exponent rounds towards zero
    a ** b                   the same, but a negative exponent fails; of other numbers as float64
    a.round(digits)          a float half to even, a decimal half away from zero, an integer stays
    math("sin", x)           on float64, as in C: outside of its domain the result is NaN
    parse_number(text, t)    text in decimal, or behind 0x or 0b, with a sign in front; other text fails its row

All but the last are vectorised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from kpg.columns import floats
from kpg.columns.bound_nodes import (
    BindingScope,
    BoundNode,
    PartialFunctionNode,
    TotalFunctionNode,
    adapt_all,
    any_nullable,
)
from kpg.columns.casts import cast
from kpg.columns.coercion import as_float, common_type, refuse
from kpg.columns.column_types.uint64_type import from_unsigned_lane, to_unsigned_lane
from kpg.columns.expression import Expression, FunctionCall, wrap
from kpg.columns.lane_values import MAX
from kpg.columns.overflow import Checked
from kpg.columns.schema import FLOAT64, Type, decimal
from kpg.columns.text import PerValueNode
from kpg.columns.updates import Ints
from kpg.columns.wide_integers import MAX_DIGITS

_SHIFT_MASK: Final = 63  # counts of shifts are taken modulo the 64 bits of a number
MATH: Final[dict[str, Callable[[Any], Any]]] = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "log": np.log, "exp": np.exp,
}  # fmt: skip


def bits(name: str, *arguments: object) -> Expression:
    """Return an operation on the bits of integers: band, bor, bxor, bnot, bshl, bshr or bshru."""
    return FunctionCall("bits", tuple(map(wrap, arguments)), (name,))


def power(base: object, exponent: object) -> Expression:
    """Return an integer raised to an integer."""
    return FunctionCall("power", (wrap(base), wrap(exponent)))


def math(name: str, value: object) -> Expression:
    """Return a function of floats, by its name in C: sin, cos, ..., log, exp."""
    return FunctionCall("math", (wrap(value),), (name,))


def parse_number(text: Expression, type_: Type) -> Expression:
    """Return the integer that a text stands for."""
    return FunctionCall("parse_number", (text,), (type_,))


# --- binding ----------------------------------------------------------------------------------------------------------


def bind_bits(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind bits."""
    arguments = adapt_all(arguments, scope)
    type_ = common_type(call, arguments)
    if type_.kind not in ("int64", "uint64"):
        refuse(call, arguments, "Only integers have bits.")
    function = _BITS[call.options[0]]
    return TotalFunctionNode(type_, arguments, partial(_on_bits, function, type_.kind == "uint64"))


def _on_bits(function: Callable[..., Any], is_unsigned: bool, *lanes: Ints) -> Ints:
    if not is_unsigned:
        return function(*lanes)  # type: ignore[no-any-return]
    return to_unsigned_lane(np.asarray(function(*map(from_unsigned_lane, lanes)), np.uint64))


def _shift_left(a: Any, b: Any) -> Any:
    return np.left_shift(a, b & a.dtype.type(_SHIFT_MASK))


def _shift_right(a: Any, b: Any) -> Any:
    return np.right_shift(a, b & a.dtype.type(_SHIFT_MASK))


def _shift_right_unsigned(a: Any, b: Any) -> Any:
    shifted = np.right_shift(a.view(np.uint64), (b & a.dtype.type(_SHIFT_MASK)).astype(np.uint64))
    return shifted.view(a.dtype)


_BITS: Final[dict[str, Callable[..., Any]]] = {
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor, "bnot": np.invert, "bshl": _shift_left,
    "bshr": _shift_right, "bshru": _shift_right_unsigned,
}  # fmt: skip


def bind_power(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind power."""
    arguments = adapt_all(arguments, scope)
    type_ = common_type(call, arguments)
    if type_.kind not in ("int64", "uint64"):
        refuse(call, arguments, "Use integers, or ** of NumPy in a udf for floats.")
    code = scope.code("overflow", call)
    function = _unsigned_power if type_.kind == "uint64" else _power
    return PartialFunctionNode(type_, arguments, function, code)


def bind_real_power(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind **."""
    arguments = adapt_all(arguments, scope)
    if not all(argument.type.is_numeric for argument in arguments):
        refuse(call, arguments, "Only numbers have powers.")
    if {argument.type.kind for argument in arguments} == {"int64"}:
        code = scope.code("overflow or negative exponent", call)
        return PartialFunctionNode(common_type(call, arguments), arguments, _power_of_natural, code)
    if {argument.type.kind for argument in arguments} == {"uint64"}:
        return bind_power(call, arguments, scope)
    return TotalFunctionNode(FLOAT64.optional(any_nullable(arguments)), [*map(as_float, arguments)], _real_power)


def _power_of_natural(a: Ints, b: Ints) -> Checked:
    values, failed = _power(a, b)
    return values, (b < 0) if failed is None else failed | (b < 0)


def _real_power(a: Ints, b: Ints) -> Ints:
    return floats.to_lane(_float_power(floats.from_lane(a), floats.from_lane(b)))


def bind_round(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind round."""
    (argument,), (digits,) = arguments, call.options
    type_ = argument.type
    if type_.kind == "float64":
        return TotalFunctionNode(type_, arguments, partial(_on_floats, partial(np.round, decimals=digits)))
    if type_.kind == "int64" and digits >= 0:
        return argument
    if type_.kind == "decimal" and digits >= type_.scale:
        return argument
    if type_.kind == "decimal" and digits >= 0:
        whole = type_.precision - type_.scale + 1  # 9.9 rounds to 10
        target = decimal(min(MAX_DIGITS, max(whole + digits, 1)), digits)
        return cast(FunctionCall("cast", call.arguments, (target,)), arguments, scope)
    refuse(call, arguments, "Floats, and decimals with digits from 0 on, can be rounded.")


def _power(a: Ints, b: Ints) -> Checked:
    about = _float_power(a, b)
    beyond = ~(np.abs(about) < 2.0**63)
    whole = np.where(beyond, 0.0, about).astype(np.int64)  # of a negative exponent: -1, 0 or 1
    exact = np.power(a, np.maximum(b, 0))
    fits = (b == 1) | ((about == -(2.0**63)) & (exact == -MAX - 1))  # the float of 2^63 - 1 is 2^63; -2^63 is a value
    return np.where(b >= 0, exact, whole), beyond & ~fits


def _unsigned_power(a: Ints, b: Ints) -> Checked:
    base, exponent = from_unsigned_lane(a), from_unsigned_lane(b)
    beyond = ~(_float_power(base, exponent) < 2.0**64)
    return to_unsigned_lane(np.power(base, exponent)), beyond & (exponent != 1)  # the float of 2^64 - 1 is 2^64


def _float_power(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):  # 0 to a negative power is infinite: the row fails
        return np.power(a.astype(np.float64), b.astype(np.float64))


def bind_math(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind math."""
    if not all(argument.type.is_numeric for argument in arguments):
        refuse(call, arguments, "It is a function of numbers.")
    type_ = FLOAT64.optional(any_nullable(arguments))
    return TotalFunctionNode(type_, list(map(as_float, arguments)), partial(_on_floats, MATH[call.options[0]]))


def _on_floats(function: Callable[[Any], Any], lane: Ints) -> Ints:
    with np.errstate(all="ignore"):  # inf and NaN are values
        return floats.to_lane(function(floats.from_lane(lane)))


def bind_parse_number(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind parse_number."""
    (argument,) = arguments
    if argument.type.kind != "string":
        refuse(call, arguments, "Only strings are parsed.")
    (type_,) = call.options
    code = scope.code(f"the text is not a value of {type_}", call)
    return PerValueNode(type_.optional(argument.type.nullable), (argument,), parse_integer, scope, code)


def parse_integer(text: str) -> int:
    """Return an integer in decimal, or behind 0x or 0b, with or without a sign; raise ValueError for other text."""
    digits = text.strip()
    sign = -1 if digits.startswith("-") else 1
    digits = digits[1:] if digits[:1] in ("-", "+") else digits
    base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 10)
    digits = digits if base == 10 else digits[2:]
    if not digits.isascii() or not digits.isalnum() or len(digits) > 64:
        raise ValueError(text)
    return sign * int(digits, base)
