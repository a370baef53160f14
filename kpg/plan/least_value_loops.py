"""Recognise loops that keep the least value of each key, and render them as one operator.

    least  =  (starts + step(least)).group_by(node).min(value)          step: a join with edges; the value plus a weight
    least  =  (starts + step(least)).group_by(root, node).min(value)    the join is by node, and keeps the root
    nodes  =  (starts + step(nodes)).distinct()

The loop has one variable, at any point of the cycle. Each step is a join of the result with a collection outside the
loop, by columns of the key (the node), and a selection of their targets and of the value, or its sum with a constant or
a column of the edges. Conditions and further joins that concern only rows from outside are those of the edges
(`kpg.plan.restricted_edges`). The other columns of the key (the group) stay as they are, and are the same in all steps.
Selections in between may rename columns, and the minimum may be one of distinct rows, as in rules of Datalog. `max` is
the minimum of complements. The operator needs all rows of a group, and times of one coordinate. On several workers, it
runs on each with the groups of its own values of a column that all steps keep; without such a column, and inside
another loop, the loop stays a loop. The fixed point is the same; the operator has no rounds, so an error that only a
round before the last has is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from kpg.columns.bind import bind
from kpg.columns.expression import ColumnReference, Expression, FunctionCall, Literal, Written
from kpg.columns.expression_origin import ExpressionOrigin
from kpg.columns.schema import INT64, Schema
from kpg.columns.symbols import Symbols
from kpg.operators import linear
from kpg.operators.complete_times import CompleteInput
from kpg.operators.maintain_least_values import KeySchemas, maintain_least_values
from kpg.plan import nodes
from kpg.plan.renamed_nodes import renamed, unnamed
from kpg.plan.rendered import Rendered
from kpg.plan.restricted_edges import NotLeastValuesError, read_step
from kpg.plan.rule_products import difference_of
from kpg.seminaive.counted_rounds import RoundRules
from kpg.seminaive.least_values import LeastValueSpec

if TYPE_CHECKING:
    from kpg.plan.render import Renderer
NOT_DIVIDED: Final = "it runs on several workers, and no column of its key stays the same in all joins"


@dataclass(frozen=True, slots=True)
class EdgeStep:
    """A join of a recursion: the edges, their columns, and the constant that it adds to a value."""

    edges: nodes.PlanNode
    source: tuple[str, ...]
    target: tuple[str, ...]
    weight: str | None
    constant: int
    group: tuple[str, ...]  # the columns of the key that it keeps
    origin: ExpressionOrigin | None = field(default=None, compare=False)  # of the sum

    def reverse(self) -> EdgeStep:
        """Return the step along the same edges in the other direction."""
        return EdgeStep(self.edges, self.target, self.source, self.weight, self.constant, self.group)


@dataclass(frozen=True, slots=True)
class LeastValueLoop:
    """A recognised loop."""

    spec: LeastValueSpec
    result: nodes.ReduceNode
    columns: dict[str, str]  # of the result, for each column that leaves the loop
    value: str | None  # the column of values
    greatest: bool  # whether it keeps the greatest values instead
    starts: tuple[nodes.PlanNode, ...]
    steps: tuple[EdgeStep, ...]

    @property
    def group(self) -> tuple[str, ...]:
        """The columns of the key that no join reads."""
        return self.steps[0].group

    @property
    def node(self) -> tuple[str, ...]:
        """The columns of the key that edges lead from and to."""
        return tuple(key for key in self.result.keys if key not in self.group)

    @property
    def divided_by(self) -> str | None:
        """A column of the key that all steps leave as it is, by which workers can divide the rows."""
        ends = [list(zip(step.source, step.target, strict=True)) for step in self.steps]
        kept = [name for at, name in enumerate(self.node) if all(pairs[at][0] == pairs[at][1] for pairs in ends)]
        return next(iter((*self.group, *kept)), None)

    def name_outside(self, column: str) -> str:
        """Return the name that a column of the result has outside the loop."""
        return next(name for name, of in self.columns.items() if of == column)

    @property
    def origin(self) -> ExpressionOrigin | None:
        """The origin of the sums, if all of them are of one expression."""
        sums = [step for step in self.steps if step.weight is not None or step.constant]
        return sums[0].origin if len(sums) == 1 and not self.greatest else None

    def inputs(self) -> tuple[nodes.PlanNode, ...]:
        """Return the collections that the operator reads."""
        return (*self.starts, *[step.edges for step in self.steps])


@dataclass(frozen=True, slots=True)
class LoopBody:
    """The cycle of a loop. `held` has the column of the result for each column of a variable that holds the result."""

    loop: nodes.Loop
    symbols: Symbols
    variable: nodes.VariableNode
    result: nodes.ReduceNode
    value: str | None
    held: dict[str, str] | None

    def carried(self, node: nodes.PlanNode) -> dict[str, str] | None:
        """Return the column of the result for each column of a node; None if the node does not hold the result."""
        view = renamed(node)
        if view.node is self.variable and self.held is not None:
            return {name: self.held[of] for name, of in view.columns.items()}
        return view.columns if view.node is self.result else None


def recognise(leave: nodes.LeaveNode, symbols: Symbols) -> LeastValueLoop:
    """Return the loop that a node leaves as one of least values. Raise NotLeastValuesError if it is none."""
    loop = leave.loop
    if loop.surrounding() or leave.loops:
        raise NotLeastValuesError("it is inside another loop")
    if len(loop.definitions) != 1 or loop.stops:
        raise NotLeastValuesError("it has a limit, or several variables")
    (variable,) = loop.definitions
    definition, left = renamed(loop.definition(variable)), renamed(leave.input)
    left = definition.after(left.columns) if left.node is variable else left
    result = left.node
    if not isinstance(result, nodes.ReduceNode) or loop not in result.loops:
        raise NotLeastValuesError("its result is no minimum, maximum or distinct rows")
    if sorted(left.columns.values()) != sorted(result.schema.names):
        raise NotLeastValuesError("a column of its result is dropped or repeated")
    value, greatest = value_of(result)
    body = LoopBody(loop, symbols, variable, result, value, definition.columns if definition.node is result else None)
    starts, steps, rounds = parts_of_body(body)
    if not starts or not steps:
        raise NotLeastValuesError("it has no rows to start from, or no join")
    if len({step.group for step in steps}) > 1:
        raise NotLeastValuesError("its joins are by different columns of its key")
    spec = replace(spec_of(loop, steps, value is not None, greatest), rounds=rounds)
    widths = [result.schema.type_of(key).lanes for key in steps[0].group]
    lanes = sum(result.schema.type_of(key).lanes for key in result.keys)
    spec = replace(spec, group_lanes=sum(widths), node_lanes=lanes - sum(widths))
    kept = without_reverse(steps) if spec.both_ways else steps
    if not greatest and are_own_starts(starts, kept, spec):
        starts, spec = [], replace(spec, own_starts=True)
    return LeastValueLoop(spec, result, left.columns, value, greatest, tuple(starts), tuple(kept))


def parts_of_body(body: LoopBody) -> tuple[list[nodes.PlanNode], list[EdgeStep], RoundRules]:
    """Return the starts and the steps of a loop, and the rows that its rounds have besides."""
    loop, variable = body.loop, body.variable
    starts: list[nodes.PlanNode] = []
    steps: list[EdgeStep] = []
    keeps = False
    for part in parts_of(candidates_of(body.result)):
        view = renamed(part)
        if view.node is variable:
            columns = body.carried(part) if body.held is not None else view.columns
            if columns != {name: name for name in part.schema.names}:
                raise NotLeastValuesError("its body renames the columns of its variable")
            keeps |= body.held is not None
            if body.held is None:
                steps += [step_of(step, body) for step in parts_of(loop.definition(variable))]
        elif loop not in part.loops:
            starts.append(part)
        elif isinstance(part, nodes.EnterNode) and part.loop is loop and (rows := part.without_rounds()) is not None:
            starts += parts_of(rows)
        else:
            steps.append(step_of(part, body))
    rounds = RoundRules(variable.source is not None and body.held is not None, bool(starts), keeps)
    if keeps and variable.source is not None and variable.source not in starts:
        starts.append(variable.source)
    if variable.source is not None and variable.source not in starts:
        raise NotLeastValuesError("a row of round 0 need not be one of later rounds")
    return starts, steps, rounds


def candidates_of(result: nodes.ReduceNode) -> nodes.PlanNode:
    """Return the rows of which a loop keeps the least; a set of them has the same least ones."""
    node = without_index(result.input)
    while isinstance(node, nodes.ReduceNode) and node.reduction.kind == "presence" and node.loops:
        if node.reduction.at_least != 1 or set(node.keys) != set(node.schema.names):
            break
        node = without_index(node.input)
    return node


def are_own_starts(starts: list[nodes.PlanNode], steps: list[EdgeStep], spec: LeastValueSpec) -> bool:
    """Return whether both ends of all edges start with themselves as values, and nothing else does."""
    if not spec.both_ways or not spec.has_values or len(steps) != 1 or spec.group_lanes or spec.node_lanes > 1:
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
    return columns == {*step.source, *step.target}


def value_of(result: nodes.ReduceNode) -> tuple[str | None, bool]:
    """Return the column of values of a reduction, and whether it keeps the greatest ones."""
    reduction, names = result.reduction, result.schema.names
    if reduction.kind == "presence" and reduction.at_least == 1:
        if len(result.keys) != 1:
            raise NotLeastValuesError("it keeps distinct rows of several columns")
        return None, False
    if reduction.kind != "first" or reduction.limit != 1 or reduction.copies or len(names) != len(result.keys) + 1:
        raise NotLeastValuesError("its result is no minimum, maximum or distinct rows")
    (value,) = [name for name in names if name not in result.keys]
    if result.schema.type_of(value) != INT64 or reduction.columns not in ((value,), (f"-{value}",)):
        raise NotLeastValuesError(f"{value} is {result.schema.type_of(value)}, not int64")
    return value, reduction.columns == (f"-{value}",)


def step_of(part: nodes.PlanNode, body: LoopBody) -> EdgeStep:
    """Return a join of the recursion with edges."""
    rows = read_step(part, body.loop, lambda node: body.carried(node) is not None, body.symbols)
    if body.value is None and not rows.is_plain():
        raise NotLeastValuesError("it keeps a set with conditions")  # rules join each collection by itself
    join, expressions = rows.join(), rows.columns
    columns = body.carried(join.left) or {}
    edges, joined = join.right, joined_keys(join, columns, body)
    targets, group = [], []
    for key in body.result.keys:
        end = column_of(expressions[key], join, 1)
        if key not in joined:
            before = column_of(expressions[key], join, 0)
            if before is None or columns[before] != key:
                raise NotLeastValuesError(f"{key} is neither joined nor kept")
            group.append(key)
        elif end is None:
            raise NotLeastValuesError(f"{key} is computed")
        else:
            targets.append(end)
    sources = tuple(joined[key] for key in body.result.keys if key in joined)
    if body.value is None:
        return EdgeStep(edges, sources, tuple(targets), None, 0, tuple(group))
    held = next((name for name, of in columns.items() if of == body.value), body.value)
    weight, constant = addend_of(unnamed(expressions[body.value]), join, held)
    step = EdgeStep(edges, sources, tuple(targets), weight, constant, tuple(group))
    return replace(step, origin=origin_of(expressions[body.value], step, join, columns | {held: "value"}))


def joined_keys(join: nodes.JoinNode, columns: dict[str, str], body: LoopBody) -> dict[str, str]:
    """Return the columns of the key that a join is by, and the column of the edges for each."""
    joined = {columns[own]: other for own, other in join.on}
    keys = body.result.keys
    if not joined or len(joined) != len(join.on) or not joined.keys() <= set(keys):
        raise NotLeastValuesError(f"a join of its body is not by {', '.join(keys)} alone")
    return joined


def origin_of(
    written: Expression, step: EdgeStep, join: nodes.JoinNode, columns_of: dict[str, str]
) -> ExpressionOrigin | None:
    """Return the origin of a sum, with the values that errors of the operator have; see `maintain_least_values`."""
    if not isinstance(written, Written):
        return None
    own = {"value": "value"} | {name: f"group {number}" for number, name in enumerate(step.group)}
    names = {name: f"source {number}" for number, name in enumerate(step.source)}
    if step.weight is not None:
        names[step.weight] = "weight"
    names |= {name: f"target {number}" for number, name in enumerate(step.target)}
    columns = []
    for shown, name in written.origin.columns:
        if name not in join.schema.names:
            continue  # the restricted edges have no such column
        column = ColumnReference(name)
        of_result, of_edges = column_of(column, join, 0), column_of(column, join, 1)
        found = own.get(columns_of[of_result]) if of_result is not None else None
        found = names.get(of_edges) if found is None and of_edges is not None else found
        columns += [(shown, found)] if found is not None else []
    return replace(written.origin, columns=tuple(columns))


def addend_of(expression: Expression, join: nodes.JoinNode, value: str) -> tuple[str | None, int]:
    """Return the column or the constant that a step adds to a value."""
    if column_of(expression, join, 0) == value:
        return None, 0
    if isinstance(expression, FunctionCall) and expression.op == "+":
        arguments = tuple(map(unnamed, expression.arguments))
        for own, other in (arguments, arguments[::-1]):
            if column_of(own, join, 0) == value:
                if isinstance(other, Literal) and type(other.value) is int and abs(other.value) < 1 << 62:
                    return None, other.value
                weight = column_of(other, join, 1)
                if weight is not None and join.right.schema.type_of(weight) == INT64:
                    return weight, 0
    raise NotLeastValuesError(f"{value} is computed in another way than by adding to it")


def column_of(expression: Expression, join: nodes.JoinNode, side: int) -> str | None:
    """Return the column of one side of a join that an expression stands for; keys of both sides are equal."""
    expression = unnamed(expression)
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
    """Yield the collections that a node is the sum of; a difference is one."""
    if isinstance(node, nodes.ConcatNode) and difference_of(node) is None:
        for inner in node.inputs:
            yield from parts_of(inner)
    else:
        yield node


def without_index(node: nodes.PlanNode) -> nodes.PlanNode:
    """Return the collection that an index inside a loop is of."""
    while isinstance(node, nodes.ArrangeNode) and node.loops:
        node = node.input
    return node


# Rendering


def least_value_loop(renderer: Renderer, leave: nodes.LeaveNode) -> LeastValueLoop | str:
    """Return the loop that one operator can evaluate here, or why it cannot."""
    if renderer.context.depth != 1:
        return "times have several coordinates"
    try:
        loop = recognise(leave, renderer.context.symbols)
    except NotLeastValuesError as reason:
        return str(reason)
    if not renderer.is_alone and loop.divided_by is None:
        return NOT_DIVIDED
    return loop


def strategy_of(loop: LeastValueLoop, is_alone: bool) -> str:
    """Describe for `explain` how one operator evaluates a loop."""
    how = "one operator: keeps the least value of each key"
    if is_alone or loop.divided_by is None:
        return how
    return f"{how}; each worker has the rows of its values of {loop.name_outside(loop.divided_by)}"


def render_least_values(renderer: Renderer, loop: LeastValueLoop) -> Rendered:
    """Render a recognised loop as one operator."""
    result, spec, value = loop.result, loop.spec, loop.value
    schema = result.schema.select([*loop.group, *loop.node, *([] if value is None else [value])])
    complement: list[linear.LinearStage] = [linear.ComplementStage((schema.width - 1,))] if loop.greatest else []
    starts = [renderer.reorder(renderer.collection(part), schema) for part in loop.starts]
    starts = [renderer.add_stages(part, complement, "order", schema) for part in starts]
    edges = [edges_of(renderer, step, spec.weighted) for step in loop.steps]
    keys = KeySchemas(schema.select(loop.node), schema.select(loop.group))
    failures = renderer.context.failures
    values, errors = maintain_least_values(
        renderer.dataflow, spec, inputs_of(renderer, loop, starts, edges), keys, failures, loop.origin
    )
    if spec.weighted or spec.step:
        renderer.add_errors(errors, None)
    placed = None if renderer.is_alone else schema.lanes_of((loop.divided_by or "",))
    rendered = renderer.add_stages(Rendered(values, schema, None, placed=placed), complement, "order", schema)
    names = {of: name for name, of in loop.columns.items()}
    left = Schema.of({name: result.schema.type_of(of) for name, of in loop.columns.items()})
    own_order = left.select([names[name] for name in schema.names])
    return renderer.reorder(replace(rendered, schema=own_order), left)


def inputs_of(
    renderer: Renderer, loop: LeastValueLoop, starts: list[Rendered], edges: list[Rendered]
) -> list[CompleteInput]:
    """Return the inputs of the operator: all rows, or those of the values that this worker owns."""
    if renderer.is_alone:
        return [renderer.gather(parts) for parts in (starts, edges) if parts]
    by = loop.divided_by
    assert by is not None and starts
    lanes = starts[0].schema.lanes_of((by,))
    if by in loop.group:
        return [renderer.divide(starts, lanes), renderer.divide(edges, None)]
    source = f"source {loop.node.index(by)}"
    return [renderer.divide(starts, lanes), renderer.divide(edges, edges[0].schema.lanes_of((source,)))]


def edges_of(renderer: Renderer, step: EdgeStep, weighted: bool) -> Rendered:
    """Return the edges of a step with source and target, and their weight if the operator reads one."""
    rendered = renderer.collection(step.edges)
    columns = {f"source {number}": name for number, name in enumerate(step.source)}
    columns |= {f"target {number}": name for number, name in enumerate(step.target)}
    columns |= {} if step.weight is None else {"weight": step.weight}
    lanes = tuple(lane for name in columns.values() for lane in rendered.schema.lanes_of((name,)))
    schema = Schema.of({name: rendered.schema.type_of(of) for name, of in columns.items()})
    picked = [] if lanes == tuple(range(rendered.schema.width)) else [linear.PickStage(lanes)]
    part = renderer.add_stages(rendered, picked, "edges", schema)
    if weighted and step.weight is None:
        with_weight = schema.concat(Schema.of({"weight": INT64}))
        expressions = (*map(ColumnReference, schema.names), Literal(step.constant))
        bound = tuple(bind(expression, schema, renderer.context.symbols) for expression in expressions)
        part = renderer.add_stages(part, [linear.ComputeStage(bound)], "weight", with_weight)
    return replace(part, consolidated=False)
