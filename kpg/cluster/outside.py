"""What a rank does for those outside: keeps rows that guests bring until they are published, and history for readers.

    stage, publish, unstage     rows under a key that names who brought them and in which attempt
    shard, updates              this rank's rows as of a time, or its updates between two times
    hold, let_go, pace          a reader's hold on history, and how far it may read at once

Guests may stage and read; the rest is asked by the coordinator, of all ranks at the same point.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from kpg.api.arrangement import wanted_keys
from kpg.api.database import Database
from kpg.api.input import Input
from kpg.api.installed import Installed
from kpg.api.output import Output
from kpg.cluster.holds import Holds, between, counts_between
from kpg.cluster.message import Rows, symbolic_lanes
from kpg.cluster.shards import rows_of
from kpg.columns.schema import Schema
from kpg.columns.updates import Ints, Updates, constant, no_updates
from kpg.errors import SchemaMismatch, UndefinedName

Result = tuple[Any, list[Rows]]
Request = dict[str, Any]
Staged = dict[tuple[Any, ...], list[Rows]]  # rows that guests brought, not yet in any relation
SETTLED = 256  # batches whose late attempts are turned away


class Outside:
    """A rank's dealings with guests and readers in one generation; what was staged outlives it."""

    def __init__(
        self, db: Database, outputs: dict[str, Output], staged: Staged, settle: Callable[[], None]
    ) -> None:
        self.db = db
        self.staged = staged
        self.holds = Holds()
        self._outputs = outputs
        self._settle = settle
        self._done: deque[tuple[Any, ...]] = deque(maxlen=SETTLED)  # keys that were published: who comes later is late

    # Rows in

    def stage(self, request: Request, blocks: list[Updates]) -> Result:
        """Keep rows for later."""
        source = self._input(request["name"])
        if any(block.lanes != len(source.schema) for block in blocks):
            raise SchemaMismatch(f"rows with another number of columns than {source.name}")
        key, symbolic = tuple(request["key"]), symbolic_lanes(source.schema)
        if not any(key[: len(done)] == done for done in self._done):
            self.staged.setdefault(key, []).extend(Rows(block, symbolic) for block in blocks)
        return None, []

    def publish(self, request: Request, blocks: list[Updates]) -> int:
        """Put staged rows into a relation, at the open epoch; all others of the same batch are forgotten."""
        source = self._input(request["name"])
        now, count = constant(self.db.time.elements[0]), 0
        for key in request["keys"]:
            for block, _ in self.staged.pop(tuple(key), []):
                source.take_lanes(Updates(block.data, now, block.diffs), replacing=bool(request.get("replacing")))
                count += len(block)
        self.unstage(request, blocks)
        return count

    def unstage(self, request: Request, blocks: list[Updates]) -> None:
        """Forget what was staged under keys that begin so, and what still comes under them; may be repeated."""
        prefix = tuple(request["prefix"])
        for key in [key for key in self.staged if key[: len(prefix)] == prefix]:
            del self.staged[key]
        if request.get("final", True):
            self._done.append(prefix)

    @property
    def staged_rows(self) -> int:
        """How many rows wait to be published."""
        return sum(len(rows.updates) for staged in self.staged.values() for rows in staged)

    def symbols_in_use(self) -> Ints:
        """The texts of rows that wait to be published."""
        lanes = [
            rows.updates.data[lane] for staged in self.staged.values() for rows in staged for lane in rows.symbolic
        ]
        return np.unique(np.concatenate(lanes)) if lanes else np.empty(0, np.int64)

    # Rows out

    def placement(self, request: Request, blocks: list[Updates]) -> list[str] | None:
        """The columns whose hash says which rank has a row of a relation or answer; none if that is still open."""
        return list(self._kept(request["name"])[1].keys) if self._is_kept(request["name"]) else None

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
        since = self.holds.put(reader, self._kept(request["name"])[1], request["time"])
        if request.get("lasting"):  # what the answer is made of is kept as long, also on disk: it can be made again
            self.db.set_reader(reader, since)
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

    def _input(self, name: str) -> Input:
        found = self.db.inputs.get(name)
        if found is None:
            raise UndefinedName(f"there is no input called {name!r}")
        return found

    def _is_kept(self, name: str) -> bool:
        return name in self._outputs or self._input(name).arranged

    def _kept(self, name: str) -> tuple[Schema, Installed]:
        if name in self._outputs:
            return self._outputs[name].schema, self._outputs[name].readable()
        source = self._input(name)
        if not source.arranged:
            raise UndefinedName(f"{name} is not arranged yet", hint="Have the coordinator arrange it first.")
        return source.schema, source.base()
