"""An arrangement in a dataflow of its own, shared by all dataflows that import it.

It counts its users: the handles that callers hold, the relation that it belongs to, and the dataflows that import it.
When the last user releases it, its dataflow is dropped, and with that the arrangements that the dataflow imported.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.schema import Schema
from kpg.dataflow.graph import Dataflow
from kpg.operators.arrange import Publisher
from kpg.plan.rendered import RenderedArrangement
from kpg.trace.handle import TraceHandle

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase


class InstalledArrangement:
    """An arrangement, the dataflow that maintains it, and the number of its users."""

    def __init__(
        self,
        db: EmbeddedDatabase,
        name: str,
        rendered: RenderedArrangement,
        keys: tuple[str, ...],
        relations: frozenset[str],
    ) -> None:
        assert rendered.publisher is not None
        self.db = db
        self.name = name
        self.keys = keys
        self.relations = relations  # the inputs that it is computed from
        self.schema: Schema = rendered.schema
        self.in_place = rendered.in_place  # what determines the worker of a row, if not the key
        self.publisher: Publisher = rendered.publisher
        self.handle: TraceHandle = rendered.arranged.handle.clone(name)
        self.handle.set_physical(CLOSED)
        self.handle.follow(partial(db.horizon, relations))
        self.errors: InstalledArrangement | None = None
        self.siblings: tuple[InstalledArrangement, ...] = (
            self,
        )  # arrangements of the same dataflow, which ends with the last release
        self.users = 1
        db.installed.add(self)

    @property
    def dataflow(self) -> Dataflow:
        """The dataflow that maintains this arrangement."""
        return self.publisher.dataflow

    @property
    def placed(self) -> tuple[str, ...]:
        """The columns that determine the worker of a row; none if all rows are on one worker."""
        if self.in_place is None:
            return self.keys
        lanes = len(self.in_place) if isinstance(self.in_place, tuple) else 0
        return self.schema.names[: self.schema.columns_in(lanes)]

    @property
    def released(self) -> bool:
        """Whether the last user has released it."""
        return self.handle.released

    def base(self) -> InstalledArrangement:
        """Return the arrangement that a query reads: this one."""
        return self

    def arranged_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return this arrangement if it is by those columns, and each row on the worker that owns its key."""
        return self if keys == self.keys and self.in_place is None else None

    def sorted_by(self, keys: tuple[str, ...]) -> InstalledArrangement | None:
        """Return this arrangement if it is by those columns; only a reader that asks all workers finds every row."""
        return self if keys == self.keys else None

    def share(self) -> InstalledArrangement:
        """Count one more user."""
        self.users += 1
        return self

    def release(self) -> None:
        """Count one user less. The last user of all siblings ends their dataflow."""
        self.users -= 1
        if self.users > 0:
            return
        last = all(sibling.users <= 0 for sibling in self.siblings)
        if not self.released:
            if last:
                self.db.worker.drop(self.dataflow)
            self.handle.release()
            for errors in {sibling.errors for sibling in self.siblings} if last else ():
                if errors is not None:
                    errors.handle.release()
        for sibling in self.siblings if last else ():
            sibling.siblings = ()  # they refer to each other

    def readers(self) -> list[str]:
        """Return the names of the dataflows that import this arrangement."""
        return [source.dataflow.name for source in self.publisher.importers]

    def frontier(self) -> Frontier:
        """Return the times at which it may still change."""
        return self.publisher.output_frontier()
