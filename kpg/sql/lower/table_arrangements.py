"""The arrangements of base tables that joins can read: by their key, and by columns that other queries asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kpg.api.collection import Collection
from kpg.plan import nodes
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.relational.scalars import Column

MAX_WIDTH_RATIO: Final = 2  # of all columns of a table to those that a query reads, for an arrangement of all columns


def is_arranged_by(relation: LoweredRelation, columns: frozenset[Column]) -> bool:
    """Return whether a table, perhaps below filters, has an arrangement that a join by some columns can read."""
    return bool(serving_key(relation, {relation.names[column] for column in columns}))


def serving_key(relation: LoweredRelation, names: set[str]) -> tuple[str, ...]:
    """Return some columns in the order of an arrangement of a table that is by them; empty if there is none.

    It is by its key, by the columns of an index, or by those that another query asked for. On one worker, an
    arrangement whose key begins with the columns serves as well.
    """
    key = table_key(relation)
    first = key[: len(names)] if relation.rows.db.is_single_worker else key
    if names and set(first) == names:
        return first
    node, _ = unfiltered(relation.rows.node)
    others = getattr(node.owner, "other_keys", list) if isinstance(node, nodes.RelationNode) else list
    return next((keys for keys in others() if set(keys) == names), ())


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
            own = node.owner.base().schema.names if also_prefix else ()
            return find(keys) is not None or (bool(keys) and own[: len(keys)] == keys)
    return False


def shared_index(rows: Collection, read: Iterable[str], keys: tuple[str, ...]) -> Collection | None:
    """Return a table arranged by some columns for all queries, None if the query should arrange its own columns.

    All columns are kept, so that any later query can read the arrangement. That is worth it if the query reads at
    least half of them itself. A filtered table is arranged by its query alone.
    """
    node = rows.node
    if not isinstance(node, nodes.RelationNode) or not keys or len(set(keys)) < len(keys):
        return None
    own = rows.schema.select(list(dict.fromkeys((*keys, *read)))).width
    if rows.schema.width > MAX_WIDTH_RATIO * own or getattr(node.owner, "is_log", False):
        return None
    return Collection(rows.db, nodes.ArrangeNode(node.schema, frozenset(), node, keys, shared=True))


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
