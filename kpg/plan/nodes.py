"""What a collection is, as an immutable description: a graph of nodes, built without doing any work.

A node knows its schema and the loops it depends on; nodes are equal only to themselves. Nothing here runs: `render`
turns the nodes that an answer needs into the operators of one dataflow. A node that does not depend on a loop is
rendered outside it, wherever it was written, so that what does not change with the round is done once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kpg.columns.schema import Schema
from kpg.errors import BadPlan
from kpg.seminaive.recursion_rules import RuleSystem


@dataclass(eq=False, slots=True)
class Loop:
    """A recursion: variables that are defined by each other, and how many rounds they may take."""

    name: str
    max_rounds: int
    definitions: dict[VariableNode, PlanNode | None] = field(default_factory=dict)
    _inside: set[Loop] = field(default_factory=set)
    _left: bool = False

    def use(self, node: PlanNode) -> None:
        """Learn from something that this loop is made of which loops it is inside of."""
        for loop in node.loops - {self} - self._inside:
            if self in loop.surrounding():
                raise BadPlan(
                    f"{self.name} and {loop.name} are each inside the other",
                    hint=f"Take what {loop.name} comes to with leave() before using it in {self.name}.",
                )
            if self._left:
                raise BadPlan(
                    f"{self.name} was left before it was known to be inside {loop.name}",
                    hint="Give all variables their definitions before calling leave().",
                )
            self._inside.add(loop)

    def add(self, variable: VariableNode) -> None:
        """One more variable, to be defined."""
        if variable.source is not None:
            self.use(variable.source)
        self.definitions[variable] = None

    def define(self, variable: VariableNode, node: PlanNode) -> None:
        """Say what a variable is in the next round."""
        self.use(node)
        self.definitions[variable] = node

    def leave(self, node: PlanNode) -> frozenset[Loop]:
        """The loops that a collection of this loop depends on outside of it."""
        self._left = True
        return (node.loops | self.surrounding() if self in node.loops else node.loops) - {self}

    def definition(self, variable: VariableNode) -> PlanNode:
        """What a variable is in the next round."""
        result = self.definitions[variable]
        if result is None:
            raise BadPlan(
                f"a variable of {self.name} has no definition", hint="Give it one with variable.set(collection)."
            )
        return result

    def surrounding(self) -> frozenset[Loop]:
        """The loops that this one is inside of: those that what it is made of depends on, and the ones around them."""
        found: set[Loop] = set()
        stack = list(self._inside)
        while stack:
            loop = stack.pop()
            if loop not in found:
                found.add(loop)
                stack += loop._inside
        return frozenset(found)

    def depth(self) -> int:
        """How deep this loop is nested; 1 for one in no other."""
        return 1 + max((loop.depth() for loop in self.surrounding()), default=0)


@dataclass(frozen=True, eq=False, slots=True)
class PlanNode:
    """A collection: its columns and the loops whose variables it depends on."""

    schema: Schema
    loops: frozenset[Loop]

    def scope(self) -> Loop | None:
        """The innermost loop this depends on."""
        return max(self.loops, key=Loop.depth, default=None)


@dataclass(frozen=True, eq=False, slots=True)
class InstalledNode(PlanNode):
    """An arrangement that lives in a dataflow of its own: `owner` knows its publisher and handle."""

    owner: Any


@dataclass(frozen=True, eq=False, slots=True)
class RelationNode(PlanNode):
    """A named input, read through whatever arrangement of it exists."""

    owner: Any


@dataclass(frozen=True, eq=False, slots=True)
class SelectNode(PlanNode):
    """Columns computed from each row."""

    input: PlanNode
    expressions: tuple[Any, ...]


@dataclass(frozen=True, eq=False, slots=True)
class FilterNode(PlanNode):
    """The rows on which a condition is true."""

    input: PlanNode
    condition: Any


@dataclass(frozen=True, eq=False, slots=True)
class FlatMapNode(PlanNode):
    """Any number of rows from each row, by a function on columns."""

    input: PlanNode
    function: Callable[[Any], Any]
    label: str


@dataclass(frozen=True, eq=False, slots=True)
class NegateNode(PlanNode):
    """Every diff negated."""

    input: PlanNode


@dataclass(frozen=True, eq=False, slots=True)
class ExplodeNode(PlanNode):
    """As many copies of each row as a column says."""

    input: PlanNode
    column: str


@dataclass(frozen=True, eq=False, slots=True)
class DelayNode(PlanNode):
    """Each row no earlier than an expression says, in one coordinate of time (−1: the innermost round)."""

    input: PlanNode
    expression: Any
    coordinate: int


@dataclass(frozen=True, eq=False, slots=True)
class EnterNode(PlanNode):
    """A collection seen inside a loop, each row from the round that an expression says."""

    input: PlanNode
    loop: Loop
    expression: Any


@dataclass(frozen=True, eq=False, slots=True)
class ConcatNode(PlanNode):
    """The sum of some collections."""

    inputs: tuple[PlanNode, ...]


@dataclass(frozen=True, eq=False, slots=True)
class ConsolidateNode(PlanNode):
    """Each time's updates summed."""

    input: PlanNode


@dataclass(frozen=True, eq=False, slots=True)
class ArrangeNode(PlanNode):
    """A collection indexed by some columns."""

    input: PlanNode
    keys: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class JoinNode(PlanNode):
    """Pairs of rows with equal keys; `columns` names, for each column of the schema, its side and name there."""

    left: PlanNode
    right: PlanNode
    on: tuple[tuple[str, str], ...]
    columns: tuple[tuple[int, str], ...]


@dataclass(frozen=True, eq=False, slots=True)
class DeltaSourceNode(PlanNode):
    """The head of a delta query: rows that know their initial time, whose rounds are columns of their own."""

    input: PlanNode


@dataclass(frozen=True, eq=False, slots=True)
class ExtenderSpec:
    """A collection that has a say in a step of a delta query: the columns of its key, and where each value is from.

    `key` pairs a column of the tuples, or an expression without columns, with a column of the collection. `strict`:
    what changes at the same time counts in another delta query. `negative`: it stands for one minus the collection.
    `single`: it holds at most one row of each key.
    """

    node: PlanNode
    key: tuple[tuple[Any, str], ...]
    strict: bool
    negative: bool = False
    single: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class ExtendNode(PlanNode):
    """Tuples extended by the columns that extenders have beyond their keys: none, one, or any number of the only one.

    `columns` names, for each column of the schema, where it is from: 0 and a column of the tuples, 1 and a column of
    the first extender. `low` and `high` name columns that the new one is not before and is before. `gates` are the
    extenders of later steps.
    """

    input: PlanNode
    extenders: tuple[ExtenderSpec, ...]
    gates: tuple[ExtenderSpec, ...]
    columns: tuple[tuple[int, str], ...]
    low: str | None = None
    high: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class ReductionSpec:
    """What is computed of each group: a kind, and what it needs.

    presence   at_least                  the group's key, if its rows number at least that
    sums       columns                   count and sums, as lanes of the diff
    first      limit, copies, columns    the first rows by some columns; a leading "-" means descending
    function   function, schema          whatever Python says
    """

    kind: str
    at_least: int = 1
    limit: int = 1
    copies: bool = False
    columns: tuple[str, ...] = ()
    function: Callable[..., Any] | None = None


@dataclass(frozen=True, eq=False, slots=True)
class ReduceNode(PlanNode):
    """A function of each group of rows with equal keys."""

    input: PlanNode
    keys: tuple[str, ...]
    reduction: ReductionSpec


@dataclass(frozen=True, eq=False, slots=True)
class VariableNode(PlanNode):
    """A collection defined by a loop: its source in round 0, its definition one round later for ever after."""

    loop: Loop
    source: PlanNode | None


@dataclass(frozen=True, eq=False, slots=True)
class LeaveNode(PlanNode):
    """What a collection inside a loop has come to when the loop has settled."""

    loop: Loop
    input: PlanNode


@dataclass(frozen=True, eq=False, slots=True)
class SaturationSpec:
    """A recursion over collections that only grow: its rules, and the rows of each of its relations from outside."""

    system: RuleSystem
    inputs: tuple[PlanNode, ...]


@dataclass(frozen=True, eq=False, slots=True)
class SaturatedNode(PlanNode):
    """One of the relations that a recursion over growing collections derives."""

    saturation: SaturationSpec
    relation: int


@dataclass(frozen=True, eq=False, slots=True)
class InspectNode(PlanNode):
    """The same collection, shown to a function as it passes."""

    input: PlanNode
    function: Callable[[Any], None]


LINEAR = (SelectNode, FilterNode, FlatMapNode, NegateNode, ExplodeNode, DelayNode, InspectNode)


def inputs_of(node: PlanNode) -> tuple[PlanNode, ...]:
    """The nodes that a node is directly made of; a variable's definition is the loop's affair."""
    if isinstance(node, ConcatNode):
        return node.inputs
    if isinstance(node, JoinNode):
        return (node.left, node.right)
    if isinstance(node, ExtendNode):
        return (node.input, *[each.node for each in (*node.extenders, *node.gates)])
    if isinstance(node, VariableNode):
        return (node.source,) if node.source else ()
    if isinstance(node, SaturatedNode):
        return node.saturation.inputs
    inner = getattr(node, "input", None)
    return (inner,) if inner is not None else ()


def count_uses(roots: tuple[PlanNode, ...]) -> dict[PlanNode, int]:
    """How many nodes read each node, over all that the roots need; a root counts as read once more."""
    uses: dict[PlanNode, int] = {}
    stack: list[PlanNode] = list(roots)
    while stack:
        node = stack.pop()
        uses[node] = uses.get(node, 0) + 1
        if uses[node] > 1:
            continue
        stack.extend(inputs_of(node))
        if isinstance(node, VariableNode):
            stack.append(node.loop.definition(node))
    return uses
