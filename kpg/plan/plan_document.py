"""Plan documents: plans as JSON, so that every worker builds the same dataflow.

    read(write(node), host)  describes the same collection, over the relations of `host`

A document names relations and installed arrangements; the reader looks them up in its own db. Only the node kinds
listed in `KINDS` can occur, and a document contains no code. It names a user's function by its import path
("module:name"). The sender of a document can therefore call any importable function. So ranks accept documents from
their coordinator only, and a server for untrusted clients must refuse functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, Protocol

from kpg.columns.expression import Expression
from kpg.columns.expression_origin import ExpressionOrigin
from kpg.columns.pause_points import pause
from kpg.columns.schema import Schema
from kpg.errors import ProtocolError
from kpg.plan import nodes
from kpg.plan.node_traversal import inputs_of
from kpg.plan.plan_values import (
    function_of_name,
    name_of_function,
    read_constant,
    read_expression,
    read_origin,
    read_schema,
    write_constant,
    write_expression,
    write_origin,
    write_schema,
)
from kpg.plan.rule_documents import read_system, write_system

# The kind of each node in a document. These are names on the wire: they do not follow the names of classes.
KINDS: Final[dict[str, type[nodes.PlanNode]]] = {
    "Installed": nodes.InstalledNode,
    "Relation": nodes.RelationNode,
    "Stream": nodes.StreamNode,
    "Values": nodes.ValuesNode,
    "Select": nodes.SelectNode,
    "Filter": nodes.FilterNode,
    "FlatMap": nodes.FlatMapNode,
    "Negate": nodes.NegateNode,
    "Explode": nodes.ExplodeNode,
    "Delay": nodes.DelayNode,
    "Enter": nodes.EnterNode,
    "Concat": nodes.ConcatNode,
    "Consolidate": nodes.ConsolidateNode,
    "WorkerComponents": nodes.WorkerComponentsNode,
    "Arrange": nodes.ArrangeNode,
    "Join": nodes.JoinNode,
    "Reduce": nodes.ReduceNode,
    "Variable": nodes.VariableNode,
    "Leave": nodes.LeaveNode,
    "Inspect": nodes.InspectNode,
    "Changes": nodes.DeltaSourceNode,
    "Extend": nodes.ExtendNode,
    "Choice": nodes.ChosenRowsNode,
    "Number": nodes.NumberedRowsNode,
    "Saturated": nodes.SaturatedNode,
}
NODES_PER_PAUSE: Final = 16  # that are read: a millisecond or two
KIND_NAMES: Final = {node: kind for kind, node in KINDS.items()}


class PlanHost(Protocol):
    """The db that a document is read for: its relations, and its adapters for users' functions."""

    def find_owner(self, reference: Any) -> Any:
        """Return the relation or installed arrangement that a document names."""

    def flat_map(self, function: Callable[..., Any], before: Schema, after: Schema) -> Callable[[Any], Any]:
        """Adapt a user's function from tables to tables for a FlatMapNode."""

    def inspect(self, function: Callable[..., Any], schema: Schema) -> Callable[[Any], None]:
        """Adapt a user's function of changes for an InspectNode."""


# Writing


def write(root: nodes.PlanNode, reference_of: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a plan as values for JSON. `reference_of` names relations and installed arrangements."""
    return PlanWriter(reference_of).document(root)


class PlanWriter:
    """Numbers nodes and loops; a node comes after its inputs."""

    def __init__(self, reference_of: Callable[[Any], Any]) -> None:
        self.reference_of = reference_of
        self.numbers: dict[nodes.PlanNode, int] = {}
        self.loops: dict[nodes.Loop, int] = {}
        self.saturations: dict[nodes.SaturationSpec, int] = {}
        self.written: list[dict[str, Any]] = []

    def document(self, root: nodes.PlanNode) -> dict[str, Any]:
        """Return the whole plan of a node."""
        waiting = [root]
        loops_done = 0
        while waiting or loops_done < len(self.loops):
            if waiting:
                self._write(waiting.pop())
            else:  # definitions of variables may need more nodes and more loops
                loop = list(self.loops)[loops_done]
                loops_done += 1
                waiting += [*loop.definitions, *map(loop.definition, loop.definitions)]
        return {
            "nodes": self.written,
            "loops": [self._loop(loop) for loop in self.loops],
            "saturations": [self._saturation(saturation) for saturation in self.saturations],
            "root": self.numbers[root],
        }

    def _write(self, root: nodes.PlanNode) -> None:
        stack = [root]
        while stack:
            node = stack[-1]
            missing = [before for before in inputs_of(node) if before not in self.numbers]
            if missing:
                stack += missing
                continue
            stack.pop()
            if node not in self.numbers:
                pause()
                for loop in sorted(node.loops, key=lambda loop: loop.name):
                    self.loops.setdefault(loop, len(self.loops))
                entry = {"kind": KIND_NAMES[type(node)]}
                entry |= self._members(node)
                self.numbers[node] = len(self.written)
                self.written.append(entry)

    def _members(self, node: nodes.PlanNode) -> dict[str, Any]:
        if isinstance(node, nodes.ValuesNode):
            rows = [[write_constant(value) for value in row] for row in node.rows]
            return {"schema": self._value(node.schema), "rows": rows}
        return {field.name: self._value(getattr(node, field.name)) for field in fields(node)}

    def _loop(self, loop: nodes.Loop) -> dict[str, Any]:
        return {
            "name": loop.name,
            "max_rounds": loop.max_rounds,
            "declarative": loop.declarative,
            "stops": loop.stops,
            "as_written": loop.as_written,
            "inside": [self.loops[outer] for outer in loop._inside if outer in self.loops],
            "definitions": [
                [self.numbers[variable], self.numbers[loop.definition(variable)]] for variable in loop.definitions
            ],
        }

    def _saturation(self, saturation: nodes.SaturationSpec) -> dict[str, Any]:
        inputs = [self.numbers[node] for node in saturation.inputs]
        return {"system": write_system(saturation.system), "inputs": inputs, "names": list(saturation.names)}

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
            case ExpressionOrigin():
                return {"origin": write_origin(value)}
            case nodes.SaturationSpec():  # several nodes may refer to one
                return {"saturation": self.saturations.setdefault(value, len(self.saturations))}
            case nodes.ReductionSpec():
                return {"reduction": {field.name: self._value(getattr(value, field.name)) for field in fields(value)}}
            case nodes.ExtenderSpec():
                return {"extender": {field.name: self._value(getattr(value, field.name)) for field in fields(value)}}
            case tuple() | list():
                return [self._value(item) for item in value]
            case _ if hasattr(value, "function"):  # an adapted user's function
                return {"function": name_of_function(value.function)}
            case _ if callable(value):
                return {"function": name_of_function(value)}
            case _:
                return {"owner": self.reference_of(value)}


def references(document: dict[str, Any]) -> list[Any]:
    """Return the references to relations and installed arrangements in a document, as `reference_of` made them."""
    result: list[Any] = []
    waiting: list[Any] = [document["nodes"]]
    while waiting:
        match waiting.pop():
            case {"owner": [str(), _] as reference}:
                result.append(reference)
            case dict() as members:
                waiting += members.values()
            case list() as items:
                waiting += items
    return result


# Reading


def read(document: dict[str, Any], host: PlanHost) -> nodes.PlanNode:
    """Return the plan that a document describes, over the relations of `host`."""
    try:
        return PlanReader(document, host).root()
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError("the plan document is malformed", detail=f"{type(error).__name__}: {error}") from error


class PlanReader:
    """Builds nodes in the order of their numbers."""

    def __init__(self, document: dict[str, Any], host: PlanHost) -> None:
        self.document = document
        self.host = host
        self.loops = [
            nodes.Loop(
                str(loop["name"]),
                int(loop["max_rounds"]),
                bool(loop["declarative"]),
                bool(loop["stops"]),
                None if loop["as_written"] is None else str(loop["as_written"]),
            )
            for loop in document["loops"]
        ]
        self.nodes: list[nodes.PlanNode] = []
        self.saturations: dict[int, nodes.SaturationSpec] = {}

    def root(self) -> nodes.PlanNode:
        """Return the root node of the plan."""
        for loop, described in zip(self.loops, self.document["loops"], strict=True):
            loop._inside.update(self.loops[index] for index in described["inside"])
        for number, entry in enumerate(self.document["nodes"]):
            if number % NODES_PER_PAUSE == NODES_PER_PAUSE - 1:
                pause()
            self.nodes.append(self._node(entry))
        for loop, described in zip(self.loops, self.document["loops"], strict=True):
            for variable, definition in described["definitions"]:
                node = self.nodes[variable]
                if not isinstance(node, nodes.VariableNode) or node.loop is not loop:
                    raise ProtocolError("the plan defines a node that is not a variable of the loop")
                loop.definitions[node] = self.nodes[definition]
        return self.nodes[int(self.document["root"])]

    def _node(self, entry: dict[str, Any]) -> nodes.PlanNode:
        kind = KINDS[entry["kind"]]
        if kind is nodes.ValuesNode:
            rows = tuple(tuple(map(read_constant, row)) for row in entry["rows"])
            return nodes.ValuesNode(self._value(entry["schema"]), frozenset(), rows)
        values = {field.name: self._value(entry[field.name]) for field in fields(kind)}
        if kind is nodes.FlatMapNode:
            values["function"] = self.host.flat_map(values["function"], values["input"].schema, values["schema"])
        if kind is nodes.InspectNode:
            values["function"] = self.host.inspect(values["function"], values["schema"])
        node: nodes.PlanNode = kind(**values)
        return node

    def _saturation(self, number: int) -> nodes.SaturationSpec:
        """Return a recursion; its inputs are there when the first node that refers to it is read."""
        if number not in self.saturations:
            written = self.document["saturations"][number]
            inputs = tuple(self.nodes[node] for node in written["inputs"])
            system, names = read_system(written["system"]), tuple(map(str, written["names"]))
            self.saturations[number] = nodes.SaturationSpec(system, inputs, names)
        return self.saturations[number]

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self._value(item) for item in value)
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
            case "origin":
                return read_origin(inner)
            case "saturation":
                return self._saturation(int(inner))
            case "reduction":
                return nodes.ReductionSpec(**{name: self._value(item) for name, item in inner.items()})
            case "extender":
                return nodes.ExtenderSpec(**{name: self._value(item) for name, item in inner.items()})
            case "function":
                return function_of_name(inner)
            case "owner":
                return self.host.find_owner(inner)
        raise ProtocolError(f"the plan has a value of unknown kind {kind!r}")
