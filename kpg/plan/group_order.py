"""The order of the rows of a group: its lanes, which of them descend, and whether an existing index has this order.

Kernels take the first rows in the order of lanes. Lanes of descending columns are therefore complemented before and
after, and the reduction needs an index of its own. If some lane is a symbol, no lane is complemented: the tactic orders
the rows of each group by rank. A reduction without complemented lanes reads an existing index by the group's key, if
the index has its columns in this order.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.columns.schema import Schema
from kpg.plan import nodes


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """The lanes of an index with ordered groups: keys, then the columns that decide, then the rest to break ties."""

    schema: Schema
    ranked: tuple[bool, ...]  # for each value lane, whether it is a symbol, ordered by its text
    descending: tuple[bool, ...]  # for each value lane
    complemented: tuple[int, ...]  # lanes to be complemented

    @property
    def symbolic(self) -> bool:
        """Whether some lanes are symbols."""
        return any(self.ranked)


def order_of(node: nodes.ReduceNode) -> GroupOrder:
    """Return the order that a reduction takes the first rows of a group by."""
    columns = node.reduction.columns
    by = [column.removeprefix("-") for column in columns]
    rest = [name for name in node.schema.names if name not in node.keys and name not in by]
    schema = node.input.schema.select([*node.keys, *by, *rest])
    types = [schema.type_of(name) for name in [*by, *rest]]
    ranked = tuple(type_.is_symbolic for type_ in types for _ in range(type_.lanes))
    signs = [column.startswith("-") for column in columns] + [False] * len(rest)
    descending = tuple(sign for sign, type_ in zip(signs, types, strict=True) for _ in range(type_.lanes))
    first = schema.width_of(len(node.keys))
    down = tuple(first + at for at, descends in enumerate(descending) if descends)
    return GroupOrder(schema, ranked, descending, () if any(ranked) else down)


def has_order(node: nodes.ReduceNode, order: GroupOrder) -> bool:
    """Return whether the index of the input by the group's key has its lanes in this order."""
    names = lanes_of(node.input, node.keys)
    return not order.complemented and has_index(node.input, node.keys) and names == order.schema.names


def has_index(node: nodes.PlanNode, keys: tuple[str, ...]) -> bool:
    """Return whether a collection is arranged by these columns, or can be without another copy."""
    if isinstance(node, (nodes.RelationNode, nodes.InstalledNode)):
        return node.owner.arranged_by(keys) is not None
    return isinstance(node, nodes.ArrangeNode) and node.keys == keys


def lanes_of(node: nodes.PlanNode, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the lanes of a node's index by some columns, in their order."""
    while isinstance(node, nodes.ArrangeNode):
        node = node.input
    if (
        isinstance(node, (nodes.RelationNode, nodes.InstalledNode))
        and (owner := node.owner.arranged_by(keys)) is not None
    ):
        names: tuple[str, ...] = owner.schema.names
        return names
    return keys + tuple(name for name in node.schema.names if name not in keys)
