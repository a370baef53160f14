"""Build equal parts of a plan once: nodes of the same kind with the same inputs and parameters become one node.

Nodes inside loops are left as they are, and so are functions of users, which cannot be compared. The walk uses an
explicit order, so plans may be thousands of nodes deep.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from kpg.columns.expression import Expression
from kpg.columns.pause_points import pause
from kpg.plan import nodes
from kpg.plan.node_traversal import dependencies_first


def share_equal_plans(root: nodes.PlanNode) -> nodes.PlanNode:
    """Return a plan with the same meaning in which no two nodes outside loops are equal."""
    shared: dict[nodes.PlanNode, nodes.PlanNode] = {}
    known: dict[Hashable, nodes.PlanNode] = {}
    for node in dependencies_first([root]):
        if node.loops or isinstance(node, (nodes.LeaveNode, nodes.EnterNode, nodes.VariableNode)):
            shared[node] = node
            continue
        new = rebuilt(node, shared)
        shared[node] = known.setdefault((type(node).__name__, *_parts(new)), new)
    return shared[root]


def rebuilt(node: nodes.PlanNode, replaced: dict[nodes.PlanNode, nodes.PlanNode]) -> nodes.PlanNode:
    """Return a node that reads other nodes in place of some; the node itself if it reads none of these."""
    changes = {
        field.name: new
        for field in fields(node)
        if (new := with_replaced(old := getattr(node, field.name), replaced)) is not old
    }
    return replace(node, **changes) if changes else node


def with_replaced(value: Any, shared: dict[nodes.PlanNode, nodes.PlanNode]) -> Any:
    """Return a member of a node with some nodes replaced by others."""
    if isinstance(value, nodes.PlanNode):
        return shared.get(value, value)
    if isinstance(value, nodes.ExtenderSpec):
        node = shared.get(value.node, value.node)
        return value if node is value.node else replace(value, node=node)
    if isinstance(value, nodes.SaturationSpec):
        inputs = with_replaced(value.inputs, shared)
        return value if inputs is value.inputs else replace(value, inputs=inputs)
    if isinstance(value, tuple) and any(isinstance(part, (nodes.PlanNode, nodes.ExtenderSpec)) for part in value):
        parts = tuple(with_replaced(part, shared) for part in value)
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    return value


def _parts(node: Any) -> list[Hashable]:
    pause()
    return [_key(getattr(node, field.name)) for field in fields(node)]


def _key(value: Any) -> Hashable:
    """Return a key that is equal for equal members of nodes."""
    if isinstance(value, Expression):
        return value.structure()
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    if isinstance(value, (nodes.ReductionSpec, nodes.ExtenderSpec, nodes.SaturationSpec)):
        return tuple(_parts(value))
    if isinstance(value, nodes.PlanNode) or (is_dataclass(value) and not isinstance(value, Hashable)):
        return id(value)
    return value if isinstance(value, Hashable) else id(value)
