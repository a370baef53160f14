"""Arrangements that live in dataflows of their own, shared by whoever imports them.

An installed arrangement is counted: by the objects people hold, by the relation it belongs to and by the dataflows that
import it. With the last it is dropped, and so are the arrangements it was itself made from.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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


class InstalledArrangement:
    """An arrangement, its dataflow, and how many rely on it."""

    def __init__(
        self, db: Database, name: str, found: RenderedArrangement, keys: tuple[str, ...], relations: frozenset[str]
    ) -> None:
        assert found.publisher is not None
        self.db = db
        self.name = name
        self.keys = keys
        self.relations = relations  # what it is made of
        self.schema: Schema = found.schema
        self.placed = found.schema.names[: len(keys) if found.placed_by is None else found.placed_by]
        self.publisher: Publisher = found.publisher
        self.handle: TraceHandle = found.arranged.handle.clone(name)
        self.handle.set_physical(CLOSED)
        self.handle.follow(partial(db.horizon, relations))
        self.errors: InstalledArrangement | None = None
        self.together: tuple[InstalledArrangement, ...] = (
            self,
        )  # those made by the same dataflow, which goes with the last
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

    def base(self) -> InstalledArrangement:
        """What a query reads it through: itself."""
        return self

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """This, if it is by those columns."""
        return self if keys == self.keys else None

    def share(self) -> InstalledArrangement:
        """Count one more that relies on this."""
        self.users += 1
        return self

    def release(self) -> None:
        """Count one less; with the last of all that its dataflow makes, that is dropped."""
        self.users -= 1
        if self.users == 0 and not self.released:
            last = all(other.users == 0 for other in self.together)
            if last:
                self.db.worker.drop(self.dataflow)
            self.handle.release()
            if last and self.errors is not None:
                self.errors.handle.release()

    def readers(self) -> list[str]:
        """The names of the dataflows that import this."""
        return [source.dataflow.name for source in self.publisher.importers]

    def when_complete(self) -> Frontier:
        """What may still change."""
        return self.publisher.output_frontier()


def install_input(
    db: Database, name: str, schema: Schema, keys: tuple[str, ...], logged: bool = True
) -> tuple[Source, InstalledArrangement]:
    """The dataflow that arranges what is inserted into a relation."""
    made: list[tuple[Source, InstalledArrangement]] = []

    def build(dataflow: Dataflow) -> None:
        source = Source(f"input {name}")
        clock = db.worker.clock
        stream = dataflow.add_source(source, lambda: clock.frontier, depth=db.config.coordinates)
        renderer = Renderer(dataflow, db.context)
        rest = tuple(column for column in schema.names if column not in keys)
        rendered = renderer.rendered(stream, schema.select(keys + rest), None)
        found = renderer.arrange_rendered(rendered, keys, f"arrange {name} by {', '.join(keys)}")
        made.append((source, InstalledArrangement(db, name, found, keys, frozenset({name}))))
        renderer.release()

    db.install(name, build, logged)
    return made[0]


def install_arrangement(
    db: Database, name: str, node: nodes.PlanNode, keys: tuple[str, ...], extend: Extend | None = None
) -> InstalledArrangement:
    """The dataflow that keeps a collection arranged; `extend` may add operators that read the arrangement."""
    return install_together(db, name, {name: (node, keys)}, extend)[0]


def install_together(
    db: Database, name: str, wanted: dict[str, tuple[nodes.PlanNode, tuple[str, ...]]], extend: Extend | None = None
) -> list[InstalledArrangement]:
    """One dataflow that keeps several collections arranged, so that what they have in common is made once.

    An error anywhere in it is an error of each. It lives until the last of them is released. What is extended is an
    answer, which is read and not joined with: its rows may stay where they come to be.
    """
    made: list[InstalledArrangement] = []

    def build(dataflow: Dataflow) -> None:
        renderer = Renderer(dataflow, db.context, *[node for node, _ in wanted.values()])
        try:
            found = [_published(renderer, each, *what, extend is not None) for each, what in wanted.items()]
            errors = renderer.finish()
            for each, arranged, (_, keys) in zip(wanted, found, wanted.values(), strict=True):
                made.append(InstalledArrangement(db, each, arranged, keys, made_of(renderer)))
            kept = None if errors is None else keep_errors(db, renderer, errors, name)
            for installed in made:
                installed.errors, installed.together = kept, tuple(made)
            if extend is not None:
                for arranged in found:
                    extend(dataflow, arranged)
        finally:
            renderer.release()
        retain(dataflow, renderer)

    try:
        db.install(name, build)
    except BaseException:
        for installed in made:
            installed.handle.release()
        raise
    return made


def _published(
    renderer: Renderer, name: str, node: nodes.PlanNode, keys: tuple[str, ...], answer: bool
) -> RenderedArrangement:
    """The arrangement of a node, made by this dataflow and by nobody else yet; with an answer no query joins."""
    found = renderer.published(node, keys) if answer else renderer.arranged(node, keys)
    if found.publisher is not None and found.publisher.dataflow is renderer.dataflow:
        return found
    rendered = renderer.rendered(found.arranged.stream, found.schema, None, tidy=True)
    return renderer.insert_batches(rendered, len(keys), name)


def keep_errors(db: Database, renderer: Renderer, errors: Rendered, name: str) -> InstalledArrangement:
    """The errors of a dataflow, kept so that they can be read as of a time."""
    kept = renderer.arrange_rendered(errors, ("error",), f"errors of {name}")
    return InstalledArrangement(db, f"errors of {name}", kept, ("error",), made_of(renderer))


def made_of(renderer: Renderer) -> frozenset[str]:
    """The relations that what was rendered reads, itself or through what it shares."""
    return frozenset().union(*[owner.relations for owner in renderer.imported])


def retain(dataflow: Dataflow, renderer: Renderer) -> None:
    """Count a dataflow as relying on what it imports, until it is dropped."""
    for owner in renderer.imported:
        dataflow.on_drop.append(owner.share().release)


Extend = Callable[[Dataflow, RenderedArrangement], None]
