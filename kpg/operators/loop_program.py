"""The stages of a linear operator as numbers, for the kernel that runs small loops (kpg.kernels.loop_stages).

    stages_program(stages)  ->  the numbers, the lanes of the output and the most lanes of a stage, or None

None if a stage has no such form: a function of Python, a value of several lanes, null, text in other ways than whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kpg.columns.bind import BoundExpression
from kpg.columns.expression import ColumnReference, Expression, FunctionCall, Literal, Named, Written
from kpg.columns.schema import Schema
from kpg.kernels import loop_stages as kernel
from kpg.operators.linear import (
    ComplementStage,
    ComputeStage,
    ExplodeStage,
    FilterStage,
    LinearStage,
    NegateStage,
    PickStage,
)

MAX_STACK: Final = 16  # values of an expression on the stack at a time
ARITHMETIC: Final = {"+": kernel.ADD, "-": kernel.SUBTRACT, "*": kernel.MULTIPLY}
COMPARISONS: Final = {"==": kernel.EQUAL, "!=": kernel.UNEQUAL, "<": kernel.LESS, "<=": kernel.LESS_EQUAL}
REVERSED: Final = {">": kernel.LESS, ">=": kernel.LESS_EQUAL}  # of exchanged operands
LOGIC: Final = {"&": kernel.AND, "|": kernel.OR}


class StagesProgram(NamedTuple):
    """Stages as numbers."""

    numbers: list[int]
    lanes: int | None  # of the output; None if it is that of the input
    most_lanes: int  # that a stage writes


class Untranslatable(Exception):
    """An expression or a stage has no small version."""


def stages_program(stages: Sequence[LinearStage]) -> StagesProgram | None:
    """Return the stages as numbers, or None if one of them has no such form."""
    numbers: list[int] = []
    lanes: int | None = None
    most = 0
    for stage in stages:
        try:
            numbers += _stage(stage)
        except Untranslatable:
            return None
        lanes = _output_lanes(stage, lanes)
        most = max(most, lanes or 0)
    return StagesProgram(numbers, lanes, most)


def _stage(stage: LinearStage) -> list[int]:
    match stage:
        case PickStage():
            return [kernel.PICK, len(stage.lanes), *stage.lanes]
        case NegateStage():
            return [kernel.NEGATE]
        case ComplementStage():
            return [kernel.COMPLEMENT, len(stage.lanes), *stage.lanes]
        case ExplodeStage():
            return [kernel.EXPLODE, stage.lane, len(stage.kept), *stage.kept]
        case FilterStage():
            instructions = _instructions(stage.expression, stage.lanes[0] if stage.lanes else 0)
            return [kernel.FILTER, len(instructions) // 2, *instructions]
        case ComputeStage():
            return [kernel.COMPUTE, len(stage.read_lanes), *_computed(stage)]
    raise Untranslatable


def _output_lanes(stage: LinearStage, before: int | None) -> int | None:
    match stage:
        case PickStage():
            return len(stage.lanes)
        case ExplodeStage():
            return len(stage.kept)
        case ComputeStage():
            return len(stage.read_lanes)
    return before


def _computed(stage: ComputeStage) -> list[int]:
    numbers: list[int] = []
    for expression in stage.expressions:
        if expression.column is not None:
            for lane in expression.read_lanes:
                assert lane is not None
                numbers += [1, kernel.READ, lane]
        else:
            instructions = _instructions(expression, 0)
            numbers += [len(instructions) // 2, *instructions]
    return numbers


def _instructions(bound: BoundExpression, first_lane: int) -> list[int]:
    """Return the instructions of an expression of one lane."""
    translated = _translate(bound.expression, bound.schema, first_lane)
    if translated.depth > MAX_STACK:
        raise Untranslatable
    return translated.numbers


class _Translated(NamedTuple):
    numbers: list[int]
    kind: str  # of the type of its value
    depth: int  # of the stack


def _translate(expression: Expression, schema: Schema, first_lane: int) -> _Translated:
    match expression:
        case Named() | Written():
            return _translate(expression.expression, schema, first_lane)
        case ColumnReference():
            position = schema.index(expression.name)
            type_ = schema.types[position]
            if type_.lanes > 1 or type_.nullable:
                raise Untranslatable
            return _Translated([kernel.READ, first_lane + schema.lanes_at(position)[0]], type_.kind, 1)
        case Literal(value=int() as value) if abs(value) <= kernel.MAX_VALUE:
            return _Translated([kernel.CONSTANT, int(value)], "bool" if isinstance(value, bool) else "int64", 1)
        case FunctionCall() if expression.op == "~":
            (inner,) = [_translate(argument, schema, first_lane) for argument in expression.arguments]
            _require_kinds("bool", inner)
            return _Translated([*inner.numbers, kernel.NOT, 0], "bool", inner.depth)
        case FunctionCall() if len(expression.arguments) == 2:
            left, right = [_translate(argument, schema, first_lane) for argument in expression.arguments]
            return _binary(expression.op, left, right)
    raise Untranslatable


def _binary(op: str, left: _Translated, right: _Translated) -> _Translated:
    if op in REVERSED:
        left, right = right, left
    numbers, depth = [*left.numbers, *right.numbers], max(left.depth, 1 + right.depth)
    if op in ARITHMETIC:
        _require_kinds("int64", left, right)
        return _Translated([*numbers, ARITHMETIC[op], 0], "int64", depth)
    if op in LOGIC:
        _require_kinds("bool", left, right)
        return _Translated([*numbers, LOGIC[op], 0], "bool", depth)
    instruction = COMPARISONS.get(op, REVERSED.get(op))
    is_equality = op in ("==", "!=")
    if instruction is None or left.kind != right.kind or not (is_equality or left.kind in ("int64", "bool")):
        raise Untranslatable
    if is_equality and left.kind not in ("int64", "bool", "string", "date", "timestamp"):
        raise Untranslatable
    return _Translated([*numbers, instruction, 0], "bool", depth)


def _require_kinds(kind: str, *parts: _Translated) -> None:
    if any(part.kind != kind for part in parts):
        raise Untranslatable
