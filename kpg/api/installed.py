"""Arrangements that live in dataflows of their own, shared by whoever imports them.

An installed arrangement is counted: by the objects people hold, by the relation it belongs to and by the dataflows that
import it. With the last it is dropped, and so are the arrangements it was itself made from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.schema import Schema
from kpg.dataflow.graph import Dataflow
from kpg.operators.arrange import Publisher
from kpg.operators.source import Source
from kpg.plan import nodes
from kpg.plan.render import Renderer
from kpg.plan.rendered import Rendered, RenderedArrangement
from kpg.trace.handle import TraceHandle

if TYPE_CHECKING:
    from kpg.api.database import Database


class Installed:
    """An arrangement, its dataflow, and how many rely on it."""

    def __init__(self, db: Database, name: str, found: RenderedArrangement, keys: tuple[str, ...]) -> None:
        assert found.publisher is not None
        self.db = db
        self.name = name
        self.keys = keys
        self.schema: Schema = found.schema
        self.publisher: Publisher = found.publisher
        self.handle: TraceHandle = found.arranged.handle.clone(name)
        self.handle.set_physical(CLOSED)
        self.handle.follow(db.horizon)
        self.errors: Installed | None = None
        self.users = 1
        db.installed.add(self)

    @property
    def dataflow(self) -> Dataflow:
        """The dataflow that makes this arrangement."""
        return self.publisher.dataflow

    @property
    def released(self) -> bool:
        """Whether it is gone."""
        return self.handle.released

    def base(self) -> Installed:
        """What a query reads it through: itself."""
        return self

    def arranged_by(self, keys: tuple[str, ...]) -> Installed | None:
        """This, if it is by those columns."""
        return self if keys == self.keys else None

    def share(self) -> Installed:
        """Count one more that relies on this."""
        self.users += 1
        return self

    def release(self) -> None:
        """Count one less; with the last the dataflow is dropped."""
        self.users -= 1
        if self.users == 0 and not self.released:
            self.db.worker.drop(self.dataflow)
            self.handle.release()
            if self.errors is not None:
                self.errors.handle.release()

    def readers(self) -> list[str]:
        """The names of the dataflows that import this."""
        return [source.dataflow.name for source in self.publisher.importers]

    def when_complete(self) -> Frontier:
        """What may still change."""
        return self.publisher.output_frontier()


def install_input(db: Database, name: str, schema: Schema, keys: tuple[str, ...]) -> tuple[Source, Installed]:
    """The dataflow that arranges what is inserted into a relation."""
    made: list[tuple[Source, Installed]] = []

    def build(dataflow: Dataflow) -> None:
        source = Source(f"input {name}")
        clock = db.worker.clock
        stream = dataflow.add_source(source, lambda: clock.frontier, depth=db.config.coordinates)
        renderer = Renderer(dataflow, db.context)
        rest = tuple(column for column in schema.names if column not in keys)
        rendered = renderer.rendered(stream, schema.select(keys + rest), None)
        found = renderer.arrange_rendered(rendered, keys, f"arrange {name} by {', '.join(keys)}")
        made.append((source, Installed(db, name, found, keys)))
        renderer.release()

    db.install(name, build)
    return made[0]


def install_arrangement(
    db: Database, name: str, node: nodes.Node, keys: tuple[str, ...], extend: Extend | None = None
) -> Installed:
    """The dataflow that keeps a collection arranged; `extend` may add operators that read the arrangement."""
    made: list[Installed] = []

    def build(dataflow: Dataflow) -> None:
        renderer = Renderer(dataflow, db.context, node)
        try:
            found = renderer.arranged(node, keys)
            if found.publisher is None or found.publisher.dataflow is not dataflow:
                found = renderer.insert_batches(
                    renderer.rendered(found.arranged.stream, found.schema, None, tidy=True), len(keys), name
                )
            errors = renderer.finish()
            installed = Installed(db, name, found, keys)
            made.append(installed)
            if errors is not None:
                installed.errors = keep_errors(db, renderer, errors, name)
            if extend is not None:
                extend(dataflow, found)
        finally:
            renderer.release()
        retain(dataflow, renderer)

    try:
        db.install(name, build)
    except BaseException:
        for installed in made:
            installed.handle.release()
        raise
    return made[0]


def keep_errors(db: Database, renderer: Renderer, errors: Rendered, name: str) -> Installed:
    """The errors of a dataflow, kept so that they can be read as of a time."""
    kept = renderer.arrange_rendered(errors, ("error",), f"errors of {name}")
    return Installed(db, f"errors of {name}", kept, ("error",))


def retain(dataflow: Dataflow, renderer: Renderer) -> None:
    """Count a dataflow as relying on what it imports, until it is dropped."""
    for owner in renderer.imported:
        dataflow.on_drop.append(owner.share().release)


Extend = Callable[[Dataflow, RenderedArrangement], None]
