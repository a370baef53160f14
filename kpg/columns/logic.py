"""Conditions and choices: comparisons, is_null, is_in, & | ~, when, coalesce, not_null, hash.

Comparisons never fail. NaN equals itself and is above +inf; decimals compare by value whatever their scale.
& and | are three-valued and indifferent to order: false & anything is false and true | anything is true, whether the
other side is null or failed. `when` and `coalesce` take only the failures of what they choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from kpg.columns.arithmetic import as_bool, coerce, common_type, refuse
from kpg.columns.column import encode_value
from kpg.columns.node import (
    Answer,
    Bools,
    Constant,
    Node,
    Scope,
    Total,
    adapt_all,
    any_nullable,
    first_code,
    run_all,
    spread_to,
)
from kpg.columns.ordering import order_keys
from kpg.columns.schema import BOOL, INT64, MAX, NULL, SYMBOLIC, Type
from kpg.columns.symbols import Symbols
from kpg.columns.syntax import Call
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
_FEW = 8  # up to here, comparing one by one beats searching

# --- comparisons ------------------------------------------------------------------------------------------------------


def compare(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of == != < <= > >=."""
    a, b = adapt_all(arguments, scope)
    if isinstance(a, Constant) and a.untyped and isinstance(b, Constant) and b.untyped:
        refuse(call, (a, b), "Use is_null() to ask for null.")
    function = _COMPARE[call.op]
    type_ = BOOL.optional(any_nullable((a, b)))
    number = {a.type.kind, b.type.kind} == {"decimal", "int64"} and (isinstance(a, Constant) or isinstance(b, Constant))
    if a.type.kind != b.type.kind and not number:
        refuse(call, (a, b), f'Types must be equal to be compared: cast one, as in .cast("{a.type.optional(False)}").')
    if a.type.scale != b.type.scale:
        scale = max(a.type.scale, b.type.scale)
        ups = 10 ** (scale - a.type.scale), 10 ** (scale - b.type.scale)
        return Total(type_, (a, b), partial(_compare_scaled, function, *ups))
    if a.type.kind in SYMBOLIC and call.op not in ("==", "!="):
        return Total(type_, (a, b), partial(_compare_symbols, scope.symbols, function))
    return Total(type_, (a, b), partial(_compare_lanes, function))


def _compare_lanes(function: Any, a: Ints, b: Ints) -> Ints:
    return as_bool(function(a, b))


def _compare_symbols(symbols: Symbols, function: Any, a: Ints, b: Ints) -> Ints:
    return as_bool(function(*order_keys(symbols, a, b)))


def _compare_scaled(function: Any, up_a: int, up_b: int, a: Ints, b: Ints) -> Ints:
    return as_bool(function(_saturated(a, up_a), _saturated(b, up_b)))


def _saturated(lane: Ints, up: int) -> Ints:
    """lane * up, or the largest number where that does not fit: it is above every decimal all the same."""
    limit = MAX // up
    return np.where(lane > limit, MAX, np.where(lane < -limit, -MAX, lane * up))


def is_null(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of is_null."""
    return IsNull(arguments[0])


class IsNull(Node):
    """Whether there is no value."""

    __slots__ = ("_argument",)

    def __init__(self, argument: Node) -> None:
        super().__init__(BOOL, (argument,), False)
        self._argument = argument

    def run(self, data: Ints) -> Answer:
        values, codes = self._argument.run(data)
        if not self._argument.type.nullable:
            return np.zeros(len(values), np.int64), codes
        return as_bool(values == NULL), codes


def is_in(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of is_in."""
    (argument,) = arguments
    type_ = argument.type.optional(False)
    lanes = []
    for literal in call.options:
        if literal.value is None:
            raise TypeMismatch("null is not among any values", detail=f"In {call!r}.", hint="Use is_null() for null.")
        try:
            lanes.append(encode_value(type_, literal.value, scope.symbols))
        except (ValueError, TypeError, SchemaMismatch) as error:
            raise TypeMismatch(f"{literal.value!r} is not a {type_}", detail=f"{error}, in {call!r}.") from None
    return IsIn(argument, np.array(sorted(set(lanes)), np.int64), scope.symbols)


class IsIn(Node):
    """Whether the value is one of some constants."""

    __slots__ = ("_argument", "_held", "_members")

    def __init__(self, argument: Node, members: Ints, symbols: Symbols) -> None:
        super().__init__(BOOL.optional(argument.type.nullable), (argument,), False)
        self._argument = argument
        self._members = members
        self._held = symbols.hold(members) if argument.type.kind in SYMBOLIC else None

    def run(self, data: Ints) -> Answer:
        values, codes = self._argument.run(data)
        if len(self._members) <= _FEW:
            found = np.zeros(len(values), np.bool_)
            for member in self._members:
                found |= values == member
        else:
            found = np.isin(values, self._members)
        answer = as_bool(found)
        if self._argument.type.nullable:
            answer = np.where(values == NULL, NULL, answer)
        return answer, codes


# --- and, or, not -----------------------------------------------------------------------------------------------------


def conjunction(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of &."""
    return Junction(_conditions(call, arguments, scope), 0)


def disjunction(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of |."""
    return Junction(_conditions(call, arguments, scope), 1)


def negation(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of ~."""
    (argument,) = _conditions(call, arguments, scope)
    return Total(argument.type, (argument,), _invert)


def _invert(lane: Ints) -> Ints:
    return 1 - lane


def _conditions(call: Call, arguments: Sequence[Node], scope: Scope) -> list[Node]:
    settled = [
        Constant(BOOL.optional(), None, NULL, scope.symbols) if isinstance(a, Constant) and a.untyped else a
        for a in arguments
    ]
    if any(argument.type.kind != "bool" for argument in settled):
        refuse(call, settled, "Put parentheses around comparisons: (a > 1) & (b < 2).")
    return settled


class Junction(Node):
    """& (`decisive` is 0) or | (`decisive` is 1): one decisive side decides, else null or failure shows."""

    __slots__ = ("_arguments", "_decisive")

    def __init__(self, arguments: list[Node], decisive: int) -> None:
        super().__init__(BOOL.optional(any_nullable(arguments)), arguments, False)
        self._arguments = arguments
        self._decisive = decisive

    def run(self, data: Ints) -> Answer:
        (a, a_codes), (b, b_codes) = (argument.run(data) for argument in self._arguments)
        if not self.type.nullable and a_codes is None and b_codes is None:
            return (a | b if self._decisive else a & b), None
        decided = self._decides(a, a_codes) | self._decides(b, b_codes)
        values = np.where((a == NULL) | (b == NULL), NULL, 1 - self._decisive)
        codes = first_code(a_codes, b_codes)
        if codes is not None:
            codes = np.where(decided, 0, codes)
        return np.where(decided, self._decisive, values), codes

    def _decides(self, values: Ints, codes: Ints | None) -> Bools:
        decisive: Bools = values == self._decisive
        return decisive if codes is None else decisive & (codes == 0)


# --- choices ----------------------------------------------------------------------------------------------------------


def when(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of when ... otherwise: the first whose condition is true."""
    conditions = _conditions(call, arguments[:-1:2], scope)
    branches = adapt_all([*arguments[1:-1:2], arguments[-1]], scope)
    type_ = common_type(call, branches)
    *values, node = [coerce(branch, type_, scope) for branch in branches]
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        node = Choice(type_, condition, value, node)
    return node


class Choice(Node):
    """One value where a condition is true, another where it is false or null."""

    __slots__ = ("_condition", "_no", "_yes")

    def __init__(self, type_: Type, condition: Node, yes: Node, no: Node) -> None:
        super().__init__(type_, (condition, yes, no), False)
        self._condition = condition
        self._yes = yes
        self._no = no

    def run(self, data: Ints) -> Answer:
        condition, codes = self._condition.run(data)
        values, others = choose(condition == 1, self._yes, self._no, data)
        return values, first_code(codes, others)


def choose(chosen: Bools, yes: Node, no: Node, data: Ints) -> Answer:
    """The answers of one node for some rows and of another for the rest; neither sees rows it could fail on in vain."""
    if chosen.all():
        return yes.run(data)
    if not chosen.any():
        return no.run(data)
    if not (yes.fallible or no.fallible):
        return np.where(chosen, yes.run(data)[0], no.run(data)[0]), None
    values = np.empty(len(chosen), np.int64)
    codes = np.zeros(len(chosen), np.int64)
    for rows, node in ((chosen, yes), (~chosen, no)):
        values[rows], found = node.run(np.ascontiguousarray(data[:, rows]))
        codes[rows] = 0 if found is None else found
    return values, codes if codes.any() else None


def coalesce(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of coalesce: the first that is not null."""
    if not arguments:
        raise TypeMismatch("coalesce of nothing")
    arguments = adapt_all(arguments, scope)
    type_ = common_type(call, arguments)
    if not all(argument.type.nullable for argument in arguments):
        type_ = type_.optional(False)
    *values, node = [argument if not type_.nullable else coerce(argument, type_, scope) for argument in arguments]
    if type_.kind == "decimal":
        *values, node = [coerce(argument, type_.optional(argument.type.nullable), scope) for argument in arguments]
    for value in reversed(values):
        node = FirstPresent(type_, value, node)
    return node


class FirstPresent(Node):
    """A value, or another where it is null."""

    __slots__ = ("_other", "_value")

    def __init__(self, type_: Type, value: Node, other: Node) -> None:
        super().__init__(type_, (value, other), False)
        self._value = value
        self._other = other

    def run(self, data: Ints) -> Answer:
        values, codes = self._value.run(data)
        if not self._value.type.nullable:
            return values, codes
        n = data.shape[1]
        values = spread_to(values, n)
        missing = values == NULL if codes is None else (values == NULL) & (spread_to(codes, n) == 0)
        if not missing.any():
            return values, codes
        values = values.copy()
        other, other_codes = self._other.run(np.ascontiguousarray(data[:, missing]))
        values[missing] = other
        if other_codes is None:
            return values, codes
        codes = np.zeros(n, np.int64) if codes is None else spread_to(codes, n).copy()
        codes[missing] = other_codes
        return values, codes


def not_null(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of not_null."""
    (argument,) = arguments
    if not argument.type.nullable:
        return argument
    return NotNull(argument, scope.code(f"null in {call!r}"))


class NotNull(Node):
    """The value; a row without one fails."""

    __slots__ = ("_argument", "_code")

    def __init__(self, argument: Node, code: int) -> None:
        super().__init__(argument.type.optional(False), (argument,), True)
        self._argument = argument
        self._code = code

    def run(self, data: Ints) -> Answer:
        values, codes = self._argument.run(data)
        null = values == NULL
        if null.any():
            codes = first_code(codes, np.where(null, self._code, 0))
        return values, codes


# --- hash -------------------------------------------------------------------------------------------------------------


def hash_value(call: Call, arguments: Sequence[Node], scope: Scope) -> Node:
    """The rule of hash."""
    return Hash(arguments[0], scope.symbols)


class Hash(Node):
    """A number from the value alone: of strings from their text, of all else from the lane."""

    __slots__ = ("_argument", "_symbols")

    def __init__(self, argument: Node, symbols: Symbols) -> None:
        super().__init__(INT64, (argument,), False)
        self._argument = argument
        self._symbols = symbols

    def run(self, data: Ints) -> Answer:
        values, codes = run_all((self._argument,), data)
        (lane,) = values
        if self._argument.type.kind in SYMBOLIC:
            hashes = self._symbols.hashes()
            lane = np.where(lane < 0, NULL, hashes[np.maximum(lane, 0)]) if len(hashes) else lane
        return mix(lane), codes


def mix(lane: Ints) -> Ints:
    """Each number scrambled, no two alike (the finaliser of splitmix64)."""
    z = lane.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).view(np.int64)
