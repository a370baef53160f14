"""Logic and choices: & | ~, when, coalesce, not_null, fails.

& and | follow three-valued logic, and the order of their sides does not matter: false & x is false and true | x is
true, even if x is null or has failed. `when` and `coalesce` fail only where the value they choose has failed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpg.columns.bound_nodes import (
    BindingScope,
    Bools,
    BoundNode,
    ConstantNode,
    NodeResult,
    TotalFunctionNode,
    adapt_all,
    any_nullable,
    first_code,
    null_node,
    spread_lane,
)
from kpg.columns.coercion import coerce, common_type, refuse
from kpg.columns.encode_column import empty_lane
from kpg.columns.expression import FunctionCall
from kpg.columns.lane_values import NULL, is_null
from kpg.columns.schema import BOOL, Type
from kpg.columns.updates import Ints
from kpg.errors import TypeMismatch


def conjunction(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind &."""
    return JunctionNode(_conditions(call, arguments, scope), 0)


def disjunction(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind |."""
    return JunctionNode(_conditions(call, arguments, scope), 1)


def negation(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind ~."""
    (argument,) = _conditions(call, arguments, scope)
    return TotalFunctionNode(argument.type, (argument,), invert)


def invert(lane: Ints) -> Ints:
    """Return the negation of conditions."""
    return 1 - lane


def _conditions(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> list[BoundNode]:
    conditions = [null_node(BOOL, scope) if isinstance(a, ConstantNode) and a.untyped else a for a in arguments]
    if any(argument.type.kind != "bool" for argument in conditions):
        refuse(call, conditions, "Put parentheses around comparisons: (a > 1) & (b < 2).")
    return conditions


class JunctionNode(BoundNode):
    """& (`decisive` is 0) or | (`decisive` is 1): one decisive side decides; otherwise null or failure shows."""

    __slots__ = ("arguments", "decisive")

    def __init__(self, arguments: list[BoundNode], decisive: int) -> None:
        super().__init__(BOOL.optional(any_nullable(arguments)), arguments, False)
        self.arguments = arguments
        self.decisive = decisive

    def run(self, data: Ints) -> NodeResult:
        (a, a_codes), (b, b_codes) = (argument.run(data) for argument in self.arguments)
        if not self.type.nullable and a_codes is None and b_codes is None:
            return (a | b if self.decisive else a & b), None
        decided = self._decides(a, a_codes) | self._decides(b, b_codes)
        values = np.where((a == NULL) | (b == NULL), NULL, 1 - self.decisive)
        codes = first_code(a_codes, b_codes)
        if codes is not None:
            codes = np.where(decided, 0, codes)
        return np.where(decided, self.decisive, values), codes

    def required_constants(self) -> dict[int, tuple[int, ...]]:
        if self.decisive:
            return {}
        return {column: lanes for node in self.arguments for column, lanes in node.required_constants().items()}

    def _decides(self, values: Ints, codes: Ints | None) -> Bools:
        decisive: Bools = values == self.decisive
        return decisive if codes is None else decisive & (codes == 0)


def when(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind when ... otherwise: the value of the first condition that is true."""
    conditions = _conditions(call, arguments[:-1:2], scope)
    branches = adapt_all([*arguments[1:-1:2], arguments[-1]], scope)
    type_ = common_type(call, branches)
    *values, node = [coerce(branch, type_, scope) for branch in branches]
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        node = ChoiceNode(type_, condition, value, node)
    return node


class ChoiceNode(BoundNode):
    """One value where a condition is true, another where it is false or null."""

    __slots__ = ("condition", "no", "yes")

    def __init__(self, type_: Type, condition: BoundNode, yes: BoundNode, no: BoundNode) -> None:
        super().__init__(type_, (condition, yes, no), False)
        self.condition = condition
        self.yes = yes
        self.no = no

    def run(self, data: Ints) -> NodeResult:
        condition, codes = self.condition.run(data)
        values, others = choose(condition == 1, self.yes, self.no, data)
        return values, first_code(codes, others)


def choose(chosen: Bools, yes: BoundNode, no: BoundNode, data: Ints) -> NodeResult:
    """Return the results of one node for the chosen rows and of another for the rest.

    A node that can fail sees only its own rows, so that no row fails on a value that is not chosen.
    """
    if chosen.all():
        return yes.run(data)
    if not chosen.any():
        return no.run(data)
    if not (yes.fallible or no.fallible):
        return np.where(chosen, yes.run(data)[0], no.run(data)[0]), None
    values = empty_lane(yes.type, len(chosen))
    codes = np.zeros(len(chosen), np.int64)
    for rows, node in ((chosen, yes), (~chosen, no)):
        values[..., rows], node_codes = node.run(np.ascontiguousarray(data[:, rows]))
        codes[rows] = 0 if node_codes is None else node_codes
    return values, codes if codes.any() else None


def coalesce(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind coalesce: the first value that is not null."""
    if not arguments:
        raise TypeMismatch("coalesce needs at least one value")
    arguments = adapt_all(arguments, scope)
    type_ = common_type(call, arguments)
    if not all(argument.type.nullable for argument in arguments):
        type_ = type_.optional(False)
    *values, node = [argument if not type_.nullable else coerce(argument, type_, scope) for argument in arguments]
    if type_.kind == "decimal":
        *values, node = [coerce(argument, type_.optional(argument.type.nullable), scope) for argument in arguments]
    for value in reversed(values):
        node = CoalesceNode(type_, value, node)
    return node


class CoalesceNode(BoundNode):
    """A value, and another one where it is null."""

    __slots__ = ("other", "value")

    def __init__(self, type_: Type, value: BoundNode, other: BoundNode) -> None:
        super().__init__(type_, (value, other), False)
        self.value = value
        self.other = other

    def run(self, data: Ints) -> NodeResult:
        values, codes = self.value.run(data)
        if not self.value.type.nullable:
            return values, codes
        n = data.shape[1]
        values = spread_lane(values, n)
        missing = is_null(values) if codes is None else is_null(values) & (spread_lane(codes, n) == 0)
        if not missing.any():
            return values, codes
        values = values.copy()
        other, other_codes = self.other.run(np.ascontiguousarray(data[:, missing]))
        values[..., missing] = other
        if other_codes is None:
            return values, codes
        codes = np.zeros(n, np.int64) if codes is None else spread_lane(codes, n).copy()
        codes[missing] = other_codes
        return values, codes


def not_null(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind not_null; an option is the reason that messages give instead of "null"."""
    (argument,) = arguments
    if not argument.type.nullable:
        return argument
    return NotNullNode(argument, scope.code(call.options[0]) if call.options else scope.code("null", call))


class NotNullNode(BoundNode):
    """The value; a row with null fails."""

    __slots__ = ("_code", "argument")

    def __init__(self, argument: BoundNode, code: int) -> None:
        super().__init__(argument.type.optional(False), (argument,), True)
        self.argument = argument
        self._code = code

    def run(self, data: Ints) -> NodeResult:
        values, codes = self.argument.run(data)
        null = is_null(values)
        if null.any():
            codes = first_code(codes, np.where(null, self._code, 0))
        return values, codes


def fails(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind fails."""
    (argument,) = arguments
    return FailsNode(argument)


class FailsNode(BoundNode):
    """Whether the argument fails."""

    __slots__ = ("_argument",)

    def __init__(self, argument: BoundNode) -> None:
        super().__init__(BOOL, (argument,), False)
        self.fallible = False
        self._argument = argument

    def run(self, data: Ints) -> NodeResult:
        codes = self._argument.run(data)[1] if self._argument.fallible else None
        return (np.zeros(1, np.int64) if codes is None else (codes != 0).astype(np.int64)), None


def succeeds(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind succeeds: true, or a failure where the argument fails. `&` thus lets a false condition hide the failure."""
    (argument,) = arguments
    return SucceedsNode(argument)


class SucceedsNode(BoundNode):
    """True; a row fails where the argument fails."""

    __slots__ = ("_argument",)

    def __init__(self, argument: BoundNode) -> None:
        super().__init__(BOOL, (argument,), False)
        self._argument = argument

    def run(self, data: Ints) -> NodeResult:
        return np.ones(1, np.int64), self._argument.run(data)[1]
