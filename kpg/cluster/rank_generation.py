"""The db of a rank in one generation: its shard, the peers it settles with, and everything installed on it.

The handlers of commands (kpg/cluster/command_handlers/) are functions of a `RankGeneration`; they register themselves
in `HANDLERS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from kpg.api.arrow_functions import ArrowFunction
from kpg.api.changes import EachChange
from kpg.api.embedded_arrangement import EmbeddedArrangement
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_input import EmbeddedInput
from kpg.api.embedded_output import EmbeddedOutput, EmbeddedProbe
from kpg.cluster import frames
from kpg.cluster.data_service import DataService
from kpg.cluster.frame_codec import SymbolDictionary
from kpg.cluster.handler_table import HandlerTable
from kpg.cluster.mesh import Mesh
from kpg.cluster.request_frames import RowBlock, symbolic_lanes
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates
from kpg.errors import UndefinedName
from kpg.protocol.error_messages import failure_of
from kpg.protocol.parts import FailureSpec

# Polling for this long before sleeping: a wake-up costs more than a peer needs to answer within a round of a loop.
SPIN_SECONDS = 500e-6
SETTLE_TIMEOUT_SECONDS = 1.0  # a sleeping rank checks this often whether the coordinator has given up


class RankGeneration:
    """The db of a rank in one generation, and the handlers of its commands."""

    def __init__(
        self,
        db: EmbeddedDatabase,
        mesh: Mesh,
        other_connections: Callable[[], list[frames.Waitable]],
        dictionary: SymbolDictionary,
    ) -> None:
        self.db = db
        self.mesh = mesh
        self.other_connections = other_connections  # to watch while waiting for peers
        self.dictionary = dictionary
        self.outputs: dict[str, EmbeddedOutput] = {}
        self.arrangements: dict[int, EmbeddedArrangement] = {}
        self.probes: dict[int, EmbeddedProbe] = {}
        self.data_service = DataService(db, self.outputs, self.settle)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._spin_seconds = SPIN_SECONDS if db.worker.peers <= cores else 0.0  # spinning would take a peer's core

    def close(self) -> None:
        """Close the db."""
        self.db.close()

    def settle(self) -> None:
        """Work, with all peers, until nothing before the clock is in flight."""
        worker, poller = self.db.worker, None
        peers = {connection.fileno() for connection in self.mesh.connections()}
        while True:
            worker.run()
            if worker.is_settled():
                return
            if poller is None:
                poller = frames.SocketPoller([*self.other_connections(), *self.mesh.connections()])
            ready = poller.wait_soon(SETTLE_TIMEOUT_SECONDS, self._spin_seconds)
            if not ready or not peers.issuperset(ready):
                poller = None  # something other than a peer: serve it, and watch the connections of then

    def find_input(self, name: str) -> EmbeddedInput:
        """Return an input by name."""
        relation = self.db.inputs.get(name)
        if relation is None:
            raise UndefinedName(f"there is no input called {name!r}")
        return relation

    def changes_block(self, name: str) -> RowBlock:
        """Take the unread changes of an output, as a block."""
        changes = self.outputs[name].drain()
        return RowBlock(changes.updates, symbolic_lanes(changes.schema))

    def changes_failure(self, name: str) -> FailureSpec | None:
        """Return the reason why the changes of an output cannot be read now, if there is one."""
        error = self.outputs[name].changes_error()
        return None if error is None else failure_of(error)

    # The host of a plan (kpg.plan.plan_document.PlanHost)

    def find_owner(self, reference: Any) -> Any:
        """Return the relation or arrangement that a plan names."""
        kind, name = reference
        return self.find_input(name) if kind == "input" else self.arrangements[name].installed

    def flat_map(self, function: Callable[..., Any], before: Schema, after: Schema) -> Callable[[Any], Any]:
        """Wrap a user's function from tables to tables."""
        return ArrowFunction(function, before, after, self.db.symbols)

    def inspect(self, function: Callable[..., Any], schema: Schema) -> Callable[[Any], None]:
        """Wrap a user's function of changes."""
        return EachChange(self.db, schema, function)


HANDLERS: Final[HandlerTable[RankGeneration]] = HandlerTable()
Blocks = list[Updates]
