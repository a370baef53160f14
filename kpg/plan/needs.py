"""What a rendering asks for: the streams and arrangements that must be there before a node's own operators.

    needs_of(...)  =  what `Renderer` asks of itself while it renders that one node, in the order it asks

The renderer works these off with a list of its own, so a plan may be as deep as memory allows. Whatever is missing here
is rendered when asked for, which costs a frame of Python's stack, no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kpg.plan import nodes
from kpg.plan.chains import chain_to
from kpg.plan.extends import index_of
from kpg.plan.joins import keys_of, pairs_of
from kpg.plan.reductions import reads_index

if TYPE_CHECKING:
    from kpg.plan.render import Renderer


class Need(NamedTuple):
    """A node, to be had as a stream, or arranged by some columns."""

    node: nodes.Node
    keys: tuple[str, ...] | None = None


def needs_of(renderer: Renderer, need: Need) -> list[Need]:
    """What is needed for something that is needed."""
    node, keys = need
    if keys is None:
        return _of_collection(renderer, node)
    if isinstance(node, nodes.Arrange):
        return [Need(node.input, keys)]
    if isinstance(node, (nodes.Relation, nodes.Installed)) and node.owner.arranged_by(keys) is not None:
        return []
    return [Need(node)]


def _of_collection(renderer: Renderer, node: nodes.Node) -> list[Need]:
    match node:
        case nodes.Relation() | nodes.Installed():
            return []
        case nodes.Concat() | nodes.Consolidate() | nodes.Variable() | nodes.Leave():
            return [Need(inner) for inner in nodes.inputs_of(node)]
        case nodes.Changes() | nodes.Saturated():
            return [Need(inner) for inner in nodes.inputs_of(node)]
        case nodes.Join():
            return _of_join(node)
        case nodes.Extend():
            said = (*node.extenders, *node.gates)
            return [Need(node.input), *[Need(each.node, index_of(renderer, each)) for each in said]]
        case nodes.Arrange():
            return [Need(node.input, node.keys)]
        case nodes.Reduce():
            return [Need(node.input, node.keys if reads_index(node) else None)]
    start = nodes.inputs_of(chain_to(renderer, node)[0])[0]
    return _of_join(start) if isinstance(start, nodes.Join) and renderer.is_private(start) else [Need(start)]


def _of_join(node: nodes.Join) -> list[Need]:
    keys = keys_of(node)
    return [Need(view.node, by) for pair in pairs_of(node) for view, by in zip(pair, keys, strict=True)]
