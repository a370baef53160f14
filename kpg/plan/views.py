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
    """An indexed node, the conditions on its rows, and whether its diffs are negated."""

    node: nodes.PlanNode
    conditions: tuple[object, ...] = ()
    negative: bool = False


def views_of(node: nodes.PlanNode, keys: tuple[str, ...]) -> list[View]:
    """Return a node as views of nodes indexed by `keys`, or else as one view of itself."""
    return indexed_views(node, keys) or [View(node)]


def indexed_views(node: nodes.PlanNode, keys: tuple[str, ...]) -> list[View] | None:
    """Return the views that a node consists of, if all of them have an index by these keys; else None."""
    views: list[View] = []
    stack = [View(node)]
    while stack:
        view = stack.pop()
        inner = view.node
        if is_indexed(inner, keys):
            views.append(view)
        elif isinstance(inner, nodes.FilterNode) and not inner.silent:
            stack.append(replace(view, node=inner.input, conditions=(inner.condition, *view.conditions)))
        elif isinstance(inner, nodes.NegateNode):
            stack.append(replace(view, node=inner.input, negative=not view.negative))
        elif isinstance(inner, nodes.ConcatNode):
            stack += [replace(view, node=part) for part in reversed(inner.inputs)]
        else:
            return None
    return views


def is_indexed(node: nodes.PlanNode, keys: tuple[str, ...]) -> bool:
    """Return whether an arrangement by these keys exists, or is a by-product of rendering the node."""
    match node:
        case nodes.InstalledNode() | nodes.RelationNode():
            return node.owner.arranged_by(keys) is not None
        case nodes.ArrangeNode() | nodes.ReduceNode():
            return node.keys == keys
    return False
