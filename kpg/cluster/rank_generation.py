"""The db of a rank in one generation: its shard, the peers it settles with, and everything installed on it.

The handlers of commands (kpg/cluster/command_handlers/) are functions of a `RankGeneration`; they register themselves
in `HANDLERS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple

from kpg.api.arrow_functions import ArrowFunction
from kpg.api.changes import EachChange
from kpg.api.embedded_arrangement import EmbeddedArrangement
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_input import EmbeddedInput
from kpg.api.embedded_installer import arrangement_source
from kpg.api.embedded_output import EmbeddedOutput, EmbeddedProbe
from kpg.api.pending_rows import PendingMark
from kpg.api.query_limits import QueryLimits
from kpg.api.shared_indexes import SharedIndexes
from kpg.api.usage_groups import UsageGroup
from kpg.cluster import frames
from kpg.cluster.data_service import DataService
from kpg.cluster.frame_codec import SymbolDictionary
from kpg.cluster.handler_table import HandlerTable
from kpg.cluster.mesh import Mesh
from kpg.cluster.rank_builds import RankBuild
from kpg.cluster.rank_commands.query_commands import AdmittedLimits, NumberedGroup
from kpg.cluster.rank_reports import RankReports
from kpg.cluster.shard_blocks import ShardRead
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates
from kpg.dataflow.graph import Dataflow
from kpg.errors import UndefinedName
from kpg.protocol.parts import FailureSpec

# Polling for this long before sleeping: a wake-up costs more than a peer needs to answer within a round of a loop.
SPIN_SECONDS = 500e-6
SHARED_PREFIX = "shared "  # of the kind of a source, in a plan that finds or installs indexes of it
SETTLE_TIMEOUT_SECONDS = 1.0  # a sleeping rank checks this often whether the coordinator has given up


class TransactionMark(NamedTuple):
    """The state of the open epoch before a transaction."""

    rows: PendingMark
    refusals: dict[str, FailureSpec]


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
        self.groups: dict[int, UsageGroup] = {}  # by number: what the queries of a session or tenant use here
        self.reads: dict[int, ShardRead] = {}  # by number: reads in parts that the coordinator has not ended
        self.builds: dict[int, RankBuild] = {}  # by number: outputs that are being built in parts
        self.reports = RankReports(db, self.outputs)
        self.completion = self.reports.completion
        self.mark: TransactionMark | None = None  # of the rows before the open transaction
        self.refusals: dict[str, FailureSpec] = {}  # by input: why rows of the open epoch could not be made here
        self.data_service = DataService(db, self.outputs, self.settle, self.complete)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._spin_seconds = SPIN_SECONDS if db.worker.peers <= cores else 0.0  # spinning would take a peer's core

    def close(self) -> None:
        """Close the db."""
        while self.builds:
            self.builds.popitem()[1].end()
        self.db.close()

    def settle(self) -> None:
        """Work, with all peers, until nothing before the clock is in flight.

        A rank that serves requests returns at once: the coordinator reads at times that all ranks have completed.
        """
        if not self.completion.serving:
            self.do_all_work()

    def do_all_work(self) -> None:
        """Work, with all peers, until nothing before the clock is in flight."""

        def work() -> bool:
            self.db.worker.run()
            return self.db.worker.is_settled()

        self._work_until(work)
        self.completion.unfinished = False

    def complete(self, dataflow: Dataflow, epoch: int | None = None) -> None:
        """Work on one dataflow, with all peers, until it has completed an epoch, by default all closed ones.

        For inputs and their indexes, which are complete soon; a query might delay all others.
        """
        wanted = self.db.epoch - 1 if epoch is None else epoch

        def is_complete() -> bool:
            return dataflow.dropped or self.completion.complete_through(dataflow) >= wanted

        def work() -> bool:
            self._work_on([dataflow])
            if not is_complete():
                self.work_on_inputs()
            return is_complete()

        if self.completion.lags:
            self._work_until(work)

    def work_on_inputs(self) -> None:
        """Do the work of all inputs that is ready. A rank that waits for a peer does it: the peer may wait for that.

        The peer may have got rows of an input that this rank has none for, and change them only when the input is
        complete on all ranks.
        """
        inputs = [relation for relation in self.db.inputs.values() if relation.is_arranged]
        self._work_on([relation.base().dataflow for relation in inputs])

    def agree(self, vote: bool) -> bool:
        """Return whether all ranks vote yes; all vote at the same point of the same command."""

        def while_waiting() -> None:
            self.other_connections()  # which raises if the coordinator has given up this generation
            self.work_on_inputs()

        return self.mesh.agree(vote, while_waiting)

    def _work_on(self, dataflows: list[Dataflow]) -> None:
        """Do the work of some dataflows that is ready, and exchange their progress with the peers."""
        worker = self.db.worker
        worker.exchange()
        for dataflow in dataflows:
            worker.run_dataflow(dataflow)
        worker.exchange()

    def _work_until(self, work: Callable[[], bool]) -> None:
        """Call a function until it returns True; wait for something to arrive before each further call."""
        poller = None
        peers = {connection.fileno() for connection in self.mesh.connections()}
        while not work():
            if poller is None:
                poller = frames.SocketPoller([*self.other_connections(), *self.mesh.connections()])
            spin = self._spin_seconds if self.db.worker.counts is None else 0.0  # counted CPU time is work, not waiting
            ready = poller.wait_soon(SETTLE_TIMEOUT_SECONDS, spin)
            if not ready or not peers.issuperset(ready):
                poller = None  # something other than a peer: serve it, and watch the connections of then

    def complete_inputs(self) -> None:
        """Let the base arrangements of all inputs include all closed epochs."""
        for relation in self.db.inputs.values():
            if relation.is_arranged:
                self.complete(relation.base().dataflow)

    @contextmanager
    def limited(self, limits: AdmittedLimits | None) -> Iterator[None]:
        """Limit the queries that are installed in this block."""
        if limits is None:
            yield
            return
        admission = self.db.admission or self.db.limit_queries(limits.query)
        with admission.using(rank_limits(limits.query), tuple(map(self.group, limits.groups))):
            yield

    def group(self, group: NumberedGroup) -> UsageGroup:
        """Return what the queries of a session or tenant use on this rank."""
        return self.groups.setdefault(group.number, UsageGroup(group.kind, group.limits, number=group.number))

    def find_input(self, name: str) -> EmbeddedInput:
        """Return an input by name."""
        relation = self.db.inputs.get(name)
        if relation is None:
            raise UndefinedName(f"there is no input called {name!r}")
        return relation

    # The host of a plan (kpg.plan.plan_document.PlanHost)

    def find_owner(self, reference: Any) -> Any:
        """Return the relation or arrangement that a plan names; a shared one has an index by any columns."""
        kind, name = reference
        if kind.startswith(SHARED_PREFIX):
            source = self.find_source(kind.removeprefix(SHARED_PREFIX), name)
            return SharedIndexes(arrangement_source(source))
        return self.find_input(name) if kind == "input" else self.arrangements[name].installed

    def find_source(self, kind: str, name: Any) -> EmbeddedInput | EmbeddedOutput | EmbeddedArrangement:
        """Return an input or output by name, or an arrangement by number."""
        if kind == "input":
            return self.find_input(name)
        return self.outputs[name] if kind == "output" else self.arrangements[name]

    def flat_map(self, function: Callable[..., Any], before: Schema, after: Schema) -> Callable[[Any], Any]:
        """Wrap a user's function from tables to tables."""
        return ArrowFunction(function, before, after, self.db.symbols)

    def inspect(self, function: Callable[..., Any], schema: Schema) -> Callable[[Any], None]:
        """Wrap a user's function of changes."""
        return EachChange(self.db, schema, function)


def rank_limits(limits: QueryLimits) -> QueryLimits:
    """Return the limits that hold on a rank: the coordinator has checked the plan, against the sizes of all ranks."""
    return replace(limits, product_rows=None)


HANDLERS: Final[HandlerTable[RankGeneration]] = HandlerTable()
Blocks = list[Updates]
