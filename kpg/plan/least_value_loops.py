"""Recognise loops that keep the least value of each node, and render them as one operator.

    least  =  (starts + step(least)).group_by(node).min(value)          step: a join with edges; the value plus a weight
    nodes  =  (starts + step(nodes)).distinct()

The loop has one variable, at any point of the cycle. Each step is a join of the result with a collection outside the
loop, by the node, and a selection of the target and of the value, or its sum with a constant or a column of the edges.
`max` is the minimum of complements. The operator needs all rows, and times of one coordinate: with several workers, or
inside another loop, the loop stays a loop. The fixed point is the same; the operator has no rounds, so an error that
only a round before the last has is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kpg.columns.bind import bind
from kpg.columns.expression import ColumnReference, Expression, FunctionCall, Literal, Named
from kpg.columns.schema import INT64, Schema
from kpg.operators import linear
from kpg.operators.maintain_least_values import maintain_least_values
from kpg.plan import nodes
from kpg.plan.rendered import Rendered
from kpg.seminaive.least_values import LeastValueSpec

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


class NotLeastValuesError(Exception):
    """A loop is none of least values; the message says why."""


@dataclass(frozen=True, slots=True)
class EdgeStep:
    """A join of a recursion: the edges, their columns, and the constant that it adds to a value."""

    edges: nodes.PlanNode
    source: str
    target: str
    weight: str | None
    constant: int

    def reverse(self) -> EdgeStep:
        """Return the step along the same edges in the other direction."""
        return EdgeStep(self.edges, self.target, self.source, self.weight, self.constant)


@dataclass(frozen=True, slots=True)
class LeastValueLoop:
    """A recognised loop."""

    spec: LeastValueSpec
    result: nodes.ReduceNode
    value: str | None  # the column of values
    greatest: bool  # whether it keeps the greatest values instead
    starts: tuple[nodes.PlanNode, ...]
    steps: tuple[EdgeStep, ...]

    def inputs(self) -> tuple[nodes.PlanNode, ...]:
        """Return the collections that the operator reads."""
        return (*self.starts, *[step.edges for step in self.steps])


def recognise(leave: nodes.LeaveNode) -> LeastValueLoop:
    """Return the loop that a node leaves as one of least values. Raise NotLeastValuesError if it is none."""
    loop = leave.loop
    if loop.surrounding() or leave.loops:
        raise NotLeastValuesError("it is inside another loop")
    if len(loop.definitions) != 1 or loop.stops:
        raise NotLeastValuesError("it has a limit, or several variables")
    (variable,) = loop.definitions
    definition = without_index(loop.definition(variable))
    result = without_index(leave.input)
    result = definition if result is variable else result
    if not isinstance(result, nodes.ReduceNode) or loop not in result.loops:
        raise NotLeastValuesError("its result is no minimum, maximum or distinct rows")
    value, greatest = value_of(result)
    starts, steps = [], []
    carriers = (result, variable) if definition is result else (result,)
    has_source = False
    for part in parts_of(result.input):
        if part is variable and definition is result:
            has_source = True  # what the variable holds stays
        elif part is variable:
            steps += [step_of(step, loop, carriers, result, value) for step in parts_of(definition)]
        elif loop not in part.loops:
            starts.append(part)
        elif isinstance(part, nodes.EnterNode) and part.loop is loop and (rows := part.without_rounds()) is not None:
            starts += parts_of(rows)
        else:
            steps.append(step_of(part, loop, carriers, result, value))
    if has_source and variable.source is not None:
        starts.append(variable.source)
    if variable.source is not None and variable.source not in starts:
        raise NotLeastValuesError("a row of round 0 need not be one of later rounds")
    if not starts or not steps:
        raise NotLeastValuesError("it has no rows to start from, or no join")
    spec = spec_of(loop, steps, value is not None, greatest)
    kept = without_reverse(steps) if spec.both_ways else steps
    if not greatest and are_own_starts(starts, kept, spec):
        return LeastValueLoop(replace(spec, own_starts=True), result, value, greatest, (), tuple(kept))
    return LeastValueLoop(spec, result, value, greatest, tuple(starts), tuple(kept))


def are_own_starts(starts: list[nodes.PlanNode], steps: list[EdgeStep], spec: LeastValueSpec) -> bool:
    """Return whether both ends of all edges start with themselves as values, and nothing else does."""
    if not spec.both_ways or not spec.has_values or len(steps) != 1:
        return False
    (step,), columns = steps, set[str]()
    for part in starts:
        if not isinstance(part, nodes.SelectNode) or part.input is not step.edges:
            return False
        expressions = [unnamed(expression) for expression in part.expressions]
        names = {expression.name for expression in expressions if isinstance(expression, ColumnReference)}
        if len(names) != 1 or not all(isinstance(expression, ColumnReference) for expression in expressions):
            return False
        columns |= names
    return columns == {step.source, step.target}


def value_of(result: nodes.ReduceNode) -> tuple[str | None, bool]:
    """Return the column of values of a reduction, and whether it keeps the greatest ones."""
    reduction, names = result.reduction, result.schema.names
    if any(result.schema.type_of(key).lanes > 1 for key in result.keys):
        raise NotLeastValuesError("its key has a type of several lanes")
    if len(result.keys) != 1:
        raise NotLeastValuesError("its key has several columns")
    if reduction.kind == "presence" and reduction.at_least == 1:
        return None, False
    if reduction.kind != "first" or reduction.limit != 1 or reduction.copies or len(names) != 2:
        raise NotLeastValuesError("its result is no minimum, maximum or distinct rows")
    (value,) = [name for name in names if name not in result.keys]
    if result.schema.type_of(value) != INT64 or reduction.columns not in ((value,), (f"-{value}",)):
        raise NotLeastValuesError(f"{value} is {result.schema.type_of(value)}, not int64")
    return value, reduction.columns == (f"-{value}",)


def step_of(
    part: nodes.PlanNode,
    loop: nodes.Loop,
    carriers: tuple[nodes.PlanNode, ...],
    result: nodes.ReduceNode,
    value: str | None,
) -> EdgeStep:
    """Return a join of the recursion with edges."""
    part = without_index(part)
    if not isinstance(part, nodes.SelectNode) or part.silent or not isinstance(part.input, nodes.JoinNode):
        raise NotLeastValuesError("a part of its body is no selection of a join")
    join = part.input
    sides = (without_index(join.left), without_index(join.right))
    own = [side for side in (0, 1) if any(sides[side] is carrier for carrier in carriers)]
    if len(own) != 1 or loop in sides[1 - own[0]].loops:
        raise NotLeastValuesError("a join of its body is not one of its result with rows from outside")
    (key,) = result.keys
    if len(join.on) != 1 or join.on[0][own[0]] != key:
        raise NotLeastValuesError(f"a join of its body is not by {key} alone")
    side, edges = own[0], (join.left, join.right)[1 - own[0]]
    expressions = dict(zip(part.schema.names, map(unnamed, part.expressions), strict=True))
    target = column_of(expressions[key], join, 1 - side)
    if target is None:
        raise NotLeastValuesError(f"{key} is computed")
    source = join.on[0][1 - side]
    if value is None:
        return EdgeStep(edges, source, target, None, 0)
    weight, constant = addend_of(expressions[value], join, side, value)
    return EdgeStep(edges, source, target, weight, constant)


def addend_of(expression: Expression, join: nodes.JoinNode, side: int, value: str) -> tuple[str | None, int]:
    """Return the column or the constant that a step adds to a value."""
    if column_of(expression, join, side) == value:
        return None, 0
    if isinstance(expression, FunctionCall) and expression.op == "+":
        for own, other in (expression.arguments, expression.arguments[::-1]):
            if column_of(own, join, side) == value:
                if isinstance(other, Literal) and type(other.value) is int and abs(other.value) < 1 << 62:
                    return None, other.value
                weight = column_of(other, join, 1 - side)
                if weight is not None and (join.right, join.left)[side].schema.type_of(weight) == INT64:
                    return weight, 0
    raise NotLeastValuesError(f"{value} is computed in another way than by adding to it")


def column_of(expression: Expression, join: nodes.JoinNode, side: int) -> str | None:
    """Return the column of one side of a join that an expression stands for; keys of both sides are equal."""
    if not isinstance(expression, ColumnReference):
        return None
    at, name = join.columns[join.schema.names.index(expression.name)]
    if at == side:
        return name
    return next((pair[side] for pair in join.on if pair[at] == name), None)


def spec_of(loop: nodes.Loop, steps: list[EdgeStep], has_values: bool, greatest: bool) -> LeastValueSpec:
    """Return the parameters of the operator."""
    constants = {step.constant for step in steps}
    weighted = len(constants) > 1 or any(step.weight is not None for step in steps)
    if greatest and weighted:
        raise NotLeastValuesError("it keeps the greatest of sums with a column")
    step = -steps[0].constant if greatest else steps[0].constant
    if not weighted and step < 0:
        raise NotLeastValuesError("a value improves on each cycle")
    is_set = len(set(steps)) == len(steps)
    both_ways = is_set and all(step.reverse() in steps and step.reverse() != step for step in steps)
    return LeastValueSpec(loop.name, loop.max_rounds, has_values, weighted, 0 if weighted else step, both_ways)


def without_reverse(steps: list[EdgeStep]) -> list[EdgeStep]:
    """Return one of each two steps that are the reverse of each other."""
    return [step for number, step in enumerate(steps) if step.reverse() not in steps[:number]]


def parts_of(node: nodes.PlanNode) -> Iterator[nodes.PlanNode]:
    """Yield the collections that a node is the sum of."""
    if isinstance(node, nodes.ConcatNode):
        for inner in node.inputs:
            yield from parts_of(inner)
    else:
        yield node


def without_index(node: nodes.PlanNode) -> nodes.PlanNode:
    """Return the collection that an index inside a loop is of."""
    while isinstance(node, nodes.ArrangeNode) and node.loops:
        node = node.input
    return node


def unnamed(expression: Expression) -> Expression:
    """Return an expression without a name."""
    return expression.expression if isinstance(expression, Named) else expression


# Rendering


def least_value_loop(renderer: Renderer, leave: nodes.LeaveNode) -> LeastValueLoop | str:
    """Return the loop that one operator can evaluate here, or why it cannot."""
    if not renderer.is_alone:
        return "it runs on several workers"
    if renderer.context.depth != 1:
        return "times have several coordinates"
    try:
        return recognise(leave)
    except NotLeastValuesError as reason:
        return str(reason)


def render_least_values(renderer: Renderer, loop: LeastValueLoop) -> Rendered:
    """Render a recognised loop as one operator."""
    result, spec, value = loop.result, loop.spec, loop.value
    schema = result.schema.select([*result.keys, *([] if value is None else [value])])
    complement: list[linear.LinearStage] = [linear.ComplementStage((1,))] if loop.greatest else []
    starts = [renderer.reorder(renderer.collection(part), schema) for part in loop.starts]
    starts = [renderer.add_stages(part, complement, "order", schema) for part in starts]
    edges = [edges_of(renderer, step, spec.weighted) for step in loop.steps]
    inputs = [renderer.gather(parts) for parts in (starts, edges) if parts]
    values, errors = maintain_least_values(renderer.dataflow, spec, inputs, schema.types[0], renderer.context.failures)
    if spec.weighted or spec.step:
        renderer.add_errors(errors, None)
    rendered = renderer.add_stages(Rendered(values, schema, None), complement, "order", schema)
    return renderer.reorder(rendered, result.schema)


def edges_of(renderer: Renderer, step: EdgeStep, weighted: bool) -> Rendered:
    """Return the edges of a step with source and target, and their weight if the operator reads one."""
    rendered = renderer.collection(step.edges)
    names = [step.source, step.target, *([step.weight] if step.weight is not None else [])]
    lanes = tuple(rendered.schema.lane_of(name) for name in names)
    types = [rendered.schema.type_of(name) for name in names]
    schema = Schema.of(dict(zip(("source", "target", "weight"), types, strict=False)))
    picked = [] if lanes == tuple(range(rendered.schema.width)) else [linear.PickStage(lanes)]
    part = renderer.add_stages(rendered, picked, "edges", schema)
    if weighted and step.weight is None:
        with_weight = schema.concat(Schema.of({"weight": INT64}))
        expressions = (ColumnReference("source"), ColumnReference("target"), Literal(step.constant))
        bound = tuple(bind(expression, schema, renderer.context.symbols) for expression in expressions)
        part = renderer.add_stages(part, [linear.ComputeStage(bound)], "weight", with_weight)
    return replace(part, consolidated=False)
