"""The body of a loop of joins, unions and sets, for `kpg.seminaive.counted_bodies`: the loop as it is written.

Conversion knows the nodes that `kpg.plan.rule_products` reads as rules, and all of them keep their counts here.
"""

from __future__ import annotations

from kpg.columns.expression import ColumnReference
from kpg.plan import nodes
from kpg.plan.lane_tests import ConstantLanes, LaneTest, lane_tests, widened_column
from kpg.plan.renamed_nodes import unnamed
from kpg.plan.rule_products import NotRulesError
from kpg.seminaive.counted_bodies import (
    BodyNode,
    CountedBody,
    FilteredRows,
    GivenRows,
    Lane,
    MatchedRows,
    PickedRows,
    PresentRows,
    SummedRows,
    VariableRows,
)


class BodyWriter:
    """Converts the nodes of one loop."""

    def __init__(self, loop: nodes.Loop, constants: ConstantLanes) -> None:
        self.loop = loop
        self.constants = constants
        self.given: dict[nodes.PlanNode, int] = {}  # the collections from outside, and their numbers
        self._variables = {variable: number for number, variable in enumerate(loop.definitions)}
        self._written: dict[nodes.PlanNode, BodyNode] = {}

    def body(self, results: list[nodes.ReduceNode]) -> CountedBody:
        """Return the loop with these results."""
        variables = list(self._variables)
        definitions = [self._in_order(self.loop.definition(variable), variable) for variable in variables]
        sources = [
            None if variable.source is None else self._in_order(variable.source, variable) for variable in variables
        ]
        widths = tuple(variable.schema.width for variable in variables)
        written = tuple(map(self.written, results))
        return CountedBody(self.loop.name, self.loop.max_rounds, widths, tuple(sources), tuple(definitions), written)

    def written(self, node: nodes.PlanNode) -> BodyNode:
        """Return a node with its lanes in the order of its schema."""
        if node not in self._written:
            self._written[node] = self._write(node)
        return self._written[node]

    def _write(self, node: nodes.PlanNode) -> BodyNode:
        if self.loop not in node.loops:
            return GivenRows(self.given.setdefault(node, len(self.given)))
        match node:
            case nodes.ArrangeNode() | nodes.EnterNode():
                return self.written(node.input)
            case nodes.VariableNode():
                return VariableRows(self._variables[node])
            case nodes.ReduceNode():
                return PresentRows(self.written(node.input), node.input.schema.lanes_of(node.schema.names))
            case nodes.ConcatNode():
                parts = tuple((self._in_order(part, node), 1) for part in node.inputs)
                return SummedRows(parts, node.schema.width)
            case nodes.NegateNode():
                return SummedRows(((self.written(node.input), -1),), node.schema.width)
            case nodes.SelectNode():
                return PickedRows(self.written(node.input), self._columns(node))
            case nodes.FilterNode():
                tests = lane_tests(node.condition, node.schema, self.constants)
                if tests is not None:
                    return FilteredRows(self.written(node.input), tuple(lanes_of_test(test, node) for test in tests))
            case nodes.JoinNode():
                return self._join(node)
        raise NotRulesError("a part of its body is no join, union, selection or comparison")

    def _in_order(self, node: nodes.PlanNode, reader: nodes.PlanNode) -> BodyNode:
        """Return a node with its lanes in the order of a reader's schema."""
        written = self.written(node)
        if node.schema.names == reader.schema.names:
            return written
        return PickedRows(written, tuple(map(Lane, node.schema.lanes_of(reader.schema.names))))

    def _columns(self, node: nodes.SelectNode) -> tuple[Lane, ...]:
        columns: list[Lane] = []
        for name, expression in zip(node.schema.names, node.expressions, strict=True):
            expression, type_ = unnamed(expression), node.schema.type_of(name)
            column = widened_column(expression, node.input.schema, type_)
            if isinstance(expression, ColumnReference):
                column = expression.name
            if column is not None:
                columns += map(Lane, node.input.schema.lanes_of((column,)))
                continue
            constant = self.constants.selected_lane(expression, type_)
            if constant is None:
                raise NotRulesError(f"it computes values ({name})")
            columns.append(Lane(None, constant))
        return tuple(columns)

    def _join(self, node: nodes.JoinNode) -> MatchedRows:
        schemas = (node.left.schema, node.right.schema)
        on = [
            pair
            for one, other in node.on
            for pair in zip(schemas[0].lanes_of((one,)), schemas[1].lanes_of((other,)), strict=True)
        ]
        columns = [(side, lane) for side, name in node.columns for lane in schemas[side].lanes_of((name,))]
        return MatchedRows(self.written(node.left), self.written(node.right), tuple(on), tuple(columns))


def lanes_of_test(test: LaneTest, node: nodes.FilterNode) -> tuple[str, Lane, Lane]:
    """Return a test of columns as one of lanes."""
    right = Lane(None, test.right) if isinstance(test.right, int) else Lane(node.schema.lane_of(test.right))
    return test.op, Lane(node.schema.lane_of(test.left)), right


def needed_lanes(body: CountedBody) -> dict[int, set[int]]:
    """Return the lanes of each given collection that the sets of a body depend on."""
    needed: dict[BodyNode, set[int]] = {}
    stack: list[tuple[BodyNode, set[int]]] = [(node, set(range(node_width(node)))) for node in body.results]
    for number, width in enumerate(body.widths):  # two variables are equal if all of their lanes are
        stack += [(node, set(range(width))) for node in (body.sources[number], body.definitions[number]) if node]
    while stack:
        node, lanes = stack.pop()
        known = needed.get(node)
        if known is not None and lanes <= known:
            continue
        known = needed[node] = lanes | (known or set())
        stack += inputs_with_lanes(node, known)
    return {node.number: lanes for node, lanes in needed.items() if isinstance(node, GivenRows)}


def node_width(node: BodyNode) -> int:
    """Return the number of lanes of a result, which is a set."""
    assert isinstance(node, PresentRows)
    return len(node.lanes)


def inputs_with_lanes(node: BodyNode, lanes: set[int]) -> list[tuple[BodyNode, set[int]]]:
    """Return the inputs of a node, and the lanes of each that some lanes of the node depend on."""
    match node:
        case SummedRows():
            return [(part, lanes) for part, _ in node.parts]
        case PickedRows():
            columns = [node.columns[lane].lane for lane in lanes]
            return [(node.input, {lane for lane in columns if lane is not None})]
        case FilteredRows():
            tested = {lane.lane for _, *sides in node.tests for lane in sides if lane.lane is not None}
            return [(node.input, lanes | tested)]
        case MatchedRows():
            sides: list[set[int]] = [{pair[side] for pair in node.on} for side in (0, 1)]
            for lane in lanes:
                side, of = node.columns[lane]
                sides[side].add(of)
            return [(node.left, sides[0]), (node.right, sides[1])]
        case PresentRows():
            return [(node.input, set(node.lanes))]
    return []
