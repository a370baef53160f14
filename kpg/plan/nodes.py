"""Plan nodes: a collection as a graph of immutable descriptions. Building it runs nothing.

A node knows its schema and the loops it depends on. Nodes compare by identity. `render` turns the nodes that an answer
needs into the operators of one dataflow. A node that does not depend on a loop is rendered outside it, even if the user
wrote it inside, so that its work is done once and not in every round.

To add an operator:
    1. write it in a file of its own in kpg/operators/ (or as a `LinearStage` of kpg/operators/linear.py);
    2. here, add its node; in kpg/api/collection.py (group.py for groups), add the method that creates the node;
    3. render it: add a case to `Renderer._render` in kpg/plan/render.py (for a linear stage, to kpg/plan/chains.py),
       and its inputs to kpg/plan/dependencies.py (if they are not called `input`, also to kpg/plan/node_traversal.py);
    4. in kpg/plan/plan_document.py, add its kind, so that plans with it can be sent to workers;
    5. in kpg/testing/denotations.py, define its meaning; in tests/api/ (test_row_operators.py, test_joins.py, …),
       compare the operator with it at all times; in docs/operators.md, describe it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kpg.columns.expression_origin import ExpressionOrigin
from kpg.columns.schema import Schema
from kpg.errors import BadPlan
from kpg.seminaive.recursion_rules import RuleSystem


@dataclass(eq=False, slots=True)
class Loop:
    """A recursion: variables defined by each other, and the maximum number of rounds.

    `declarative` says that only the fixed point has a meaning, and the rounds before it have none. Errors of rows that
    the fixed point does not hold then do not count. A loop that `stops` has the values of its last round as its result,
    instead of an error, if it has not reached a fixed point by then. `as_written` is the reason, for `explain`, why no
    rules may replace the rounds of the loop, if there is one.
    """

    name: str
    max_rounds: int
    declarative: bool = False
    stops: bool = False
    as_written: str | None = None
    definitions: dict[VariableNode, PlanNode | None] = field(default_factory=dict)
    _inside: set[Loop] = field(default_factory=set)
    _left: bool = False

    def use(self, node: PlanNode) -> None:
        """Record the loops that this loop is nested in, from a node that it uses."""
        for loop in node.loops - {self} - self._inside:
            if self in loop.surrounding():
                raise BadPlan(
                    f"{self.name} and {loop.name} are each inside the other",
                    hint=f"Take the result of {loop.name} with leave() before using it in {self.name}.",
                )
            if self._left:
                raise BadPlan(
                    f"{self.name} turns out to be inside {loop.name} after leave() was called",
                    hint="Define all variables before calling leave().",
                )
            self._inside.add(loop)

    def add(self, variable: VariableNode) -> None:
        """Add a variable that is still to be defined."""
        if variable.source is not None:
            self.use(variable.source)
        self.definitions[variable] = None

    def define(self, variable: VariableNode, node: PlanNode) -> None:
        """Define the value of a variable in the next round."""
        self.use(node)
        self.definitions[variable] = node

    def leave(self, node: PlanNode) -> frozenset[Loop]:
        """Return the loops outside this one that a collection of this loop depends on."""
        self._left = True
        return (node.loops | self.surrounding() if self in node.loops else node.loops) - {self}

    def definition(self, variable: VariableNode) -> PlanNode:
        """Return the value of a variable in the next round."""
        result = self.definitions[variable]
        if result is None:
            raise BadPlan(
                f"a variable of {self.name} has no definition", hint="Define it with variable.set(collection)."
            )
        return result

    def surrounding(self) -> frozenset[Loop]:
        """Return the loops that this one is nested in, directly or indirectly."""
        loops: set[Loop] = set()
        stack = list(self._inside)
        while stack:
            loop = stack.pop()
            if loop not in loops:
                loops.add(loop)
                stack += loop._inside
        return frozenset(loops)

    def depth(self) -> int:
        """Return the nesting depth of this loop; 1 if it is in no other loop."""
        return 1 + max((loop.depth() for loop in self.surrounding()), default=0)


@dataclass(frozen=True, eq=False, slots=True)
class PlanNode:
    """A collection: its columns, and the loops that define the variables it depends on."""

    schema: Schema
    loops: frozenset[Loop]

    def scope(self) -> Loop | None:
        """Return the innermost loop that this node depends on."""
        return max(self.loops, key=Loop.depth, default=None)


@dataclass(frozen=True, eq=False, slots=True)
class InstalledNode(PlanNode):
    """An arrangement in a dataflow of its own. `owner` has its publisher and its handle."""

    owner: Any


@dataclass(frozen=True, eq=False, slots=True)
class RelationNode(PlanNode):
    """A named input, read through one of its arrangements."""

    owner: Any


@dataclass(frozen=True, eq=False, slots=True)
class StreamNode(PlanNode):
    """An input whose rows are not kept: a dataflow receives the rows that are inserted after its installation."""

    owner: Any


@dataclass(frozen=True, eq=False, slots=True)
class ValuesNode(PlanNode):
    """Rows of constants, as Python values; they never change."""

    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, eq=False, slots=True)
class SelectNode(PlanNode):
    """Columns computed from each row. With `silent`, rows that fail are dropped without an error."""

    input: PlanNode
    expressions: tuple[Any, ...]
    silent: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class FilterNode(PlanNode):
    """The rows on which a condition is true. With `silent`, rows that fail are dropped without an error."""

    input: PlanNode
    condition: Any
    silent: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class FlatMapNode(PlanNode):
    """Zero or more rows from each row, by a function on columns."""

    input: PlanNode
    function: Callable[[Any], Any]
    label: str
    origin: ExpressionOrigin | None = None
    silent: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class NegateNode(PlanNode):
    """Every diff negated."""

    input: PlanNode


@dataclass(frozen=True, eq=False, slots=True)
class ExplodeNode(PlanNode):
    """Copies of each row; a column holds the number of copies."""

    input: PlanNode
    column: str


@dataclass(frozen=True, eq=False, slots=True)
class DelayNode(PlanNode):
    """Each row delayed: an expression gives the new value of one coordinate of its time (−1: the innermost round)."""

    input: PlanNode
    expression: Any
    coordinate: int


@dataclass(frozen=True, eq=False, slots=True)
class EnterNode(PlanNode):
    """A collection inside a loop; each row enters in the round that an expression gives.

    If rounds only save work, `otherwise` has rows that enter in round 0 and give the loop the same fixed point.
    """

    input: PlanNode
    loop: Loop
    expression: Any
    otherwise: PlanNode | None = None

    def without_rounds(self) -> PlanNode | None:
        """Return rows that give the loop the same fixed point if they enter in round 0, if they are known."""
        return self.input if self.expression is None else self.otherwise


@dataclass(frozen=True, eq=False, slots=True)
class ConcatNode(PlanNode):
    """The sum of some collections."""

    inputs: tuple[PlanNode, ...]


@dataclass(frozen=True, eq=False, slots=True)
class ConsolidateNode(PlanNode):
    """The updates of each time, consolidated."""

    input: PlanNode


@dataclass(frozen=True, eq=False, slots=True)
class WorkerComponentsNode(PlanNode):
    """Edges (src, dst) from each node to the least node of its component, among the edges that one worker has.

    The edges of all workers together have the components of the input. Which edges they are depends on the workers.
    """

    input: PlanNode


@dataclass(frozen=True, eq=False, slots=True)
class ArrangeNode(PlanNode):
    """A collection indexed by some columns.

    If it is `shared` and the input is a relation, the index has a dataflow of its own: other queries read it too, and
    it ends with the last of them.
    """

    input: PlanNode
    keys: tuple[str, ...]
    shared: bool = False

    def is_of_relation(self) -> bool:
        """Return whether the index is one of a relation, which other queries share."""
        return self.shared and isinstance(self.input, RelationNode)


@dataclass(frozen=True, eq=False, slots=True)
class JoinNode(PlanNode):
    """Pairs of rows with equal keys. `columns` has the side of each column of the schema, and its name on that side."""

    left: PlanNode
    right: PlanNode
    on: tuple[tuple[str, str], ...]
    columns: tuple[tuple[int, str], ...]


@dataclass(frozen=True, eq=False, slots=True)
class DeltaSourceNode(PlanNode):
    """The source of a delta query: changed rows with the rounds of their initial time as further columns."""

    input: PlanNode


@dataclass(frozen=True, eq=False, slots=True)
class ExtenderSpec:
    """An extender of one step of a delta query: a collection and the columns that it is looked up by.

    `key` pairs a column of the tuples, or an expression without columns, with a column of the collection. `strict`
    excludes changes at the tuple's own time; another delta query counts them. `negative` stands for one minus the
    collection. `single` promises at most one row for each key.
    """

    node: PlanNode
    key: tuple[tuple[Any, str], ...]
    strict: bool
    negative: bool = False
    single: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class ExtendNode(PlanNode):
    """Tuples extended by the value columns of extenders: none, one, or any number if there is only one extender.

    `columns` has the origin of each column of the schema: (0, column of the tuples) or (1, column of the first
    extender). `low` and `high` name columns of the tuples that bound the new column: low <= new < high. `gates` are
    the extenders of later steps; a tuple waits until they are complete too.
    """

    input: PlanNode
    extenders: tuple[ExtenderSpec, ...]
    gates: tuple[ExtenderSpec, ...]
    columns: tuple[tuple[int, str], ...]
    low: str | None = None
    high: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class ReductionSpec:
    """The function that is computed for each group: a kind and its parameters.

    presence   at_least                  the group's key, if the group has at least that many rows
    count                                the number of rows
    sums       columns                   counts, sums and averages, accumulated in the diff
    first      limit, copies, columns    the first rows by some columns; a leading "-" means descending
    statistics columns, order            statistics of the last column, such as "quantile:first 0.5"
    components                           rows are pairs: each value, with a member of its component
    function   function                  the result of a Python function
    """

    kind: str
    at_least: int = 1
    limit: int = 1
    copies: bool = False
    columns: tuple[str, ...] = ()
    order: tuple[str, ...] = ()  # the columns before the last one that decide the order of its values, "-" as above
    function: Callable[..., Any] | None = None
    origin: ExpressionOrigin | None = None  # the text of the aggregate, for its errors


@dataclass(frozen=True, eq=False, slots=True)
class ReduceNode(PlanNode):
    """A function of each group of rows with equal keys."""

    input: PlanNode
    keys: tuple[str, ...]
    reduction: ReductionSpec


@dataclass(frozen=True, eq=False, slots=True)
class ChosenRowsNode(PlanNode):
    """Rows such that at most one has each value of each domain; which ones depends on history."""

    input: PlanNode
    domains: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False, slots=True)
class NumberedRowsNode(PlanNode):
    """Each row with a number of its own in a further column; the numbers depend on history."""

    input: PlanNode
    start: int
    step: int


@dataclass(frozen=True, eq=False, slots=True)
class VariableNode(PlanNode):
    """A variable of a loop: its source in round 0, and in every later round its definition of the round before."""

    loop: Loop
    source: PlanNode | None


@dataclass(frozen=True, eq=False, slots=True)
class LeaveNode(PlanNode):
    """A collection inside a loop as it is at the loop's fixed point, seen from outside.

    If that is the strongly connected component of each node, (node, component), of some edges (src, dst), `graph` has
    the edges, and an operator may compute it without rounds.
    """

    loop: Loop
    input: PlanNode
    graph: PlanNode | None = None


@dataclass(frozen=True, eq=False, slots=True)
class SaturationSpec:
    """A recursion evaluated by one operator: its rules, and the rows of each of its relations from outside."""

    system: RuleSystem
    inputs: tuple[PlanNode, ...]
    names: tuple[str, ...] = ()  # of the derived relations


@dataclass(frozen=True, eq=False, slots=True)
class SaturatedNode(PlanNode):
    """One of the relations that a `SaturationSpec` derives."""

    saturation: SaturationSpec
    relation: int


@dataclass(frozen=True, eq=False, slots=True)
class InspectNode(PlanNode):
    """The same collection; a function is called with its updates."""

    input: PlanNode
    function: Callable[[Any], None]


# Nodes that are rendered as stages of one operator.
LINEAR = (SelectNode, FilterNode, FlatMapNode, NegateNode, ExplodeNode, DelayNode, InspectNode)
