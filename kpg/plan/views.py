"""Views of arrangements: filter, negate and concat of indexed nodes, without an index of their own.

    join(filter(A), B)  =  filter(join(A, B))
    join(−A, B)         =  −join(A, B)
    join(A + A', B)     =  join(A, B) + join(A', B)

These equations hold because a join is bilinear. If A has an index by the join's key, its view needs no index of its
own: the join reads A's index, and applies the filter and the sign of the view to the pairs. Without such an index, the
same nodes are rendered as stream operators. To index the view itself, arrange it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kpg.plan import nodes


@dataclass(frozen=True, slots=True)
class View:
    """An indexed node, the key of its index, the conditions on its rows, and whether its diffs are negated."""

    node: nodes.PlanNode
    index: tuple[str, ...]  # begins with the key of the join
    conditions: tuple[object, ...] = ()
    negative: bool = False


def views_of(node: nodes.PlanNode, keys: tuple[str, ...], alone: bool) -> list[View]:
    """Return a node as views of nodes indexed by `keys`, or else as one view of itself.

    `alone` says that one worker has all rows. An index then serves any first columns of its rows, since it is sorted by
    all of them; with several workers, its key decides which worker has a row.
    """
    return indexed_views(node, keys, alone) or [View(node, keys)]


def indexed_views(node: nodes.PlanNode, keys: tuple[str, ...], alone: bool) -> list[View] | None:
    """Return the views that a node consists of, if all of them have an index by these keys; else None."""
    views: list[View] = []
    stack = [View(node, keys)]
    while stack:
        view = stack.pop()
        inner = view.node
        index = key_of_index(inner, keys, alone)
        if index is not None:
            views.append(view if view.index == index else replace(view, index=index))
        elif isinstance(inner, nodes.FilterNode) and not inner.silent:
            stack.append(replace(view, node=inner.input, conditions=(inner.condition, *view.conditions)))
        elif isinstance(inner, nodes.NegateNode):
            stack.append(replace(view, node=inner.input, negative=not view.negative))
        elif isinstance(inner, nodes.ConcatNode):
            stack += [replace(view, node=part) for part in reversed(inner.inputs)]
        else:
            return None
    return views


def key_of_index(node: nodes.PlanNode, keys: tuple[str, ...], alone: bool) -> tuple[str, ...] | None:
    """Return the key of an arrangement that serves a join by `keys`; None if there is none yet.

    It exists, or is a by-product of rendering the node.
    """
    match node:
        case nodes.InstalledNode() | nodes.RelationNode():
            if node.owner.arranged_by(keys) is not None:
                return keys
            base = node.owner.base() if alone and keys else None
            return base.keys if base is not None and base.schema.names[: len(keys)] == keys else None
        case nodes.ArrangeNode() | nodes.ReduceNode():
            return keys if node.keys == keys else None
    return None
