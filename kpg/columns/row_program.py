"""A bound expression as a program for one row (kpg.kernels.row_expressions).

    row_program(bound, first_lane)  ->  for each lane of its value, the instructions; or raises Untranslatable

No such form: functions of Python and of text, and computations on values of several lanes. Values of several lanes can
be columns or constants, and can be compared for equality and with null. `first_lane` is added to the lanes it reads.
Cost: linear in the expression; nothing is evaluated.
"""

from __future__ import annotations

from itertools import chain

from kpg.columns.bind import BoundExpression
from kpg.columns.bound_nodes import BoundNode, ColumnNode, ConstantNode, PartialFunctionNode, TotalFunctionNode
from kpg.columns.comparison import IsInNode, IsNullNode
from kpg.columns.computed_nodes import LaneFunctionNode
from kpg.columns.lane_values import NULL
from kpg.columns.logic import ChoiceNode, CoalesceNode, JunctionNode, NotNullNode
from kpg.columns.row_functions import ROW_FUNCTIONS, RowFunction, Steps, row_function
from kpg.columns.schema import Schema
from kpg.kernels import row_expressions as kernel

Instructions = list[int]  # pairs (instruction, operand), one after the other

MAX_STACK = 16  # values on the stack at a time
MAX_MEMBERS = 8  # constants of `is_in`
_NULL_CONSTANT = [kernel.CONSTANT, NULL]
_TAKEN = {  # the values that an instruction takes from the stack; others take two
    kernel.READ: 0,
    kernel.CONSTANT: 0,
    kernel.NOT: 1,
    kernel.IS_NULL: 1,
    kernel.NOT_NULL: 1,
    kernel.ABSOLUTE: 1,
    kernel.FLOAT: 1,
    kernel.CHOOSE: 3,
}


class Untranslatable(Exception):
    """An expression, or a stage with it, has no form for one row."""


def row_program(bound: BoundExpression, first_lane: int = 0) -> list[Instructions]:
    """Return the instructions of each lane of an expression's value, or raise Untranslatable."""
    lanes = _Translation(bound.schema, first_lane).lanes_of(bound.node)
    if any(stack_depth(lane) > MAX_STACK for lane in lanes):
        raise Untranslatable
    return lanes


def stack_depth(instructions: Instructions) -> int:
    """Return the most values that instructions have on the stack at a time."""
    depth = most = 0
    for instruction in instructions[::2]:
        depth += 1 - _TAKEN.get(instruction, 2)
        most = max(most, depth)
    return most


def _combined(parts: list[Instructions], instruction: int) -> Instructions:
    """Return several conditions, combined by AND or OR."""
    return list(chain(parts[0], *[[*part, instruction, 0] for part in parts[1:]]))


class _Translation:
    """Translates the nodes of one expression."""

    def __init__(self, schema: Schema, first_lane: int) -> None:
        self._schema = schema
        self._first_lane = first_lane

    def lanes_of(self, node: BoundNode) -> list[Instructions]:
        """Return the instructions of each lane of a value."""
        match node:
            case ColumnNode():
                return [[kernel.READ, self._first_lane + lane] for lane in self._schema.lanes_at(node.position)]
            case ConstantNode():
                return [[kernel.CONSTANT, value] for value in node.lane_values]
        if node.type.lanes != 1:
            raise Untranslatable
        return [self._computed(node)]

    def _lane_of(self, node: BoundNode) -> Instructions:
        """Return the instructions of a value of one lane."""
        if node.type.lanes != 1:
            raise Untranslatable
        return self.lanes_of(node)[0]

    def _computed(self, node: BoundNode) -> Instructions:
        match node:
            case IsNullNode():
                return self._is_null(node.argument)
            case IsInNode():
                return self._is_in(node)
            case NotNullNode():
                return [*self._lane_of(node.argument), kernel.NOT_NULL, 0]
            case JunctionNode():
                parts = [self._lane_of(argument) for argument in node.arguments]
                return _combined(parts, kernel.OR if node.decisive else kernel.AND)
            case ChoiceNode():
                parts = [self._lane_of(part) for part in (node.condition, node.yes, node.no)]
                return [*chain(*parts), kernel.CHOOSE, 0]
            case CoalesceNode():
                value, other = self._lane_of(node.value), self._lane_of(node.other)
                return [*value, *other, kernel.COALESCE, 0] if node.value.type.nullable else value
            case TotalFunctionNode() | PartialFunctionNode():
                function = row_function(node.compute)
                if any(argument.type.lanes > 1 for argument in node.arguments):
                    return self._wide_comparison(node.arguments, function)
                return self._applied(function, node.arguments)
            case LaneFunctionNode():
                translate = ROW_FUNCTIONS.get(node.function)
                return self._applied(translate and translate(*node.options), node.arguments)
        raise Untranslatable

    def _applied(self, function: RowFunction | None, arguments: tuple[BoundNode, ...]) -> Instructions:
        if function is None:
            raise Untranslatable
        instructions: Instructions = []
        may_be_null: list[bool] = []  # for each value on the stack
        for argument, before in zip(arguments, function.before or ((),) * len(arguments), strict=True):
            instructions += self._lane_of(argument)
            may_be_null.append(argument.type.nullable)
            instructions += _steps(before, may_be_null)
        return instructions + _steps(function.steps, may_be_null)

    def _is_null(self, node: BoundNode) -> Instructions:
        if not node.type.nullable:
            if node.fallible:
                raise Untranslatable
            return [kernel.CONSTANT, 0]
        return _combined([[*lane, kernel.IS_NULL, 0] for lane in self.lanes_of(node)], kernel.AND)

    def _is_in(self, node: IsInNode) -> Instructions:
        if len(node.members) not in range(1, MAX_MEMBERS + 1):
            raise Untranslatable
        value, bits = self._lane_of(node.argument), int(node.argument.type.nullable)
        matches = [[*value, kernel.CONSTANT, member, kernel.EQUAL, bits] for member in node.members.tolist()]
        return _combined(matches, kernel.OR)

    def _wide_comparison(self, arguments: tuple[BoundNode, ...], function: RowFunction | None) -> Instructions:
        """Return whether two values of several lanes are equal, or differ."""
        instruction = None if function is None else function.steps[-1][0]
        if len(arguments) != 2 or instruction not in (kernel.EQUAL, kernel.UNEQUAL):
            raise Untranslatable
        assert instruction is not None
        a, b = [self.lanes_of(argument) for argument in arguments]
        if len(a) != len(b):
            raise Untranslatable
        lanes = [[*left, *right, instruction, 0] for left, right in zip(a, b, strict=True)]
        answer = _combined(lanes, kernel.AND if instruction == kernel.EQUAL else kernel.OR)
        nullable = [self._is_null(argument) for argument in arguments if argument.type.nullable]
        if not nullable:
            return answer
        return [*_combined(nullable, kernel.OR), *_NULL_CONSTANT, *answer, kernel.CHOOSE, 0]


def _steps(steps: Steps, may_be_null: list[bool]) -> Instructions:
    """Return steps on the values on the stack, with the bits of those that may be null; update the stack."""
    instructions: Instructions = []
    for instruction, operand in steps:
        taken = _TAKEN.get(instruction, 2)
        flags = may_be_null[len(may_be_null) - taken :]
        del may_be_null[len(may_be_null) - taken :]
        may_be_null.append(any(flags))
        bits = sum(flag << place for place, flag in enumerate(flags))
        instructions += [instruction, bits if taken else operand]
    return instructions
