"""The handlers of a rank's commands: the calls that an embedded user would make, on the rank's shard of the db.

Commands are defined in `kpg.cluster.rank_commands`; `DataService` handles those about staged rows and holds. A command
that needs all ranks (an advance, a read) returns when nothing before the clock is in flight on any of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.api.arrow_functions import ArrowFunction
from kpg.api.changes import EachChange
from kpg.api.database_description import describe_database
from kpg.api.embedded_arrangement import EmbeddedArrangement, wanted_keys
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_input import EmbeddedInput
from kpg.api.embedded_output import EmbeddedOutput, EmbeddedProbe
from kpg.api.symbol_usage import symbols_in_use
from kpg.cluster import frames
from kpg.cluster import rank_commands as commands
from kpg.cluster.data_service import DATA_COMMANDS, DataService
from kpg.cluster.frame_codec import SymbolDictionary
from kpg.cluster.handler_table import HandlerTable
from kpg.cluster.mesh import Mesh
from kpg.cluster.rank_durability import RankDurable
from kpg.cluster.request_frames import Answer, RowBlock, symbolic_lanes
from kpg.cluster.shard_blocks import shard_block
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates
from kpg.errors import ResourceError, UndefinedName
from kpg.plan import plan_document
from kpg.plan.plan_values import function_of_name, read_schema
from kpg.protocol.error_messages import failure_of
from kpg.protocol.parts import FailureSpec
from kpg.storage.record import Origin

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

    def perform(self, command: commands.Command[Any], blocks: list[Updates]) -> Answer[Any]:
        """Perform a command."""
        if type(command) in DATA_COMMANDS:
            return DATA_COMMANDS.perform(self.data_service, command, blocks)
        return HANDLERS.perform(self, command, blocks)

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
        changes = self.outputs[name].take_changes()
        return RowBlock(changes.updates, symbolic_lanes(changes.schema))

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


# Inputs


@HANDLERS.handles(commands.CreateInputCommand)
def create_input(rank: RankGeneration, command: commands.CreateInputCommand, blocks: Blocks) -> None:
    """Create an input."""
    rank.db.input(command.name, read_schema(command.schema), key=command.key)


@HANDLERS.handles(commands.InsertCommand)
def insert(rank: RankGeneration, command: commands.InsertCommand, blocks: Blocks) -> None:
    """Insert rows."""
    relation = rank.find_input(command.name)
    # This rank alone has the command: arranging the relation now would wait for the others forever.
    assert relation.is_arranged or not command.replacing, f"{command.name} is not arranged on all ranks"
    for block in blocks:
        if command.replacing:
            relation.replace_lanes(block.data)
        else:
            relation.take_lanes(block)


@HANDLERS.handles(commands.MakeRowsCommand)
def make_rows(rank: RankGeneration, command: commands.MakeRowsCommand, blocks: Blocks) -> int:
    """Insert or remove the rows that a function makes for this rank."""
    relation = rank.find_input(command.name)
    change = relation.insert_made if command.diff > 0 else relation.remove_made
    return change(function_of_name(command.function), **command.options)


@HANDLERS.handles(commands.ArrangeInputCommand)
def arrange_input(rank: RankGeneration, command: commands.ArrangeInputCommand, blocks: Blocks) -> None:
    """Arrange an input, as all ranks do at this point."""
    rank.find_input(command.name).base(command.keys)


@HANDLERS.handles(commands.CloseInputCommand)
def close_input(rank: RankGeneration, command: commands.CloseInputCommand, blocks: Blocks) -> None:
    """Close an input."""
    rank.find_input(command.name).close()
    rank.settle()


@HANDLERS.handles(commands.DropInputCommand)
def drop_input(rank: RankGeneration, command: commands.DropInputCommand, blocks: Blocks) -> None:
    """Drop an input."""
    rank.find_input(command.name).drop()


@HANDLERS.handles(commands.DropStoredCommand)
def drop_stored(rank: RankGeneration, command: commands.DropStoredCommand, blocks: Blocks) -> None:
    """Drop relations from this rank's part of the directory, where they are there."""
    assert rank.db.durable is not None
    storage = rank.db.durable.storage
    for name in command.names:
        if name in storage.relations:
            storage.drop(name)


# Time


@HANDLERS.handles(commands.AdvanceCommand)
def advance(rank: RankGeneration, command: commands.AdvanceCommand, blocks: Blocks) -> Answer[commands.AdvanceResult]:
    """Move the clock and complete all work before it."""
    db = rank.db
    for name in command.dirty:  # on all ranks in the same order, whichever of them has rows
        rank.find_input(name).base()
    busy, before = bool(db.pending), db.time
    db.move_clock(Frontier(command.to))
    rank.settle()
    log_bytes = 0
    if db.durable is not None:
        db.durable.wait()
        log_bytes = db.durable.storage.log_bytes
    for origin in command.origins:
        db.applied.add(Origin(*origin))
    db.seal(before)
    db.idle_merge_after_advance(busy)
    rank.data_service.end_publication(committed=True)
    changed = tuple([name for name in command.following if name in rank.outputs])
    result = commands.AdvanceResult(changed, log_bytes, exceeded_limit(db))
    return Answer(result, [rank.changes_block(name) for name in changed])


def exceeded_limit(db: EmbeddedDatabase) -> FailureSpec | None:
    """Return the memory limit that the db exceeds, if it does."""
    try:
        db.memory.check()
    except ResourceError as error:
        return failure_of(error)
    return None


@HANDLERS.handles(commands.LogCommand)
def log(rank: RankGeneration, command: commands.LogCommand, blocks: Blocks) -> None:
    """Write the rows of the open epoch to the log; forcing it to disk goes on in the background."""
    assert rank.db.durable is not None
    origins = tuple(Origin(*origin) for origin in command.origins)
    rank.db.durable.write(rank.db, Frontier(command.to), origins)


@HANDLERS.handles(commands.UnlogCommand)
def unlog(rank: RankGeneration, command: commands.UnlogCommand, blocks: Blocks) -> None:
    """Remove what was logged for the open epoch."""
    assert isinstance(rank.db.durable, RankDurable)
    rank.db.durable.unwrite(rank.db)


@HANDLERS.handles(commands.TakeBackCommand)
def take_back(rank: RankGeneration, command: commands.TakeBackCommand, blocks: Blocks) -> None:
    """Remove all rows that were inserted since the last advance."""
    rank.data_service.end_publication(committed=False)
    rank.db.pending.discard()


@HANDLERS.handles(commands.SettleCommand)
def settle(rank: RankGeneration, command: commands.SettleCommand, blocks: Blocks) -> None:
    """Complete all work before the clock."""
    rank.settle()


@HANDLERS.handles(commands.TimeCommand)
def open_time(rank: RankGeneration, command: commands.TimeCommand, blocks: Blocks) -> commands.FrontierSpec:
    """Return the open time."""
    return rank.db.time.elements


# Queries


@HANDLERS.handles(commands.InstallOutputCommand)
def install_output(rank: RankGeneration, command: commands.InstallOutputCommand, blocks: Blocks) -> None:
    """Install an output."""
    node = plan_document.read(command.plan, rank)
    rank.outputs[command.name] = rank.db.installer.output(node, command.name, command.keep)


@HANDLERS.handles(commands.InstallArrangementCommand)
def install_arrangement(rank: RankGeneration, command: commands.InstallArrangementCommand, blocks: Blocks) -> None:
    """Install an arrangement, or share that of an input."""
    node = plan_document.read(command.plan, rank)
    relation = rank.db.inputs.get(command.of) if command.of is not None else None
    rank.arrangements[command.number] = (
        rank.db.installer.arrangement(node, command.name, command.keys)
        if relation is None
        else relation.arrange(*command.keys)
    )


@HANDLERS.handles(commands.InstallProbeCommand)
def install_probe(rank: RankGeneration, command: commands.InstallProbeCommand, blocks: Blocks) -> None:
    """Install a probe."""
    rank.probes[command.number] = rank.db.installer.probe(plan_document.read(command.plan, rank))


@HANDLERS.handles(commands.ReleaseOutputCommand)
def release_output(rank: RankGeneration, command: commands.ReleaseOutputCommand, blocks: Blocks) -> None:
    """Release an output; may be repeated."""
    if (output := rank.outputs.pop(command.name, None)) is not None:
        output.release()


@HANDLERS.handles(commands.ReleaseArrangementCommand)
def release_arrangement(rank: RankGeneration, command: commands.ReleaseArrangementCommand, blocks: Blocks) -> None:
    """Release an arrangement; may be repeated."""
    if (arrangement := rank.arrangements.pop(command.number, None)) is not None:
        arrangement.release()


@HANDLERS.handles(commands.ReleaseProbeCommand)
def release_probe(rank: RankGeneration, command: commands.ReleaseProbeCommand, blocks: Blocks) -> None:
    """Release a probe; may be repeated."""
    if (probe := rank.probes.pop(command.number, None)) is not None:
        probe.release()


# Reading


@HANDLERS.handles(commands.TakeChangesCommand)
def take_changes(rank: RankGeneration, command: commands.TakeChangesCommand, blocks: Blocks) -> Answer[None]:
    """Send the unread changes of an output."""
    rank.settle()
    return Answer(None, [rank.changes_block(command.name)])


@HANDLERS.handles(commands.DiscardChangesCommand)
def discard_changes(rank: RankGeneration, command: commands.DiscardChangesCommand, blocks: Blocks) -> None:
    """Drop changes that the coordinator has from before."""
    rank.settle()
    for name in command.names:
        rank.changes_block(name)


@HANDLERS.handles(commands.SnapshotCommand)
def snapshot(rank: RankGeneration, command: commands.SnapshotCommand, blocks: Blocks) -> Answer[None]:
    """Send the rows of an output."""
    rank.settle()
    output = rank.outputs[command.name]
    return Answer(None, [shard_block(rank.db, output.readable(), output.schema, command.as_of, None)])


@HANDLERS.handles(commands.LookupCommand)
def lookup(rank: RankGeneration, command: commands.LookupCommand, blocks: Blocks) -> Answer[None]:
    """Send the rows of an arrangement that have the keys of the block."""
    rank.settle()
    arrangement, keys = rank.arrangements[command.number], wanted_keys(blocks[0].data)
    return Answer(None, [shard_block(rank.db, arrangement.installed, arrangement.schema, command.as_of, keys)])


@HANDLERS.handles(commands.ScanCommand)
def scan(rank: RankGeneration, command: commands.ScanCommand, blocks: Blocks) -> Answer[None]:
    """Send all rows of an arrangement."""
    rank.settle()
    arrangement = rank.arrangements[command.number]
    return Answer(None, [shard_block(rank.db, arrangement.installed, arrangement.schema, command.as_of, None)])


@HANDLERS.handles(commands.OutputFrontierCommand)
def output_frontier(
    rank: RankGeneration, command: commands.OutputFrontierCommand, blocks: Blocks
) -> commands.FrontierSpec:
    """Return the frontier of an output."""
    return rank.outputs[command.name].frontier().elements


@HANDLERS.handles(commands.ProbeFrontierCommand)
def probe_frontier(
    rank: RankGeneration, command: commands.ProbeFrontierCommand, blocks: Blocks
) -> commands.FrontierSpec:
    """Return the frontier of a probe."""
    return rank.probes[command.number].frontier().elements


# Storage


@HANDLERS.handles(commands.CheckpointCommand)
def checkpoint(rank: RankGeneration, command: commands.CheckpointCommand, blocks: Blocks) -> int:
    """Write a checkpoint."""
    rank.settle()
    assert rank.db.durable is not None
    return rank.db.durable.checkpoint(rank.db, Frontier(command.keep))


@HANDLERS.handles(commands.IsAppliedCommand)
def is_applied(rank: RankGeneration, command: commands.IsAppliedCommand, blocks: Blocks) -> bool:
    """Return whether a writer's batch was applied."""
    return Origin(*command.origin) in rank.db.applied


@HANDLERS.handles(commands.LatestBatchesCommand)
def latest_batches(rank: RankGeneration, command: commands.LatestBatchesCommand, blocks: Blocks) -> dict[str, int]:
    """Return the latest batch of each writer that has a prefix in its name."""
    writers = [writer for writer in rank.db.applied.to_json() if writer.startswith(command.prefix)]
    return {writer: rank.db.applied.latest(writer) or 0 for writer in writers}


@HANDLERS.handles(commands.SetReaderCommand)
def set_reader(rank: RankGeneration, command: commands.SetReaderCommand, blocks: Blocks) -> None:
    """Keep history for a named reader."""
    rank.db.set_reader(command.name, command.time, command.of)


@HANDLERS.handles(commands.DropReaderCommand)
def drop_reader(rank: RankGeneration, command: commands.DropReaderCommand, blocks: Blocks) -> None:
    """End what a named reader keeps; may be repeated, since a rank may have done so before another was lost."""
    if command.name in rank.db.readers:
        rank.db.drop_reader(command.name)


@HANDLERS.handles(commands.ReadersCommand)
def readers(rank: RankGeneration, command: commands.ReadersCommand, blocks: Blocks) -> dict[str, Any]:
    """Return the named readers."""
    return {name: reader.to_json() for name, reader in rank.db.readers.items()}


# Inspection


@HANDLERS.handles(commands.DescribeCommand)
def describe(rank: RankGeneration, command: commands.DescribeCommand, blocks: Blocks) -> Any:
    """Describe the db."""
    return describe_database(rank.db)


@HANDLERS.handles(commands.ExplainCommand)
def explain(rank: RankGeneration, command: commands.ExplainCommand, blocks: Blocks) -> str:
    """Explain the db, or one output."""
    return rank.db.explain() if command.name is None else rank.outputs[command.name].explain()


@HANDLERS.handles(commands.FiguresCommand)
def figures(rank: RankGeneration, command: commands.FiguresCommand, blocks: Blocks) -> commands.RankFigures:
    """Return figures of the rank."""
    worker, service = rank.db.worker, rank.data_service
    return commands.RankFigures(worker.index, worker.steps, len(service.staged), tuple(service.holds.names()))


@HANDLERS.handles(commands.CallCommand)
def call(rank: RankGeneration, command: commands.CallCommand, blocks: Blocks) -> Any:
    """Call a function of the db by name."""
    return function_of_name(command.function)(rank.db, **command.options)


# Symbols


@HANDLERS.handles(commands.ForgetSymbolsCommand)
def forget_symbols(rank: RankGeneration, command: commands.ForgetSymbolsCommand, blocks: Blocks) -> None:
    """Forget which symbols the other ends know."""
    rank.mesh.forget_symbols()
    rank.dictionary.forget()


@HANDLERS.handles(commands.ReclaimSymbolsCommand)
def reclaim_symbols(rank: RankGeneration, command: commands.ReclaimSymbolsCommand, blocks: Blocks) -> int:
    """Free unused symbols. All ranks have settled and forgotten before, so none renumbers while another still sends."""
    rank.settle()
    used = np.union1d(symbols_in_use(rank.db), rank.data_service.staged.symbols_in_use())
    return rank.db.symbols.reclaim(used)
