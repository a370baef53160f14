"""Rendering: from the description of a collection to the operators of one dataflow.

Each node is rendered once, in the scope of the innermost loop it depends on, and entered into the loops that use it.
Every stateful operator is an arrangement and a thin shell, and arrangements are shared by all that ask for the same
key. The same nodes give the same operators in the same order on every worker.

What a node needs is rendered before it, from a list, so that plans may be deep.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kpg.columns.schema import Schema
from kpg.dataflow.graph import Dataflow, Stream
from kpg.operators import iterate
from kpg.operators.saturate import saturate
from kpg.plan import nodes
from kpg.plan.chains import render_chain
from kpg.plan.delta_queries import render_changes, render_extend
from kpg.plan.dependencies import Dependency, needs_of
from kpg.plan.joins import render_join
from kpg.plan.loops import close_variable, render_variable
from kpg.plan.placement import common
from kpg.plan.reductions import render_errors_of_loop, render_reduction
from kpg.plan.rendered import Context, Rendered, RenderedArrangement
from kpg.plan.scopes import Scopes, around
from kpg.plan.streams import ERRORS, Streams


class Renderer(Streams):
    """Renders nodes into one dataflow."""

    def __init__(self, dataflow: Dataflow, context: Context, *roots: nodes.PlanNode) -> None:
        super().__init__(dataflow, context)
        self.scopes = Scopes(dataflow)
        self.uses = nodes.count_uses(roots)
        self.imported: list[Any] = []
        self._collections: dict[nodes.PlanNode, Rendered] = {}
        self._arrangements: dict[tuple[object, tuple[str, ...]], RenderedArrangement] = {}
        self._saturations: dict[nodes.SaturationSpec, list[Stream]] = {}
        self._open: list[tuple[nodes.VariableNode, iterate.Feedback]] = []

    # Entries

    def collection(self, node: nodes.PlanNode) -> Rendered:
        """The stream of a node, in the node's own scope."""
        if node not in self._collections:
            self._satisfy(Dependency(node))
        return self._collections[node]

    def arranged(self, node: nodes.PlanNode, keys: tuple[str, ...]) -> RenderedArrangement:
        """The node arranged by some columns, in the node's own scope."""
        if (node, keys) not in self._arrangements:
            self._satisfy(Dependency(node, keys))
        return self._arrangements[node, keys]

    def collection_in(self, node: nodes.PlanNode, loop: nodes.Loop | None) -> Rendered:
        """The stream of a node, entered into a loop."""
        return self.scopes.enter(self.collection(node), loop)

    def arranged_in(self, node: nodes.PlanNode, keys: tuple[str, ...], loop: nodes.Loop | None) -> RenderedArrangement:
        """The arrangement of a node, entered into a loop: same trace, same batches, more coordinates."""
        return self.scopes.enter_arranged(self.arranged(node, keys), loop)

    def join(self, node: nodes.JoinNode, columns: tuple[tuple[int, str], ...], schema: Schema) -> Rendered:
        """A join that makes the given columns, named by side and name there."""
        return render_join(self, node, columns, schema)

    def is_rendered(self, node: nodes.PlanNode) -> bool:
        """Whether the stream of a node exists already."""
        return node in self._collections

    def is_private(self, node: nodes.PlanNode) -> bool:
        """Whether one node alone reads this one, and may have it rendered to its own liking."""
        return self.uses[node] == 1 and not self.is_rendered(node)

    def remember(self, node: nodes.PlanNode, keys: tuple[str, ...], made: RenderedArrangement) -> None:
        """Say that a node is arranged already, as a by-product of its rendering."""
        self._arrangements[node, keys] = made

    def finish(self) -> Rendered | None:
        """Close the loops; the errors of all operators as one stream outside all loops, if any can fail."""
        while self._open:
            close_variable(self, *self._open.pop(0))
        if not self.errors:
            return None
        errors = self.errors
        while loop := max((part.loop for part in errors if part.loop), key=nodes.Loop.depth, default=None):
            streams = [part.stream for part in errors if part.loop is loop]
            inside = Rendered(streams[0].concat(*streams[1:]), ERRORS, loop)
            left = self.scopes.leave(render_errors_of_loop(self, inside, loop), around(loop))
            errors = [part for part in errors if part.loop is not loop] + [left]
        streams = [part.stream for part in errors]
        return Rendered(streams[0].concat(*streams[1:]), ERRORS, None)

    # One after the other

    def _satisfy(self, need: Dependency) -> None:
        """Render something and before it whatever it needs, the first need first."""
        stack = [(need, False)]
        while stack:
            current, ready = stack.pop()
            if self._has(current):
                continue
            if ready:
                self._make(current)
            else:
                stack.append((current, True))
                stack += [(inner, False) for inner in reversed(needs_of(self, current)) if not self._has(inner)]

    def _has(self, need: Dependency) -> bool:
        return need.node in self._collections if need.keys is None else need in self._arrangements

    def _make(self, need: Dependency) -> None:
        node, keys = need
        if keys is None:
            self._collections[node] = self._render(node)
        else:
            self._arrangements[node, keys] = self._arrange_node(node, keys)

    # One node, when what it needs is there

    def _render(self, node: nodes.PlanNode) -> Rendered:
        match node:
            case nodes.ConcatNode():
                parts = [self.reorder(self.collection_in(inner, node.scope()), node.schema) for inner in node.inputs]
                stream = parts[0].stream.concat(*[part.stream for part in parts[1:]])
                return replace(parts[0], stream=stream, tidy=False, placed=common(part.placed for part in parts))
            case nodes.ConsolidateNode():
                return self.consolidate(self.collection(node.input))
            case nodes.VariableNode():
                rendered, feedback = render_variable(self, node)
                self._open.append((node, feedback))
                return rendered
            case nodes.LeaveNode():
                return self.scopes.leave(self.collection_in(node.input, node.loop), node.scope())
            case nodes.JoinNode():
                return render_join(self, node, node.columns, node.schema)
            case nodes.DeltaSourceNode():
                return render_changes(self, node)
            case nodes.ExtendNode():
                return render_extend(self, node)
            case nodes.ReduceNode():
                return render_reduction(self, node)
            case nodes.SaturatedNode():
                return self._saturated(node)
            case nodes.ArrangeNode():
                found = self.arranged(node.input, node.keys)
                return self._stream_of(found)
            case nodes.RelationNode() | nodes.InstalledNode():
                found = self._import(node.owner.base())
                return self._stream_of(found)
        return render_chain(self, node)

    def _saturated(self, node: nodes.SaturatedNode) -> Rendered:
        """A relation of a recursion over growing collections; one operator makes all of them."""
        made = self._saturations.get(node.saturation)
        if made is None:
            inner = node.saturation.inputs
            parts = [self.reorder(self.collection(each), each.schema) for each in inner]
            schemas, streams = [each.schema for each in inner], [part.stream for part in parts]
            made = saturate(self.dataflow, node.saturation.system, streams, schemas)
            self._saturations[node.saturation] = made
        return Rendered(made[node.relation], node.schema, None)

    def _stream_of(self, found: RenderedArrangement) -> Rendered:
        """The batches of an arrangement as a stream."""
        by = found.arranged.key_lanes if found.placed_by is None else found.placed_by
        return Rendered(found.arranged.stream, found.schema, found.loop, tidy=True, placed=tuple(range(by)))

    def published(self, node: nodes.PlanNode, keys: tuple[str, ...]) -> RenderedArrangement:
        """The node arranged for those who only read it: made anew if only a stream of it is there."""
        if (
            isinstance(node, (nodes.ArrangeNode, nodes.RelationNode, nodes.InstalledNode))
            or (node, keys) in self._arrangements
        ):
            return self.arranged(node, keys)
        rendered = self.collection(node)
        found = self._arrangements.get((node, keys))  # a reduction leaves the arrangement of its output
        return found if found is not None else self.arrange_in_place(rendered, keys, f"arrange {', '.join(keys)}")

    def _arrange_node(self, node: nodes.PlanNode, keys: tuple[str, ...]) -> RenderedArrangement:
        if isinstance(node, nodes.ArrangeNode):
            return self.arranged(node.input, keys)
        if isinstance(node, (nodes.RelationNode, nodes.InstalledNode)):
            owner = node.owner.arranged_by(keys)
            if owner is not None:
                return self._import(owner)
        rendered = self.collection(node)
        made = self._arrangements.get((node, keys))  # a reduction leaves the arrangement of its output
        if made is not None:
            return made
        return self.arrange_rendered(rendered, keys, f"arrange {', '.join(keys)}")

    def _import(self, owner: Any) -> RenderedArrangement:
        found = self._arrangements.get((owner, ()))
        if found is None:
            arranged = self.import_from(owner.name, owner.publisher, owner.handle)
            found = self._arrangements[owner, ()] = RenderedArrangement(arranged, owner.schema, None, None)
            self.imported.append(owner)
            if owner.errors is not None:
                of = owner.errors
                self.add_errors(self.import_from(f"errors of {owner.name}", of.publisher, of.handle).stream, None)
        return found
