"""The order of a group's rows: which lanes decide, which descend, and whether an index that exists has that order.

Kernels take the first rows in the order of lanes. Descending columns are complemented on the way in and out, so they
need an index of their own; symbols are ranked by value and may come in any order. Otherwise an index by the group's key
whose values lie in the order asked for is read as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.columns.schema import Schema
from kpg.plan import nodes


@dataclass(frozen=True, slots=True)
class Order:
    """The lanes of an index whose groups are in order: keys, the columns that decide, the rest to settle ties."""

    schema: Schema
    ranked: tuple[bool, ...]  # for each value lane, whether it is ordered by what it stands for
    descending: tuple[bool, ...]  # for each value lane
    complemented: tuple[int, ...]  # lanes that must be turned round

    @property
    def symbolic(self) -> bool:
        """Whether ranks are needed."""
        return any(self.ranked)


def order_of(node: nodes.ReduceNode) -> Order:
    """The order that the first rows of a group are taken by."""
    columns = node.reduction.columns
    by = [column.removeprefix("-") for column in columns]
    rest = [name for name in node.schema.names if name not in node.keys and name not in by]
    schema = node.input.schema.select([*node.keys, *by, *rest])
    ranked = tuple(schema.type_of(name).is_symbolic for name in [*by, *rest])
    descending = tuple(column.startswith("-") for column in columns) + (False,) * len(rest)
    down = tuple(len(node.keys) + at for at, falls in enumerate(descending) if falls)
    return Order(schema, ranked, descending, () if any(ranked) else down)


def has_order(node: nodes.ReduceNode, order: Order) -> bool:
    """Whether the input's index by the group's key has its lanes in this order."""
    names = lanes_of(node.input, node.keys)
    return not order.complemented and has_index(node.input, node.keys) and names == order.schema.names


def has_index(node: nodes.PlanNode, keys: tuple[str, ...]) -> bool:
    """Whether a collection is arranged by these columns, or may choose to be."""
    if isinstance(node, (nodes.RelationNode, nodes.InstalledNode)):
        return node.owner.arranged_by(keys) is not None
    return isinstance(node, nodes.ArrangeNode) and node.keys == keys


def lanes_of(node: nodes.PlanNode, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The order in which the index of a node by some columns has its lanes."""
    while isinstance(node, nodes.ArrangeNode):
        node = node.input
    if (
        isinstance(node, (nodes.RelationNode, nodes.InstalledNode))
        and (owner := node.owner.arranged_by(keys)) is not None
    ):
        names: tuple[str, ...] = owner.schema.names
        return names
    return keys + tuple(name for name in node.schema.names if name not in keys)
