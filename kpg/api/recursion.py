"""Recursion: variables that are defined in terms of themselves and each other.

    with db.loop() as loop:
        even = loop.variable(zero)                 # begins as `zero`
        odd  = loop.variable(n=int)                # begins empty
        even.set(zero.concat(successor(odd)))
        odd.set(successor(even))
        result = loop.leave(even)

In round 0 each variable holds its source; in round n + 1 it holds its definition, evaluated in round n. The rounds end
when nothing changes: that is the fixed point, for every time. `Collection.iterate` is the short form for one variable.
A loop is a description, which costs nothing until it is installed.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from kpg.api.collection import Collection
from kpg.columns.schema import Schema
from kpg.errors import BadPlan, TypeMismatch
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.api.contracts import Database


class Variable(Collection):
    """A collection of a loop; `set` defines it."""

    label = "Variable"

    def set(self, definition: Collection) -> None:
        """Define the content of this variable in the next round."""
        node = self.node
        assert isinstance(node, nodes.VariableNode)
        if node.loop.definitions[node] is not None:
            raise BadPlan(f"a variable of {node.loop.name} is defined twice")
        check_same_columns(definition.schema, node.schema)
        node.loop.define(node, definition.node)


class Recursion:
    """The description of a loop."""

    def __init__(self, db: Database, loop: nodes.Loop) -> None:
        self.db = db
        self.loop = loop

    def variable(self, source: Collection | Schema | None = None, /, **columns: Any) -> Variable:
        """Create a variable that begins as `source`, or empty with the given columns."""
        declared = source if isinstance(source, Schema) else Schema.of(columns)
        start = None if isinstance(source, Schema) else source
        schema = declared if start is None else start.schema
        node = nodes.VariableNode(schema, _loops(start) | {self.loop}, self.loop, start.node if start else None)
        self.loop.add(node)
        return Variable(self.db, node)

    def enter(self, collection: Collection, at: Any = None, *, otherwise: Collection | None = None) -> Collection:
        """Bring a collection into the loop, each row from the round on that `at` computes; by default round 0.

        If rounds only save work, `otherwise` has rows that give the same fixed point when they enter in round 0. An
        evaluator without rounds reads these.
        """
        self.loop.use(collection.node)
        if otherwise is not None:
            check_same_columns(otherwise.schema, collection.schema)
        simple = None if otherwise is None else otherwise.node
        loops = collection.node.loops | {self.loop}
        return Collection(self.db, nodes.EnterNode(collection.schema, loops, collection.node, self.loop, at, simple))

    def leave(self, collection: Collection, *, components_of: Collection | None = None) -> Collection:
        """Return the fixed point of a collection of this loop, for use outside.

        If it is the strongly connected component of each node (node, component), `components_of` has the edges
        (src, dst). An operator then computes it without rounds, where it can.
        """
        loops = self.loop.leave(collection.node)
        graph = None if components_of is None else components_of.node
        return Collection(self.db, nodes.LeaveNode(collection.schema, loops, self.loop, collection.node, graph))

    def __enter__(self) -> Recursion:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Do nothing: a loop is only a description."""


def _loops(source: Collection | None) -> frozenset[nodes.Loop]:
    return source.node.loops if source is not None else frozenset()


def check_same_columns(actual: Schema, expected: Schema) -> None:
    """Raise if the columns of two collections differ in name or type; their order may differ."""
    same = set(actual.names) == set(expected.names) and all(
        actual.type_of(name).same(expected.type_of(name)) for name in expected.names
    )
    if not same:
        raise TypeMismatch("collections with different columns", detail=f"Found {actual!r}, expected {expected!r}.")
