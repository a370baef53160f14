"""The arrangements of base tables that joins can read: by their key, and by columns that other queries asked for."""

from __future__ import annotations

from kpg.plan import nodes
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.relational.scalars import Column


def is_arranged_by(relation: LoweredRelation, columns: frozenset[Column]) -> bool:
    """Return whether a table, perhaps below filters, is arranged by exactly some columns."""
    names = {relation.names[column] for column in columns}
    return bool(names) and set(table_key(relation)) == names


def table_key(relation: LoweredRelation) -> tuple[str, ...]:
    """Return the columns that a table, perhaps below filters, is arranged by; none of another relation."""
    node = relation.rows.node
    while isinstance(node, nodes.FilterNode) and not node.silent:
        node = node.input
    if not isinstance(node, (nodes.RelationNode, nodes.InstalledNode)):
        return ()
    key: tuple[str, ...] = getattr(node.owner, "key", ())  # of an input
    keys: tuple[str, ...] = getattr(node.owner, "keys", ())  # of an arrangement
    return key or keys
