"""What a rank does for those outside: keeps rows that guests bring until they are published, and history for readers.

    stage, publish, unstage     rows under a key that names who brought them and in which attempt
    shard, updates              this rank's rows as of a time, or its updates between two times
    hold, let_go, pace          a reader's hold on history, and how far it may read at once

Guests may stage and read; the rest is asked by the coordinator, of all ranks at the same point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kpg.api.embedded_arrangement import wanted_keys
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_input import EmbeddedInput
from kpg.api.embedded_output import EmbeddedOutput
from kpg.api.installed_arrangement import InstalledArrangement
from kpg.cluster.message import Rows, symbolic_lanes
from kpg.cluster.reader_holds import ReaderHolds, between, counts_between
from kpg.cluster.shard_blocks import rows_of
from kpg.cluster.staged_rows import StagedRows
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates, constant, no_updates
from kpg.errors import SchemaMismatch, UndefinedName

Result = tuple[Any, list[Rows]]
Request = dict[str, Any]


class DataService:
    """A rank's dealings with guests and readers in one generation."""

    def __init__(self, db: EmbeddedDatabase, outputs: dict[str, EmbeddedOutput], settle: Callable[[], None]) -> None:
        self.db = db
        self.staged = StagedRows()
        self.holds = ReaderHolds()
        self._outputs = outputs
        self._settle = settle
        self._publishing: tuple[Any, ...] | None = None  # the batch whose rows the open epoch has

    # Rows in

    def stage(self, request: Request, blocks: list[Updates]) -> Result:
        """Keep rows for later."""
        source = self._input(request["name"])
        if any(block.lanes != len(source.schema) for block in blocks):
            raise SchemaMismatch(f"rows with another number of columns than {source.name}")
        symbolic = symbolic_lanes(source.schema)
        self.staged.add(tuple(request["key"]), [Rows(block, symbolic) for block in blocks])
        return None, []

    def publish(self, request: Request, blocks: list[Updates]) -> int:
        """Put staged rows into a relation, at the open epoch."""
        source = self._input(request["name"])
        now, count = constant(self.db.time.elements[0]), 0
        for key in request["keys"]:
            for block, _ in self.staged.take(tuple(key)):
                if request.get("replacing"):
                    source.replace_lanes(block.data)
                else:
                    source.take_lanes(Updates(block.data, now, block.diffs))
                count += len(block)
        self._publishing = tuple(request["prefix"])
        return count

    def published(self, done: bool) -> None:
        """The open epoch is acknowledged, and what else was staged for its batch is forgotten; or it was taken back."""
        prefix, self._publishing = self._publishing, None
        if done and prefix is not None:
            self.staged.settle(prefix)

    def unstage(self, request: Request, blocks: list[Updates]) -> None:
        """Forget what was staged under keys that begin so, and what still comes under them; may be repeated."""
        if request.get("final", True):
            self.staged.settle(tuple(request["prefix"]))
        else:
            self.staged.drop(tuple(request["prefix"]))

    # Rows out

    def placement(self, request: Request, blocks: list[Updates]) -> list[str] | None:
        """The columns whose hash says which rank has a row of a relation or answer; none if that is still open."""
        return list(self._kept(request["name"])[1].placed) if self._is_kept(request["name"]) else None

    def shard(self, request: Request, blocks: list[Updates]) -> Result:
        """This rank's rows of an answer or relation as of a time: some keys of it, or all.

        A relation that nobody has read has no rows: to arrange it here would be to do so on one rank alone.
        """
        if not self._is_kept(request["name"]):
            schema = self._input(request["name"]).schema
            return None, [Rows(no_updates(len(schema), 1), symbolic_lanes(schema))]
        schema, installed = self._kept(request["name"])
        keys = None
        if blocks:
            wanted = tuple(request["keys"])
            if wanted != installed.schema.names[: len(wanted)]:
                raise UndefinedName(f"{request['name']} is not sorted by {', '.join(wanted)}")
            keys = wanted_keys(blocks[0].data)
        hold = request.get("hold")
        since = self.holds.find(hold).handle.since if hold is not None else None
        return None, [rows_of(self.db, installed, schema, request["as_of"], keys, since)]

    def updates(self, request: Request, blocks: list[Updates]) -> Result:
        """This rank's updates of an answer or relation at times in [start, end), for one who holds its history."""
        schema, _ = self._kept(request["name"])
        found = between(self.holds.find(request["hold"]), schema, request["start"], request["end"])
        return None, [Rows(found, symbolic_lanes(schema))]

    # Readers

    def hold(self, request: Request, blocks: list[Updates]) -> int:
        """Keep the history of an answer or relation from a time on, for a reader of that name."""
        if request["name"] not in self._outputs:
            self._input(request["name"]).base()  # on all ranks at this point
        self._settle()
        reader = request["reader"]
        installed = self._kept(request["name"])[1]
        since = self.holds.put(reader, installed, request["time"])
        if request.get("lasting"):  # what the answer is made of is kept as long, also on disk: it can be made again
            self.db.set_reader(reader, since, installed.relations)
        return since

    def let_go(self, request: Request, blocks: list[Updates]) -> None:
        """End a hold; may be repeated."""
        self.holds.release(request["reader"])
        if request["reader"] in self.db.readers:
            self.db.drop_reader(request["reader"])

    def pace(self, request: Request, blocks: list[Updates]) -> list[list[int]]:
        """The first times in [start, end) that have updates, and how many."""
        found = counts_between(self.holds.find(request["reader"]), request["start"], request["end"])
        return [column[: request["at_most"]].tolist() for column in found]

    # What there is

    def _input(self, name: str) -> EmbeddedInput:
        found = self.db.inputs.get(name)
        if found is None:
            raise UndefinedName(f"there is no input called {name!r}")
        return found

    def _is_kept(self, name: str) -> bool:
        return name in self._outputs or self._input(name).is_arranged

    def _kept(self, name: str) -> tuple[Schema, InstalledArrangement]:
        if name in self._outputs:
            return self._outputs[name].schema, self._outputs[name].readable()
        source = self._input(name)
        if not source.is_arranged:
            raise UndefinedName(f"{name} is not arranged yet", hint="Have the coordinator arrange it first.")
        return source.schema, source.base()
