"""Plans as JSON: what a client asks for and every worker builds alike.

    read(write(node), host)  describes the same collection, over the host's own relations

A document names relations and installed arrangements; whoever reads it finds them among its own. Only what is listed
here can be made from a document: no code is in it. A user's function crosses as the name it is imported by
("module:name"), so who may send a document may have any function called that can be imported there: ranks take them
from their coordinator only, and what serves strangers must refuse functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, Protocol

from kpg.columns.expression import Expression
from kpg.columns.schema import Schema
from kpg.errors import ProtocolError
from kpg.plan import nodes
from kpg.plan.plan_values import (
    function_of_name,
    name_of_function,
    read_expression,
    read_schema,
    write_expression,
    write_schema,
)

# The kind of each node in a document. These are names on the wire: they do not follow the names of classes.
KINDS: Final[dict[str, type[nodes.PlanNode]]] = {
    "Installed": nodes.InstalledNode,
    "Relation": nodes.RelationNode,
    "Select": nodes.SelectNode,
    "Filter": nodes.FilterNode,
    "FlatMap": nodes.FlatMapNode,
    "Negate": nodes.NegateNode,
    "Explode": nodes.ExplodeNode,
    "Delay": nodes.DelayNode,
    "Enter": nodes.EnterNode,
    "Concat": nodes.ConcatNode,
    "Consolidate": nodes.ConsolidateNode,
    "Arrange": nodes.ArrangeNode,
    "Join": nodes.JoinNode,
    "Reduce": nodes.ReduceNode,
    "Variable": nodes.VariableNode,
    "Leave": nodes.LeaveNode,
    "Inspect": nodes.InspectNode,
    "Changes": nodes.DeltaSourceNode,
    "Extend": nodes.ExtendNode,
}
KIND_NAMES: Final = {node: kind for kind, node in KINDS.items()}


class PlanHost(Protocol):
    """Where a document is read: its relations, and how users' functions meet its columns."""

    def find_owner(self, reference: Any) -> Any:
        """The relation or installed arrangement that a document names."""

    def flat_map(self, function: Callable[..., Any], before: Schema, after: Schema) -> Callable[[Any], Any]:
        """A user's function from tables to tables, as flat_map takes it."""

    def inspect(self, function: Callable[..., Any], schema: Schema) -> Callable[[Any], None]:
        """A user's function of changes, as inspect takes it."""


# Writing


def write(root: nodes.PlanNode, reference_of: Callable[[Any], Any]) -> dict[str, Any]:
    """A plan as plain values for JSON; `reference_of` names relations and installed arrangements."""
    return PlanWriter(reference_of).document(root)


class PlanWriter:
    """Numbers nodes and loops, inputs before what reads them."""

    def __init__(self, reference_of: Callable[[Any], Any]) -> None:
        self.reference_of = reference_of
        self.numbers: dict[nodes.PlanNode, int] = {}
        self.loops: dict[nodes.Loop, int] = {}
        self.written: list[dict[str, Any]] = []

    def document(self, root: nodes.PlanNode) -> dict[str, Any]:
        """The whole plan of a node."""
        waiting = [root]
        done = 0
        while waiting or done < len(self.loops):
            if waiting:
                self._write(waiting.pop())
            else:  # what variables come to in the next round may need more nodes and more loops
                loop = list(self.loops)[done]
                done += 1
                waiting += [*loop.definitions, *map(loop.definition, loop.definitions)]
        return {
            "nodes": self.written,
            "loops": [self._loop(loop) for loop in self.loops],
            "root": self.numbers[root],
        }

    def _write(self, root: nodes.PlanNode) -> None:
        stack = [root]
        while stack:
            node = stack[-1]
            missing = [before for before in nodes.inputs_of(node) if before not in self.numbers]
            if missing:
                stack += missing
                continue
            stack.pop()
            if node not in self.numbers:
                for loop in sorted(node.loops, key=lambda loop: loop.name):
                    self.loops.setdefault(loop, len(self.loops))
                entry = {"kind": KIND_NAMES[type(node)]}
                entry |= {field.name: self._value(getattr(node, field.name)) for field in fields(node)}
                self.numbers[node] = len(self.written)
                self.written.append(entry)

    def _loop(self, loop: nodes.Loop) -> dict[str, Any]:
        return {
            "name": loop.name,
            "max_rounds": loop.max_rounds,
            "inside": [self.loops[each] for each in loop._inside if each in self.loops],
            "definitions": [
                [self.numbers[variable], self.numbers[loop.definition(variable)]] for variable in loop.definitions
            ],
        }

    def _value(self, value: Any) -> Any:
        match value:
            case None | bool() | int() | str():
                return value
            case nodes.PlanNode():
                return {"node": self.numbers[value]}
            case nodes.Loop():
                return {"loop": self.loops.setdefault(value, len(self.loops))}
            case frozenset():
                return {"loops": sorted(self.loops[loop] for loop in value)}
            case Schema():
                return {"schema": write_schema(value)}
            case Expression():
                return {"expression": write_expression(value)}
            case nodes.ReductionSpec():
                return {"reduction": {field.name: self._value(getattr(value, field.name)) for field in fields(value)}}
            case nodes.ExtenderSpec():
                return {"extender": {field.name: self._value(getattr(value, field.name)) for field in fields(value)}}
            case tuple() | list():
                return [self._value(each) for each in value]
            case _ if hasattr(value, "function"):  # a user's function, made fit for lanes
                return {"function": name_of_function(value.function)}
            case _ if callable(value):
                return {"function": name_of_function(value)}
            case _:
                return {"owner": self.reference_of(value)}


# Reading


def read(document: dict[str, Any], host: PlanHost) -> nodes.PlanNode:
    """The plan that a document describes, over the relations of `host`."""
    try:
        return PlanReader(document, host).root()
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError("a plan makes no sense", detail=f"{type(error).__name__}: {error}") from error


class PlanReader:
    """Makes nodes in the order of their numbers."""

    def __init__(self, document: dict[str, Any], host: PlanHost) -> None:
        self.document = document
        self.host = host
        self.loops = [nodes.Loop(str(each["name"]), int(each["max_rounds"])) for each in document["loops"]]
        self.nodes: list[nodes.PlanNode] = []

    def root(self) -> nodes.PlanNode:
        """The node that the plan is of."""
        for loop, described in zip(self.loops, self.document["loops"], strict=True):
            loop._inside.update(self.loops[index] for index in described["inside"])
        for entry in self.document["nodes"]:
            self.nodes.append(self._node(entry))
        for loop, described in zip(self.loops, self.document["loops"], strict=True):
            for variable, definition in described["definitions"]:
                found = self.nodes[variable]
                if not isinstance(found, nodes.VariableNode) or found.loop is not loop:
                    raise ProtocolError("a plan defines what is no variable of its loop")
                loop.definitions[found] = self.nodes[definition]
        return self.nodes[int(self.document["root"])]

    def _node(self, entry: dict[str, Any]) -> nodes.PlanNode:
        kind = KINDS[entry["kind"]]
        values = {field.name: self._value(entry[field.name]) for field in fields(kind)}
        if kind is nodes.FlatMapNode:
            values["function"] = self.host.flat_map(values["function"], values["input"].schema, values["schema"])
        if kind is nodes.InspectNode:
            values["function"] = self.host.inspect(values["function"], values["schema"])
        made: nodes.PlanNode = kind(**values)
        return made

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self._value(each) for each in value)
        if not isinstance(value, dict):
            return value
        ((kind, inner),) = value.items()
        match kind:
            case "node":
                return self.nodes[inner]
            case "loop":
                return self.loops[inner]
            case "loops":
                return frozenset(self.loops[index] for index in inner)
            case "schema":
                return read_schema(inner)
            case "expression":
                return read_expression(inner)
            case "reduction":
                return nodes.ReductionSpec(**{name: self._value(each) for name, each in inner.items()})
            case "extender":
                return nodes.ExtenderSpec(**{name: self._value(each) for name, each in inner.items()})
            case "function":
                return function_of_name(inner)
            case "owner":
                return self.host.find_owner(inner)
        raise ProtocolError(f"a plan holds a value of unknown kind {kind!r}")
