"""Inputs that keep no rows: `db.input(…, keep=False)`.

    lineitem = db.input("lineitem", keep=False, order=int, price=int)

A query sees the rows that are inserted after its installation. Each dataflow that reads the stream has a source of its
own, and the rows of every epoch go to all of them. Nothing is arranged, logged or recovered. A key is a promise that
no two present rows agree in it. It cannot be checked, and plans rely on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpg.api.collection import Collection
from kpg.api.embedded_arrangement import EmbeddedArrangement
from kpg.api.embedded_input import EmbeddedInput
from kpg.columns.updates import Ints
from kpg.dataflow.graph import Dataflow, Stream
from kpg.dataflow.operator import Message
from kpg.errors import BadPlan, Closed, InUse
from kpg.operators.source import Source

if TYPE_CHECKING:
    from kpg.api.installed_arrangement import InstalledArrangement


class EmbeddedStream(EmbeddedInput):
    """An input of a db in this process that passes rows on and keeps none."""

    _sources: list[Source]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._sources = []

    def open_source(self, dataflow: Dataflow) -> Stream:
        """Add a source to a dataflow that is being built; it receives the rows from now on."""
        if self.dropped:
            raise Closed(f"input {self.name} was dropped")
        clock, depth = self.db.worker.clock, self.db.config.coordinates
        source = Source(f"input {self.name}")
        stream = dataflow.add_source(source, lambda: clock.frontier, depth=depth)
        self._sources.append(source)
        dataflow.on_drop.append(lambda: self._sources.remove(source))
        if self.closed:
            dataflow.close_source(source)
        return stream

    def flush(self) -> None:
        now = self.db.time.elements
        for updates in self.db.pending.take(self.name):
            for source in self._sources:
                source.dataflow.feed(source, Message(now, updates))

    def replace_lanes(self, data: Ints) -> None:
        raise AssertionError("upsert refuses a stream")

    def prepare(self) -> None:
        pass  # nothing is arranged

    def base(self, keys: tuple[str, ...] | None = None) -> InstalledArrangement:
        raise BadPlan(f"{self.name} keeps no rows to arrange", hint="Create it without keep=False.")

    def arranged_by(self, keys: tuple[str, ...]) -> None:
        """Return None: each query arranges the rows that it needs."""

    def sorted_by(self, keys: tuple[str, ...]) -> None:
        """Return None: the stream keeps no rows."""

    def arrange(self, *keys: str) -> EmbeddedArrangement:
        arrangement = Collection.arrange(self, *keys)
        assert isinstance(arrangement, EmbeddedArrangement)
        return arrangement

    def keep_by(self, *keys: str) -> None:
        raise BadPlan(f"{self.name} keeps no rows", hint="Create it without keep=False.")

    def close(self) -> None:
        self.db.check()
        if not self.closed:
            self.flush()
            self.closed = True
            for source in self._sources:
                source.dataflow.close_source(source)
            self.db.completion.clean_up()
            self.db.notify_followers()

    def drop(self, *columns: str) -> Any:
        if columns:
            return Collection.drop(self, *columns)
        self.db.check()
        if self.dropped:
            return None
        self.require_unread()
        self.closed = self.dropped = True
        self.db.pending.forget(self.name)
        self.db.inputs.pop(self.name, None)
        return None

    def require_unread(self) -> None:
        self.db.outputs.release_abandoned()
        if self._sources:
            readers = ", ".join(source.dataflow.name for source in self._sources)
            raise InUse(f"cannot drop {self.name}", detail=f"Read by: {readers}.", hint="Release those first.")
