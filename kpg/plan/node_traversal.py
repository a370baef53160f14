"""Walks over the graph of plan nodes: the inputs of a node, its readers, and an order with dependencies first.

The graph is acyclic except for loops: a variable depends on its definition, which depends on the variable. All walks
use an explicit stack or queue, so only memory bounds the depth of a plan; their cost is linear in nodes and edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kpg.plan.nodes import (
    ConcatNode,
    EnterNode,
    ExtendNode,
    JoinNode,
    LeaveNode,
    PlanNode,
    SaturatedNode,
    VariableNode,
)


def owners(relations: Mapping[PlanNode, str]) -> dict[PlanNode, str]:
    """Return the relation that each node belongs to: its own, or that of the first such node that reads it."""
    owner = dict(relations)
    queue = list(owner)
    for node in queue:
        for read in inputs_of(node):
            if read not in owner:
                owner[read] = owner[node]
                queue.append(read)
    return owner


def inputs_of(node: PlanNode) -> tuple[PlanNode, ...]:
    """Return the direct inputs of a node. The definition of a variable belongs to its loop and is not included."""
    if isinstance(node, ConcatNode):
        return node.inputs
    if isinstance(node, JoinNode):
        return (node.left, node.right)
    if isinstance(node, ExtendNode):
        return (node.input, *[extender.node for extender in (*node.extenders, *node.gates)])
    if isinstance(node, VariableNode):
        return (node.source,) if node.source else ()
    if isinstance(node, EnterNode):
        return (node.input,) if node.otherwise is None else (node.input, node.otherwise)
    if isinstance(node, LeaveNode):
        return (node.input,) if node.graph is None else (node.input, node.graph)
    if isinstance(node, SaturatedNode):
        return node.saturation.inputs
    inner = getattr(node, "input", None)
    return (inner,) if inner is not None else ()


def dependencies_of_node(node: PlanNode) -> tuple[PlanNode, ...]:
    """Return the nodes that a node is computed from: its inputs, and the definition of a variable."""
    inner = inputs_of(node)
    return (*inner, node.loop.definition(node)) if isinstance(node, VariableNode) else inner


def dependencies_first(roots: Iterable[PlanNode]) -> list[PlanNode]:
    """Return all nodes that some nodes depend on, each after those it depends on, except around loops."""
    ordered: dict[PlanNode, None] = {}
    seen: set[PlanNode] = set()
    stack = [(root, False) for root in roots]
    while stack:
        node, done = stack.pop()
        if done:
            ordered[node] = None
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(inner, False) for inner in dependencies_of_node(node)]
    return list(ordered)


def count_uses(roots: tuple[PlanNode, ...]) -> dict[PlanNode, int]:
    """Count the readers of each node that the roots need; a root itself counts as one reader."""
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
