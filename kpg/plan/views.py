"""Views of arrangements: filter, negate and concat as wrappers that share its batches instead of making new ones.

    join(filter(A), B)  =  filter(join(A, B))
    join(−A, B)         =  −join(A, B)
    join(A + A', B)     =  join(A, B) + join(A', B)

because a join is bilinear. Where A has an index by the join's key already, its view needs none of its own: the join
reads A's index and what the view says is done to the pairs. Over anything without an index the same nodes are stream
operators; whoever wants a view indexed by itself arranges it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kpg.plan import nodes


@dataclass(frozen=True, slots=True)
class View:
    """An indexed node, the conditions its rows must meet, and whether they count negatively."""

    node: nodes.PlanNode
    conditions: tuple[object, ...] = ()
    negative: bool = False


def views_of(node: nodes.PlanNode, keys: tuple[str, ...]) -> list[View]:
    """A node as views of what is indexed by `keys`; as one view of itself where that does not apply."""
    return peel(node, keys) or [View(node)]


def peel(node: nodes.PlanNode, keys: tuple[str, ...]) -> list[View] | None:
    """The views that a node is made of, if all it is made of has an index by these keys."""
    views: list[View] = []
    stack = [View(node)]
    while stack:
        view = stack.pop()
        inner = view.node
        if is_indexed(inner, keys):
            views.append(view)
        elif isinstance(inner, nodes.FilterNode):
            stack.append(replace(view, node=inner.input, conditions=(inner.condition, *view.conditions)))
        elif isinstance(inner, nodes.NegateNode):
            stack.append(replace(view, node=inner.input, negative=not view.negative))
        elif isinstance(inner, nodes.ConcatNode):
            stack += [replace(view, node=part) for part in reversed(inner.inputs)]
        else:
            return None
    return views


def is_indexed(node: nodes.PlanNode, keys: tuple[str, ...]) -> bool:
    """Whether an arrangement by these keys exists, or comes with the node."""
    match node:
        case nodes.InstalledNode() | nodes.RelationNode():
            return node.owner.arranged_by(keys) is not None
        case nodes.ArrangeNode() | nodes.ReduceNode():
            return node.keys == keys
    return False
