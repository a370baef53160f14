"""Builders fill a new dataflow with the operators of a plan. `db.install(name, builder)` calls one.

    RelationBuilder       the pending rows of an input, arranged
    ArrangementsBuilder   one or several plans, each arranged; optionally their changes go to a reader
    StreamBuilder         one plan, not arranged: only its changes or its progress matter

A builder keeps the sources and arrangements that it built, for the handle. If building fails, nothing stays installed.
Plans that are installed together share the operators that they have in common. Each plan has the error rows of the
operators that it depends on, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kpg.api.installed_arrangement import InstalledArrangement
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates
from kpg.dataflow.channel import LocalPact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.operators.deliver_updates import DeliverUpdates
from kpg.operators.source import Source
from kpg.plan.node_traversal import owners
from kpg.plan.nodes import PlanNode
from kpg.plan.render import Renderer
from kpg.plan.rendered import Rendered, RenderedArrangement
from kpg.plan.streams import Streams

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.unread_changes import UnreadChanges


class RelationBuilder:
    """Arrange the rows of an input."""

    source: Source
    installed: InstalledArrangement

    def __init__(self, db: EmbeddedDatabase, name: str, schema: Schema, keys: tuple[str, ...]) -> None:
        self.db = db
        self.name = name
        self.keys = keys
        self.schema = schema.select(keys + tuple(column for column in schema.names if column not in keys))

    def __call__(self, dataflow: Dataflow) -> None:
        clock, depth = self.db.worker.clock, self.db.config.coordinates
        dataflow.is_relation = True
        self.source = Source(f"input {self.name}")
        stream = dataflow.add_source(self.source, lambda: clock.frontier, depth=depth)
        streams = Streams(dataflow, self.db.context)
        label = f"arrange {self.name} by {', '.join(self.keys)}"
        rendered = streams.arrange_rendered(streams.rendered(stream, self.schema, None), self.keys, label)
        self.installed = InstalledArrangement(self.db, self.name, rendered, self.keys, frozenset({self.name}))
        streams.release()


class ArrangementsBuilder:
    """Arrange plans, each by some columns.

    With `changes`, their updates are also passed to a reader. If `in_place`, rows may stay on the worker that computes
    them: a read asks all workers, and a join by their key arranges them for itself.
    """

    def __init__(
        self,
        db: EmbeddedDatabase,
        name: str,
        plans: dict[str, tuple[PlanNode, tuple[str, ...]]],
        changes: UnreadChanges | None = None,
        relations: Mapping[PlanNode, str] | None = None,
        in_place: bool = True,
    ) -> None:
        self.db = db
        self.name = name
        self.plans = plans
        self.in_place = in_place
        self.relations = relations or {}
        self.changes = changes
        self.installed: list[InstalledArrangement] = []

    def __call__(self, dataflow: Dataflow) -> None:
        renderer = Renderer(dataflow, self.db.context, *[node for node, _ in self.plans.values()])
        renderer.relations = owners(self.relations)
        try:
            rendered = [self._arrange(renderer, name, node, keys) for name, (node, keys) in self.plans.items()]
            renderer.finish()
            for name, arranged, (_, keys) in zip(self.plans, rendered, self.plans.values(), strict=True):
                self.installed.append(InstalledArrangement(self.db, name, arranged, keys, relations_of(renderer)))
            self._keep_errors(renderer)
            if self.changes is not None:
                for arranged in rendered:
                    self.changes.set_lanes(arranged.schema)
                    deliver(dataflow, arranged.arranged.stream, f"output {self.name}", self.changes.take)
            renderer.retain_imports()
        finally:
            renderer.release()

    def _arrange(self, renderer: Renderer, name: str, node: PlanNode, keys: tuple[str, ...]) -> RenderedArrangement:
        """Arrange a plan in this dataflow, even if another dataflow publishes the same arrangement already."""
        arranged = renderer.published(node, keys) if self.in_place else renderer.arranged(node, keys)
        if arranged.publisher is not None and arranged.publisher.dataflow is renderer.dataflow:
            return arranged
        rendered = renderer.rendered(arranged.arranged.stream, arranged.schema, None, consolidated=True)
        inserted = renderer.insert_batches(rendered, arranged.schema.width_of(len(keys)), name)
        return replace(inserted, in_place=arranged.in_place)

    def _keep_errors(self, renderer: Renderer) -> None:
        """Arrange the errors that each plan depends on; plans that depend on the same errors share them."""
        errors = renderer.errors_of(*[node for node, _ in self.plans.values()])
        kept: dict[Rendered | None, InstalledArrangement | None] = {None: None}
        for name, installed, stream in zip(self.plans, self.installed, errors, strict=True):
            if stream is not None and stream not in kept:
                kept[stream] = keep_errors(self.db, renderer, stream, name)
            installed.errors, installed.siblings = kept[stream], tuple(self.installed)

    def abandon(self) -> None:
        """Release the handles of a dataflow that could not be installed."""
        for installed in self.installed:
            installed.handle.release()


class StreamBuilder:
    """Pass the updates of a plan to a reader: consolidated if it reads the `changes`, else only for their progress."""

    delivery: DeliverUpdates

    def __init__(self, db: EmbeddedDatabase, name: str, node: PlanNode, changes: UnreadChanges | None = None) -> None:
        self.db = db
        self.name = name
        self.node = node
        self.changes = changes
        self.errors: InstalledArrangement | None = None
        self.relations: frozenset[str] = frozenset()  # the inputs that the plan reads

    def __call__(self, dataflow: Dataflow) -> None:
        renderer = Renderer(dataflow, self.db.context, self.node)
        try:
            rendered = renderer.collection(self.node)
            self.relations = relations_of(renderer)
            if self.changes is None:
                renderer.finish()
                self.delivery = deliver(dataflow, rendered.stream, self.name, ignore)
            else:
                self._deliver_changes(renderer, rendered, self.changes)
            renderer.retain_imports()
        finally:
            renderer.release()

    def _deliver_changes(self, renderer: Renderer, rendered: Rendered, changes: UnreadChanges) -> None:
        if not rendered.consolidated:  # a batch is consolidated already
            rendered = renderer.consolidate(rendered)
        renderer.finish()
        (errors,) = renderer.errors_of(self.node)
        changes.set_lanes(rendered.schema)
        self.delivery = deliver(renderer.dataflow, rendered.stream, f"output {self.name}", changes.take)
        if errors is not None:
            self.errors = keep_errors(self.db, renderer, errors, self.name)


def deliver(dataflow: Dataflow, stream: Stream, name: str, receive: Callable[[Updates], None]) -> DeliverUpdates:
    """Add the operator that passes the updates of a stream to a function."""
    delivery = DeliverUpdates(name, receive)
    dataflow.add(delivery, [(stream, LocalPact())], depth=stream.depth)
    return delivery


def ignore(updates: Updates) -> None:
    """Receive updates and do nothing: a probe asks only for the frontier."""


def keep_errors(db: EmbeddedDatabase, renderer: Renderer, errors: Rendered, name: str) -> InstalledArrangement:
    """Arrange the error rows of a plan, so that they can be read as of a time.

    They have no key, so they are all on one worker: its message is that of a db without further workers.
    """
    arranged = renderer.arrange_rendered(errors, (), f"errors of {name}")
    return InstalledArrangement(db, f"errors of {name}", arranged, (), relations_of(renderer))


def relations_of(renderer: Renderer) -> frozenset[str]:
    """Return the inputs that the rendered plans read, directly or through shared arrangements."""
    streams = frozenset(stream.name for stream in renderer.streams)
    return streams.union(*[owner.relations for owner in renderer.imported])
