"""The arrangements of base tables that joins can read: by their key, and by columns that other queries asked for."""

from __future__ import annotations

from typing import Any

from kpg.plan import nodes
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.relational.scalars import Column


def is_arranged_by(relation: LoweredRelation, columns: frozenset[Column]) -> bool:
    """Return whether a table, perhaps below filters, is arranged by exactly some columns."""
    names = {relation.names[column] for column in columns}
    return bool(names) and set(table_key(relation)) == names


def is_indexed_by(node: nodes.PlanNode, keys: tuple[str, ...], also_prefix: bool = False) -> bool:
    """Return whether a plan, perhaps below filters, has an index by some columns already, so a join builds none.

    With `also_prefix`, an index whose key begins with the columns counts as well. A relation of several workers knows
    only its key here; the workers look for other arrangements when they render.
    """
    while isinstance(node, nodes.FilterNode) and not node.silent:
        node = node.input
    match node:
        case nodes.ArrangeNode() | nodes.ReduceNode():
            return node.keys == keys
        case nodes.RelationNode() | nodes.InstalledNode():
            find = getattr(node.owner, "arranged_by", None)
            if find is None:
                return getattr(node.owner, "key", ()) == keys
            own = node.owner.base().keys if also_prefix else ()
            return find(keys) is not None or (bool(keys) and own[: len(keys)] == keys)
    return False


def unfiltered(node: nodes.PlanNode) -> tuple[nodes.PlanNode, list[Any]]:
    """Return a plan without its outer filters, and their conditions."""
    conditions: list[Any] = []
    while isinstance(node, nodes.FilterNode) and not node.silent:
        conditions.append(node.condition)
        node = node.input
    return node, conditions


def table_key(relation: LoweredRelation) -> tuple[str, ...]:
    """Return the columns that a table, perhaps below filters, is arranged by; none of another relation."""
    node = relation.rows.node
    while isinstance(node, nodes.FilterNode) and not node.silent:
        node = node.input
    if isinstance(node, nodes.ArrangeNode):
        return node.keys
    if not isinstance(node, (nodes.RelationNode, nodes.InstalledNode)):
        return ()
    keys: tuple[str, ...] | None = getattr(node.owner, "key", None) or getattr(node.owner, "keys", None)
    return keys or ()
