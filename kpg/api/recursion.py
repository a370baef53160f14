"""Recursion: variables that are defined by themselves and each other.

    with db.loop() as loop:
        even = loop.variable(zero)                 # begins as `zero`
        odd  = loop.variable(n=int)                # begins empty
        even.set(zero.concat(successor(odd)))
        odd.set(successor(even))
        result = loop.leave(even)

Each variable takes its source in round 0 and its definition one round later, until nothing changes any more: the fixed
point, for every time. `Collection.iterate` is the short form for one variable.
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
    """A collection of a loop, to be defined with `set`."""

    def set(self, definition: Collection) -> None:
        """Say what this is in the next round."""
        node = self.node
        assert isinstance(node, nodes.VariableNode)
        if node.loop.definitions[node] is not None:
            raise BadPlan(f"a variable of {node.loop.name} is defined twice")
        check_same_columns(definition.schema, node.schema)
        node.loop.define(node, definition.node)


class Recursion:
    """A loop being described."""

    def __init__(self, db: Database, loop: nodes.Loop) -> None:
        self.db = db
        self.loop = loop

    def variable(self, source: Collection | Schema | None = None, /, **columns: Any) -> Variable:
        """A new variable that begins as `source`, or empty with the given columns."""
        given = source if isinstance(source, Schema) else Schema.of(columns)
        start = None if isinstance(source, Schema) else source
        schema = given if start is None else start.schema
        node = nodes.VariableNode(schema, _loops(start) | {self.loop}, self.loop, start.node if start else None)
        self.loop.add(node)
        return Variable(self.db, node)

    def enter(self, collection: Collection, at: Any = None) -> Collection:
        """A collection of outside, each row from the round that an expression says (round 0 if not said)."""
        self.loop.use(collection.node)
        node = nodes.EnterNode(collection.schema, collection.node.loops | {self.loop}, collection.node, self.loop, at)
        return Collection(self.db, node)

    def leave(self, collection: Collection) -> Collection:
        """What a collection of this loop comes to, for use outside."""
        loops = self.loop.leave(collection.node)
        return Collection(self.db, nodes.LeaveNode(collection.schema, loops, self.loop, collection.node))

    def __enter__(self) -> Recursion:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Nothing to release: a loop is only a description."""


def _loops(source: Collection | None) -> frozenset[nodes.Loop]:
    return source.node.loops if source is not None else frozenset()


def check_same_columns(found: Schema, wanted: Schema) -> None:
    """Refuse collections whose columns differ in name or type, in whatever order."""
    same = set(found.names) == set(wanted.names) and all(
        found.type_of(name).same(wanted.type_of(name)) for name in wanted.names
    )
    if not same:
        raise TypeMismatch("collections with different columns", detail=f"Found {found!r}, expected {wanted!r}.")
