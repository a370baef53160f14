"""Rendering: from the description of a collection to the operators of one dataflow.

Each node is rendered once, in the scope of the innermost loop it depends on, and entered into the loops that use it.
Every stateful operator is an arrangement and a thin shell, and arrangements are shared by all that ask for the same
key. The same nodes give the same operators in the same order on every worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kpg.algebra.frontier import Frontier
from kpg.columns.expression import bind_condition
from kpg.columns.schema import INT64, SYMBOLIC, Schema
from kpg.columns.symbols import Symbols
from kpg.config import Effort
from kpg.dataflow.channel import Exchange, Pact, Pipeline
from kpg.dataflow.graph import Dataflow, Stream
from kpg.errors import BadPlan
from kpg.operators import iterate, linear
from kpg.operators.arrange import Arranged, Insert, Publisher, arrange
from kpg.operators.consolidate import Consolidate
from kpg.operators.exchange import split_by_key
from kpg.operators.failures import Failures
from kpg.operators.import_ import import_arrangement
from kpg.operators.join import join
from kpg.plan import nodes
from kpg.plan.chains import render_chain
from kpg.plan.reductions import render_errors_of_loop, render_reduction
from kpg.plan.views import View, views_of
from kpg.progress import summary
from kpg.trace.handle import TraceHandle
from kpg.trace.spine import Spine

ERRORS = Schema.of({"error": INT64})


@dataclass(frozen=True, slots=True)
class Context:
    """What rendering needs to know of the db."""

    symbols: Symbols
    failures: Failures
    effort: Effort
    depth: int  # coordinates of time outside all loops


@dataclass(frozen=True, slots=True, eq=False)
class Rendered:
    """The stream of a collection: its lanes in the order of `schema`, in the scope of `loop`."""

    stream: Stream
    schema: Schema
    loop: nodes.Loop | None
    width: int = 1
    tidy: bool = False  # carries batches, sorted by the lanes in this order


@dataclass(frozen=True, slots=True, eq=False)
class RenderedArrangement:
    """An arrangement, the names of its lanes (keys first), and who makes its batches."""

    arranged: Arranged
    schema: Schema
    loop: nodes.Loop | None
    publisher: Publisher | None


class Renderer:
    """Renders nodes into one dataflow."""

    def __init__(self, dataflow: Dataflow, context: Context, *roots: nodes.Node) -> None:
        self.dataflow = dataflow
        self.context = context
        self.uses = nodes.count_uses(roots)
        self.errors: list[Rendered] = []
        self.imported: list[Any] = []
        self._collections: dict[nodes.Node, Rendered] = {}
        self._arrangements: dict[tuple[object, tuple[str, ...]], RenderedArrangement] = {}
        self._entered: dict[tuple[object, nodes.Loop], Any] = {}
        self._handles: list[TraceHandle] = []
        self._open: list[tuple[nodes.Variable, iterate.Feedback]] = []

    # Entries

    def collection(self, node: nodes.Node) -> Rendered:
        """The stream of a node, in the node's own scope."""
        found = self._collections.get(node)
        if found is None:
            found = self._collections[node] = self._render(node)
        return found

    def arranged(self, node: nodes.Node, keys: tuple[str, ...]) -> RenderedArrangement:
        """The node arranged by some columns, in the node's own scope."""
        found = self._arrangements.get((node, keys))
        if found is None:
            found = self._arrangements[node, keys] = self._arrange(node, keys)
        return found

    def collection_in(self, node: nodes.Node, loop: nodes.Loop | None) -> Rendered:
        """The stream of a node, entered into a loop."""
        return self.enter(self.collection(node), loop)

    def arranged_in(self, node: nodes.Node, keys: tuple[str, ...], loop: nodes.Loop | None) -> RenderedArrangement:
        """The arrangement of a node, entered into a loop: same trace, same batches, more coordinates."""
        return self.enter_arranged(self.arranged(node, keys), loop)

    def is_rendered(self, node: nodes.Node) -> bool:
        """Whether the stream of a node exists already."""
        return node in self._collections

    def finish(self) -> Rendered | None:
        """Close the loops; the errors of all operators as one stream outside all loops, if any can fail."""
        while self._open:
            self._close(*self._open.pop(0))
        if not self.errors:
            return None
        errors = self.errors
        while loop := max((part.loop for part in errors if part.loop), key=nodes.Loop.depth, default=None):
            streams = [part.stream for part in errors if part.loop is loop]
            inside = Rendered(streams[0].concat(*streams[1:]), ERRORS, loop)
            outer = max(loop.surrounding(), key=nodes.Loop.depth, default=None)
            left = self.leave(render_errors_of_loop(self, inside, loop), outer)
            errors = [part for part in errors if part.loop is not loop] + [left]
        streams = [part.stream for part in errors]
        return Rendered(streams[0].concat(*streams[1:]), ERRORS, None)

    def release(self) -> None:
        """Release the builder's handles: from here on only operators hold traces."""
        for handle in self._handles:
            handle.release()
        self._handles.clear()

    # Scopes

    def _way_into(self, start: nodes.Loop | None, end: nodes.Loop | None) -> list[nodes.Loop]:
        if start is end:
            return []
        chain = sorted({end, *end.surrounding()}, key=nodes.Loop.depth) if end else []
        if start is not None and start not in chain:
            raise BadPlan(
                "a collection of a loop is used outside it",
                detail=f"It depends on {start.name}.",
                hint="Take what the loop comes to with leave(), or return it from iterate's step.",
            )
        return chain[chain.index(start) + 1 :] if start else chain

    def enter(self, rendered: Rendered, loop: nodes.Loop | None) -> Rendered:
        """A stream of an outer scope, seen inside a loop."""
        for inner in self._way_into(rendered.loop, loop):
            key = (rendered, inner)
            if key not in self._entered:
                stream = self._add_enter(iterate.Enter(f"enter {inner.name}"), rendered.stream)
                self._entered[key] = replace(rendered, stream=stream, loop=inner, tidy=False)
            rendered = self._entered[key]
        return rendered

    def enter_arranged(self, found: RenderedArrangement, loop: nodes.Loop | None) -> RenderedArrangement:
        """An arrangement of an outer scope, seen inside a loop."""
        for inner in self._way_into(found.loop, loop):
            key = (found, inner)
            if key not in self._entered:
                stream = self._add_enter(iterate.EnterArranged(f"enter {inner.name}"), found.arranged.stream)
                arranged = replace(found.arranged, stream=stream)
                self._entered[key] = RenderedArrangement(arranged, found.schema, inner, None)
            found = self._entered[key]
        return found

    def _add_enter(self, operator: iterate.Enter | iterate.EnterArranged, stream: Stream) -> Stream:
        depth = stream.depth
        return self.dataflow.add(operator, [(stream, Pipeline())], depth=depth + 1, summaries=[summary.enter(depth)])

    def leave(self, rendered: Rendered, loop: nodes.Loop | None) -> Rendered:
        """A stream of an inner scope, seen from an outer one."""
        for inner in reversed(self._way_into(loop, rendered.loop)):
            depth = rendered.stream.depth
            operator = iterate.Leave(f"leave {inner.name}")
            stream = self.dataflow.add(
                operator, [(rendered.stream, Pipeline())], depth=depth - 1, summaries=[summary.leave(depth)]
            )
            outer = max(inner.surrounding(), key=nodes.Loop.depth, default=None)
            rendered = replace(rendered, stream=stream, loop=outer, tidy=False)
        return rendered

    # Nodes

    def _render(self, node: nodes.Node) -> Rendered:
        match node:
            case nodes.Concat():
                parts = [self.reorder(self.collection_in(inner, node.scope()), node.schema) for inner in node.inputs]
                stream = parts[0].stream.concat(*[part.stream for part in parts[1:]])
                return replace(parts[0], stream=stream, tidy=False)
            case nodes.Consolidate():
                return self.consolidate(self.collection(node.input))
            case nodes.Variable():
                return self._variable(node)
            case nodes.Leave():
                return self.leave(self.collection_in(node.input, node.loop), node.scope())
            case nodes.Join():
                return self.join(node, node.columns, node.schema)
            case nodes.Reduce():
                return render_reduction(self, node)
            case nodes.Arrange():
                found = self.arranged(node.input, node.keys)
                return Rendered(found.arranged.stream, found.schema, found.loop, tidy=True)
            case nodes.Relation() | nodes.Installed():
                found = self._import(node.owner.base())
                return Rendered(found.arranged.stream, found.schema, None, tidy=True)
        return render_chain(self, node)

    def reorder(self, rendered: Rendered, schema: Schema) -> Rendered:
        """The same rows with their lanes in another order, or fewer of them."""
        if rendered.schema.names == schema.names:
            return replace(rendered, schema=schema)
        lanes = tuple(rendered.schema.index(name) for name in schema.names)
        return self.add_stages(rendered, [linear.Pick(lanes)], "pick", schema)

    def add_stages(self, rendered: Rendered, stages: Sequence[linear.Stage], label: str, schema: Schema) -> Rendered:
        """A linear operator of some stages, and the stream of its errors if it can fail."""
        if not stages:
            return replace(rendered, schema=schema)
        fallible = any(stage.fallible for stage in stages)
        operator = linear.Linear(label, stages, self.context.failures if fallible else None)
        depth = rendered.stream.depth
        stream = self.dataflow.add(operator, [(rendered.stream, Pipeline())], depth=depth, ports=2 if fallible else 1)
        if fallible:
            self.add_errors(Stream(((operator, 1),), depth), rendered.loop)
        width = next((stage.width for stage in reversed(stages) if stage.width), rendered.width)
        return Rendered(stream, schema, rendered.loop, width)

    def add_errors(self, stream: Stream, loop: nodes.Loop | None) -> None:
        """Count a stream of errors among those of this dataflow."""
        self.errors.append(Rendered(stream, ERRORS, loop))

    def consolidate(self, rendered: Rendered) -> Rendered:
        """The stream with each time's updates summed."""
        operator = Consolidate("consolidate", len(rendered.schema), rendered.stream.depth, rendered.width)
        operator.schema = rendered.schema
        pact = self._by_key(rendered.schema, len(rendered.schema))
        stream = self.dataflow.add(operator, [(rendered.stream, pact)], depth=rendered.stream.depth)
        return replace(rendered, stream=stream, tidy=False)

    def join(self, node: nodes.Join, columns: tuple[tuple[int, str], ...], schema: Schema) -> Rendered:
        """A join that makes the given columns, named by side and name there; views of an index share it."""
        keys = tuple(name for name, _ in node.on), tuple(name for _, name in node.on)
        parts = [
            self._join_views((left, right), keys, node.scope(), columns, schema)
            for left in views_of(node.left, keys[0])
            for right in views_of(node.right, keys[1])
        ]
        stream = parts[0].stream.concat(*[part.stream for part in parts[1:]])
        return replace(parts[0], stream=stream)

    def _join_views(
        self,
        views: tuple[View, View],
        keys: tuple[tuple[str, ...], tuple[str, ...]],
        loop: nodes.Loop | None,
        columns: tuple[tuple[int, str], ...],
        schema: Schema,
    ) -> Rendered:
        sides = [self.arranged_in(view.node, by, loop) for view, by in zip(views, keys, strict=True)]
        stages: list[linear.Stage] = []
        read = list(columns)
        for side, view in enumerate(views):
            for condition in view.conditions:
                bound = bind_condition(condition, sides[side].schema, self.context.symbols)
                at = len(read)
                read += [(side, name) for name in sides[side].schema.names]
                stages.append(linear.Where(bound, (at, len(read))))
        if len(read) > len(columns):
            stages.append(linear.Pick(tuple(range(len(columns)))))
        if views[0].negative != views[1].negative:
            stages.append(linear.Negate())
        projection = [(side, sides[side].schema.index(name)) for side, name in read]
        left, right = sides[0].arranged, sides[1].arranged
        stream = join(self.dataflow, "join", left, right, projection)
        return self.add_stages(Rendered(stream, schema, loop, left.width * right.width), stages, "view", schema)

    # Loops

    def _variable(self, node: nodes.Variable) -> Rendered:
        loop = node.loop
        depth = self.context.depth + loop.depth()
        feedback = iterate.Feedback(loop.name, loop.max_rounds)
        stream = self.dataflow.add(feedback, depth=depth)
        self.dataflow.add_input(feedback, depth, summary.step_round(depth))
        self._open.append((node, feedback))
        if node.source is not None:
            source = self.reorder(self.collection_in(node.source, loop), node.schema)
            stream = source.stream.concat(stream)
        return Rendered(stream, node.schema, loop)

    def _close(self, node: nodes.Variable, feedback: iterate.Feedback) -> None:
        """Feed back what the variable is defined to be, less what it started from."""
        loop, definition = node.loop, node.loop.definition(node)
        result = self.reorder(self.collection_in(definition, loop), node.schema)
        parts = [result.stream]
        if node.source is not None:
            source = self.reorder(self.collection_in(node.source, loop), node.schema)
            parts.append(self.add_stages(source, [linear.Negate()], "negate", node.schema).stream)
        back = replace(result, stream=parts[0].concat(*parts[1:]), tidy=False)
        if reaches_linearly(definition, loop):
            back = self.consolidate(back)
        self.dataflow.connect(back.stream, feedback, 0)

    # Arrangements

    def _arrange(self, node: nodes.Node, keys: tuple[str, ...]) -> RenderedArrangement:
        if isinstance(node, nodes.Arrange):
            return self.arranged(node.input, keys)
        if isinstance(node, (nodes.Relation, nodes.Installed)):
            owner = node.owner.arranged_by(keys)
            if owner is not None:
                return self._import(owner)
        rendered = self.collection(node)
        made = self._arrangements.get((node, keys))  # a reduction leaves the arrangement of its output
        if made is not None:
            return made
        return self.arrange_rendered(rendered, keys, f"arrange {', '.join(keys)}")

    def arrange_rendered(self, rendered: Rendered, keys: tuple[str, ...], name: str) -> RenderedArrangement:
        """Arrange a stream by some of its columns; the others follow in their order."""
        rest = tuple(column for column in rendered.schema.names if column not in keys)
        schema = rendered.schema.select(keys + rest)
        tidy = rendered.tidy and rendered.schema.names == schema.names
        if tidy and self.dataflow.worker.peers == 1:
            return self.insert_batches(rendered, len(keys), name)
        ordered = self.reorder(rendered, schema)
        operator, arranged = arrange(
            self.dataflow,
            name,
            ordered.stream,
            self._by_key(schema, len(keys)),
            key_lanes=len(keys),
            lanes=len(schema),
            width=rendered.width,
            effort=self.context.effort,
        )
        operator.schema = schema
        self._handles.append(arranged.handle)
        return RenderedArrangement(arranged, schema, rendered.loop, operator)

    def insert_batches(self, rendered: Rendered, key_lanes: int, name: str) -> RenderedArrangement:
        """Keep batches that come sorted in a trace."""
        depth, lanes = rendered.stream.depth, len(rendered.schema)
        spine = Spine(key_lanes, lanes, depth, rendered.width, self.context.effort)
        handle = TraceHandle(spine, f"building {name}", Frontier.start(depth))
        operator = Insert(name, spine)
        operator.schema = rendered.schema
        stream = self.dataflow.add(operator, [(rendered.stream, Pipeline())], depth=depth)
        self._handles.append(handle)
        arranged = Arranged(stream, handle, key_lanes, lanes, rendered.width, depth)
        return RenderedArrangement(arranged, rendered.schema, rendered.loop, operator)

    def remember(self, node: nodes.Node, keys: tuple[str, ...], made: RenderedArrangement) -> None:
        """Say that a node is arranged already, as a by-product of its rendering."""
        self._arrangements[node, keys] = made

    def keep_handle(self, handle: TraceHandle) -> None:
        """Keep a trace alive while building, until operators hold it."""
        self._handles.append(handle)

    def rendered(self, stream: Stream, schema: Schema, loop: nodes.Loop | None, *, tidy: bool = False) -> Rendered:
        """A stream in a scope, its lanes named."""
        return Rendered(stream, schema, loop, 1, tidy)

    def _import(self, owner: Any) -> RenderedArrangement:
        found = self._arrangements.get((owner, ()))
        if found is None:
            arranged = import_arrangement(self.dataflow, owner.name, owner.publisher, owner.handle)
            self._handles.append(arranged.handle)
            found = self._arrangements[owner, ()] = RenderedArrangement(arranged, owner.schema, None, None)
            self.imported.append(owner)
            if owner.errors is not None:
                errors = import_arrangement(
                    self.dataflow, f"errors of {owner.name}", owner.errors.publisher, owner.errors.handle
                )
                self._handles.append(errors.handle)
                self.add_errors(errors.stream, None)
        return found

    def _by_key(self, schema: Schema, key_lanes: int) -> Pact:
        if self.dataflow.worker.peers == 1:
            return Pipeline()
        symbolic = tuple(lane for lane, type_ in enumerate(schema.types) if type_.kind in SYMBOLIC)
        return Exchange(split_by_key(schema, key_lanes, self.context.symbols), symbolic)


def reaches_linearly(node: nodes.Node, loop: nodes.Loop) -> bool:
    """Whether updates can go round a loop without passing an arrangement, which would let cancelling ones meet.

    They may pass through loops inside it, whose rounds fall together when they leave.
    """
    stack, seen = [node], set[nodes.Node]()
    while stack:
        current = stack.pop()
        if isinstance(current, nodes.Variable) and current.loop is loop:
            return True
        if current in seen:
            continue
        seen.add(current)
        if isinstance(current, nodes.Variable) and loop in current.loop.surrounding():
            stack += [*nodes.inputs_of(current), current.loop.definition(current)]
        elif isinstance(current, (*nodes.LINEAR, nodes.Concat, nodes.Enter, nodes.Leave)):
            stack += nodes.inputs_of(current)
    return False
