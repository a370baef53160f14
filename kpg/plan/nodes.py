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
from kpg.growth.rules import System


@dataclass(eq=False, slots=True)
class Loop:
    """A recursion: variables that are defined by each other, and how many rounds they may take."""

    name: str
    max_rounds: int
    definitions: dict[Variable, Node | None] = field(default_factory=dict)
    _inside: set[Loop] = field(default_factory=set)
    _left: bool = False

    def use(self, node: Node) -> None:
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

    def add(self, variable: Variable) -> None:
        """One more variable, to be defined."""
        if variable.source is not None:
            self.use(variable.source)
        self.definitions[variable] = None

    def define(self, variable: Variable, node: Node) -> None:
        """Say what a variable is in the next round."""
        self.use(node)
        self.definitions[variable] = node

    def leave(self, node: Node) -> frozenset[Loop]:
        """The loops that a collection of this loop depends on outside of it."""
        self._left = True
        return (node.loops | self.surrounding() if self in node.loops else node.loops) - {self}

    def definition(self, variable: Variable) -> Node:
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
class Node:
    """A collection: its columns and the loops whose variables it depends on."""

    schema: Schema
    loops: frozenset[Loop]

    def scope(self) -> Loop | None:
        """The innermost loop this depends on."""
        return max(self.loops, key=Loop.depth, default=None)


@dataclass(frozen=True, eq=False, slots=True)
class Installed(Node):
    """An arrangement that lives in a dataflow of its own: `owner` knows its publisher and handle."""

    owner: Any


@dataclass(frozen=True, eq=False, slots=True)
class Relation(Node):
    """A named input, read through whatever arrangement of it exists."""

    owner: Any


@dataclass(frozen=True, eq=False, slots=True)
class Select(Node):
    """Columns computed from each row."""

    input: Node
    expressions: tuple[Any, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Filter(Node):
    """The rows on which a condition is true."""

    input: Node
    condition: Any


@dataclass(frozen=True, eq=False, slots=True)
class FlatMap(Node):
    """Any number of rows from each row, by a function on columns."""

    input: Node
    function: Callable[[Any], Any]
    label: str


@dataclass(frozen=True, eq=False, slots=True)
class Negate(Node):
    """Every diff negated."""

    input: Node


@dataclass(frozen=True, eq=False, slots=True)
class Explode(Node):
    """As many copies of each row as a column says."""

    input: Node
    column: str


@dataclass(frozen=True, eq=False, slots=True)
class Delay(Node):
    """Each row no earlier than an expression says, in one coordinate of time (−1: the innermost round)."""

    input: Node
    expression: Any
    coordinate: int


@dataclass(frozen=True, eq=False, slots=True)
class Enter(Node):
    """A collection seen inside a loop, each row from the round that an expression says."""

    input: Node
    loop: Loop
    expression: Any


@dataclass(frozen=True, eq=False, slots=True)
class Concat(Node):
    """The sum of some collections."""

    inputs: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Consolidate(Node):
    """Each time's updates summed."""

    input: Node


@dataclass(frozen=True, eq=False, slots=True)
class Arrange(Node):
    """A collection indexed by some columns."""

    input: Node
    keys: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Join(Node):
    """Pairs of rows with equal keys; `columns` names, for each column of the schema, its side and name there."""

    left: Node
    right: Node
    on: tuple[tuple[str, str], ...]
    columns: tuple[tuple[int, str], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Changes(Node):
    """The head of a delta query: rows that know their initial time, whose rounds are columns of their own."""

    input: Node


@dataclass(frozen=True, eq=False, slots=True)
class Extender:
    """A collection that has a say in a step of a delta query: the columns of its key, and where each value is from.

    `key` pairs a column of the tuples, or an expression without columns, with a column of the collection. `strict`:
    what changes at the same time counts in another delta query. `negative`: it stands for one minus the collection.
    `single`: it holds at most one row of each key.
    """

    node: Node
    key: tuple[tuple[Any, str], ...]
    strict: bool
    negative: bool = False
    single: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Extend(Node):
    """Tuples extended by the columns that extenders have beyond their keys: none, one, or any number of the only one.

    `columns` names, for each column of the schema, where it is from: 0 and a column of the tuples, 1 and a column of
    the first extender. `low` and `high` name columns that the new one is not before and is before. `gates` are the
    extenders of later steps.
    """

    input: Node
    extenders: tuple[Extender, ...]
    gates: tuple[Extender, ...]
    columns: tuple[tuple[int, str], ...]
    low: str | None = None
    high: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Reduction:
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
class Reduce(Node):
    """A function of each group of rows with equal keys."""

    input: Node
    keys: tuple[str, ...]
    reduction: Reduction


@dataclass(frozen=True, eq=False, slots=True)
class Variable(Node):
    """A collection defined by a loop: its source in round 0, its definition one round later for ever after."""

    loop: Loop
    source: Node | None


@dataclass(frozen=True, eq=False, slots=True)
class Leave(Node):
    """What a collection inside a loop has come to when the loop has settled."""

    loop: Loop
    input: Node


@dataclass(frozen=True, eq=False, slots=True)
class Saturation:
    """A recursion over collections that only grow: its rules, and the rows of each of its relations from outside."""

    system: System
    inputs: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Saturated(Node):
    """One of the relations that a recursion over growing collections derives."""

    saturation: Saturation
    relation: int


@dataclass(frozen=True, eq=False, slots=True)
class Inspect(Node):
    """The same collection, shown to a function as it passes."""

    input: Node
    function: Callable[[Any], None]


LINEAR = (Select, Filter, FlatMap, Negate, Explode, Delay, Inspect)


def inputs_of(node: Node) -> tuple[Node, ...]:
    """The nodes that a node is directly made of; a variable's definition is the loop's affair."""
    if isinstance(node, Concat):
        return node.inputs
    if isinstance(node, Join):
        return (node.left, node.right)
    if isinstance(node, Extend):
        return (node.input, *[each.node for each in (*node.extenders, *node.gates)])
    if isinstance(node, Variable):
        return (node.source,) if node.source else ()
    if isinstance(node, Saturated):
        return node.saturation.inputs
    inner = getattr(node, "input", None)
    return (inner,) if inner is not None else ()


def count_uses(roots: tuple[Node, ...]) -> dict[Node, int]:
    """How many nodes read each node, over all that the roots need; a root counts as read once more."""
    uses: dict[Node, int] = {}
    stack: list[Node] = list(roots)
    while stack:
        node = stack.pop()
        uses[node] = uses.get(node, 0) + 1
        if uses[node] > 1:
            continue
        stack.extend(inputs_of(node))
        if isinstance(node, Variable):
            stack.append(node.loop.definition(node))
    return uses
