"""What a rank does for each request: the same calls on its db as an embedded user would make, on its shard.

A request names its action with "do"; the method of that name is called with the rest. Rows that come or go are blocks
of lanes; a result is a plain value and blocks. Actions that need all ranks wait until nothing is in flight anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from kpg.api.arrow_functions import ArrowFunction
from kpg.api.changes import EachChange
from kpg.api.database_description import describe_database
from kpg.api.embedded_arrangement import EmbeddedArrangement, wanted_keys
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_input import EmbeddedInput
from kpg.api.embedded_output import EmbeddedOutput, EmbeddedProbe
from kpg.api.symbol_usage import symbols_in_use
from kpg.cluster import frames
from kpg.cluster.data_service import DataService, Result
from kpg.cluster.frame_codec import SymbolDictionary
from kpg.cluster.mesh import Mesh
from kpg.cluster.message import Rows, symbolic_lanes, write_error
from kpg.cluster.rank_durability import RankDurable
from kpg.cluster.shard_blocks import rows_of
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates
from kpg.errors import ProtocolError, ResourceError, UndefinedName
from kpg.plan import plan_document
from kpg.plan.plan_values import function_of_name, read_schema
from kpg.storage.manifest import frontier_from_json
from kpg.storage.record import Origin

SPIN = 500e-6  # seconds to look for what peers send before going to sleep


class Handlers:
    """The db of a rank in one generation, and what can be asked of it."""

    ACTIONS: ClassVar = frozenset({
        "input", "insert", "make", "advance", "settle", "output", "arrangement", "probe", "changes", "snapshot",
        "lookup", "scan", "release", "close_input", "drop_input", "describe", "explain", "reclaim", "forget",
        "frontier", "figures", "call", "log", "checkpoint", "discard", "applied", "take_back", "base", "unlog",
        "writers", "time", "set_reader", "drop_reader", "readers",
    })  # fmt: skip
    FOR_OTHERS: ClassVar = frozenset({"publish", "unstage", "placement", "hold", "let_go", "pace"})  # see outside

    def __init__(
        self, db: EmbeddedDatabase, mesh: Mesh, others: Callable[[], list[frames.Waitable]], told: SymbolDictionary
    ) -> None:
        self.db = db
        self.mesh = mesh
        self.others = others
        self.told = told
        self.outputs: dict[str, EmbeddedOutput] = {}
        self.arrangements: dict[int, EmbeddedArrangement] = {}
        self.probes: dict[int, EmbeddedProbe] = {}
        self.outside = DataService(db, self.outputs, self.settle)
        enough = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._spin = SPIN if db.worker.peers <= enough else 0.0  # not where another worker wants the core

    def handle(self, request: dict[str, Any], blocks: list[Updates]) -> Result:
        """Do what is asked."""
        action = request["do"]
        if action in self.FOR_OTHERS:
            result = getattr(self.outside, action)(request, blocks)
        elif action in self.ACTIONS:
            result = getattr(self, f"_{action}")(request, blocks)
        else:
            raise ProtocolError(f"no action is called {action!r}")
        return result if isinstance(result, tuple) else (result, [])

    def close(self) -> None:
        """Let go of everything."""
        self.db.close()

    # Working until all is done

    def settle(self) -> None:
        """Work, with all peers, until nothing before the clock is in flight."""
        worker, watch = self.db.worker, None
        peers = {connection.fileno() for connection in self.mesh.connections()}
        while True:
            worker.run()
            if worker.is_settled():
                return
            if watch is None:
                watch = frames.SocketPoller([*self.others(), *self.mesh.connections()])
            found = watch.wait_soon(1.0, self._spin)
            if not found or not peers.issuperset(found):
                watch = None  # somebody else wants something

    # Relations

    def _input(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        self.db.input(request["name"], read_schema(request["schema"]), key=request["key"])

    def _insert(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        source = self._find_input(request["name"])
        for block in blocks:
            if request.get("replacing"):
                source.replace_lanes(block.data)
            else:
                source.take_lanes(block)

    def _make(self, request: dict[str, Any], blocks: list[Updates]) -> int:
        """Rows that each rank makes for itself: `function(rank, ranks, **options)`."""
        source = self._find_input(request["name"])
        made = source.insert_made if request["diff"] > 0 else source.remove_made
        return made(function_of_name(request["function"]), **request["options"])

    def _close_input(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        source = self._find_input(request["name"])
        if source.name in self.db.pending or request["dirty"]:
            source.base()
        source.close()
        self.settle()

    def _drop_input(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        self._find_input(request["name"]).drop()

    def _find_input(self, name: str) -> EmbeddedInput:
        found = self.db.inputs.get(name)
        if found is None:
            raise UndefinedName(f"there is no input called {name!r}")
        return found

    def _base(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        """Arrange a relation, as all ranks do at this point."""
        keys = request["keys"]
        self._find_input(request["name"]).base(None if keys is None else tuple(keys))

    # Time

    def _advance(self, request: dict[str, Any], blocks: list[Updates]) -> Result:
        """Move the clock and finish all work before it; the outputs that are listened to send their changes along."""
        db = self.db
        for name in request["dirty"]:  # on all ranks in the same order, whoever has rows
            self._find_input(name).base()
        busy, before = bool(db.pending), db.time
        db.move_clock(frontier_from_json(request["to"]))
        self.settle()
        log_bytes = 0
        if db.durable is not None:
            db.durable.wait()
            log_bytes = db.durable.storage.log_bytes
        for origin in request["origins"]:
            db.applied.add(Origin(*origin))
        db.seal(before)
        db.idle_merge_after_advance(busy)
        self.outside.published(True)
        heard = [name for name in request["following"] if name in self.outputs]
        found = {"heard": heard, "log_bytes": log_bytes, "trouble": self._trouble()}
        return found, [self._changes_of(self.outputs[name]) for name in heard]

    def _trouble(self) -> dict[str, Any] | None:
        """A limit that was met: said beside the result, because the clock has moved all the same."""
        try:
            self.db.memory.check()
        except ResourceError as error:
            return write_error(error)
        return None

    def _log(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        """Write what was inserted here to the log, before anybody moves the clock; forcing it to disk goes on."""
        assert self.db.durable is not None
        origins = tuple(Origin(*origin) for origin in request["origins"])
        self.db.durable.write(self.db, frontier_from_json(request["to"]), origins)

    def _unlog(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        """Some rank could not log its part: none has."""
        assert isinstance(self.db.durable, RankDurable)
        self.db.durable.unwrite(self.db)

    def _checkpoint(self, request: dict[str, Any], blocks: list[Updates]) -> int:
        self.settle()
        return self.db.checkpoint()

    def _applied(self, request: dict[str, Any], blocks: list[Updates]) -> bool:
        return Origin(*request["origin"]) in self.db.applied

    def _writers(self, request: dict[str, Any], blocks: list[Updates]) -> dict[str, int]:
        """The writers whose batches are counted and whose name begins so, and the last batch of each."""
        sources = [source for source in self.db.applied.to_json() if source.startswith(request["prefix"])]
        return {source: self.db.applied.latest(source) or 0 for source in sources}

    def _set_reader(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        self.db.set_reader(request["name"], tuple(request["time"]), request["of"])

    def _drop_reader(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        self.db.drop_reader(request["name"])

    def _readers(self, request: dict[str, Any], blocks: list[Updates]) -> dict[str, Any]:
        return {name: reader.to_json() for name, reader in self.db.readers.items()}

    def _take_back(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        """Forget all that was inserted since the last advance."""
        self.outside.published(False)
        self.db.pending.discard()

    def _discard(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        """Forget changes that the client has from before."""
        self.settle()
        for name in request["names"]:
            self._changes_of(self.outputs[name])

    def _time(self, request: dict[str, Any], blocks: list[Updates]) -> list[list[int]]:
        return [list(time) for time in self.db.time]

    def _settle(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        self.settle()

    # Queries

    def _output(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        node = plan_document.read(request["plan"], self)
        self.outputs[request["name"]] = self.db.installer.output(node, request["name"], request["keep"])

    def _arrangement(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        node, keys = plan_document.read(request["plan"], self), tuple(request["keys"])
        source = self.db.inputs.get(request["of"]) if request["of"] is not None else None
        self.arrangements[request["number"]] = (
            self.db.installer.arrangement(node, request["name"], keys) if source is None else source.arrange(*keys)
        )

    def _probe(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        self.probes[request["number"]] = self.db.installer.probe(plan_document.read(request["plan"], self))

    def _release(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        kind, name = request["kind"], request["name"]
        holders: dict[str, dict[Any, Any]] = {
            "output": self.outputs, "arrangement": self.arrangements, "probe": self.probes,
        }  # fmt: skip
        found = holders[kind].pop(name, None)
        if found is not None:
            found.release()

    # The host of a plan

    def find_owner(self, reference: Any) -> Any:
        """The relation or arrangement that a plan names."""
        kind, name = reference
        if kind == "input":
            return self._find_input(name)
        return self.arrangements[name].installed

    def flat_map(self, function: Callable[..., Any], before: Schema, after: Schema) -> Callable[[Any], Any]:
        """A user's function from tables to tables."""
        return ArrowFunction(function, before, after, self.db.symbols)

    def inspect(self, function: Callable[..., Any], schema: Schema) -> Callable[[Any], None]:
        """A user's function of changes."""
        return EachChange(self.db, schema, function)

    # Reading

    def _changes(self, request: dict[str, Any], blocks: list[Updates]) -> Result:
        self.settle()
        return None, [self._changes_of(self.outputs[request["name"]])]

    def _changes_of(self, output: EmbeddedOutput) -> Rows:
        changes = output.take_changes()
        return Rows(changes.updates, symbolic_lanes(changes.schema))

    def _snapshot(self, request: dict[str, Any], blocks: list[Updates]) -> Result:
        self.settle()
        output = self.outputs[request["name"]]
        return None, [rows_of(self.db, output.readable(), output.schema, request["as_of"], None)]

    def _lookup(self, request: dict[str, Any], blocks: list[Updates]) -> Result:
        self.settle()
        found = self.arrangements[request["number"]]
        return None, [rows_of(self.db, found.installed, found.schema, request["as_of"], wanted_keys(blocks[0].data))]

    def _scan(self, request: dict[str, Any], blocks: list[Updates]) -> Result:
        self.settle()
        found = self.arrangements[request["number"]]
        return None, [rows_of(self.db, found.installed, found.schema, request["as_of"], None)]

    def _frontier(self, request: dict[str, Any], blocks: list[Updates]) -> list[list[int]]:
        if request["kind"] == "probe":
            return [list(time) for time in self.probes[request["name"]].frontier()]
        return [list(time) for time in self.outputs[request["name"]].frontier()]

    # Looking inside

    def _describe(self, request: dict[str, Any], blocks: list[Updates]) -> Any:
        return describe_database(self.db)

    def _explain(self, request: dict[str, Any], blocks: list[Updates]) -> str:
        name = request["name"]
        return self.db.explain() if name is None else self.outputs[name].explain()

    def _figures(self, request: dict[str, Any], blocks: list[Updates]) -> dict[str, Any]:
        worker, outside = self.db.worker, self.outside
        figures = {"rank": worker.index, "steps": worker.steps}
        return {**figures, "staged_rows": len(outside.staged), "readers": outside.holds.names()}

    def _reclaim(self, request: dict[str, Any], blocks: list[Updates]) -> int:
        """Two requests, so that no rank renumbers while another still sends: settle everywhere, then this."""
        self.settle()
        return self.db.symbols.reclaim(np.union1d(symbols_in_use(self.db), self.outside.staged.symbols_in_use()))

    def _forget(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        self.mesh.forget_texts()
        self.told.forget()

    def _call(self, request: dict[str, Any], blocks: list[Updates]) -> Any:
        """A function of this rank's db, by name: for measuring and testing."""
        return function_of_name(request["function"])(self.db, **request["options"])
