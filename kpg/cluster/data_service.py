"""A rank's service to data connections: staged rows until they are published, and history that readers hold.

    stage, publish, unstage     rows under a key that names the task and its attempt
    shard, updates              this rank's rows as of a time, or its updates between two times
    hold, release, count        a reader's hold on history, and how much there is to read

Clients stage and read over data connections (DATA_HANDLERS). The coordinator sends the other requests as commands, to
all ranks at the same point (DATA_COMMANDS).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kpg.api.embedded_arrangement import wanted_keys
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.embedded_input import EmbeddedInput
from kpg.api.embedded_output import EmbeddedOutput
from kpg.api.installed_arrangement import InstalledArrangement
from kpg.cluster import data_requests as requests
from kpg.cluster.handler_table import HandlerTable
from kpg.cluster.rank_commands.command_kinds import StagingKey
from kpg.cluster.rank_commands.staging_commands import (
    CountUpdatesCommand,
    HoldCommand,
    PlacementCommand,
    PublishCommand,
    ReleaseHoldCommand,
    UnstageCommand,
)
from kpg.cluster.reader_holds import ReaderHolds, between, counts_between
from kpg.cluster.request_frames import Answer, RowBlock, symbolic_lanes
from kpg.cluster.shard_blocks import shard_block
from kpg.cluster.staged_rows import StagedRows
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates, constant, no_updates
from kpg.dataflow.graph import Dataflow
from kpg.errors import SchemaMismatch, UndefinedName


class DataService:
    """The staged rows and holds of a rank in one generation."""

    def __init__(
        self,
        db: EmbeddedDatabase,
        outputs: dict[str, EmbeddedOutput],
        settle: Callable[[], None],
        complete: Callable[[Dataflow], None],
    ) -> None:
        self.db = db
        self.staged = StagedRows()
        self.holds = ReaderHolds()
        self.outputs = outputs
        self.settle = settle
        self.complete = complete  # works on a dataflow until it has completed all closed epochs
        self.published_prefix: StagingKey | None = None  # the batch in the open epoch

    def end_publication(self, committed: bool) -> None:
        """End the open epoch: drop the other staged rows of a batch that it committed, keep those of one taken back."""
        prefix, self.published_prefix = self.published_prefix, None
        if committed and prefix is not None:
            self.staged.settle(prefix)

    def find_input(self, name: str) -> EmbeddedInput:
        """Return an input by name."""
        relation = self.db.inputs.get(name)
        if relation is None:
            raise UndefinedName(f"there is no input called {name!r}")
        return relation

    def is_arranged(self, name: str) -> bool:
        """Return whether an output or relation has an arrangement to read."""
        return name in self.outputs or self.find_input(name).is_arranged

    def arranged(self, name: str) -> tuple[Schema, InstalledArrangement]:
        """Return the schema and the arrangement of an output or relation."""
        if name in self.outputs:
            return self.outputs[name].schema, self.outputs[name].readable()
        relation = self.find_input(name)
        if not relation.is_arranged:
            raise UndefinedName(f"{name} is not arranged yet", hint="Have the coordinator arrange it first.")
        return relation.schema, relation.base()


DATA_HANDLERS: Final[HandlerTable[DataService]] = HandlerTable()
DATA_COMMANDS: Final[HandlerTable[DataService]] = HandlerTable()
Blocks = list[Updates]


# Requests of data connections


@DATA_HANDLERS.handles(requests.StageRequest)
def stage(service: DataService, request: requests.StageRequest, blocks: Blocks) -> None:
    """Keep rows until they are published."""
    relation = service.find_input(request.name)
    if any(block.lanes != relation.schema.width for block in blocks):
        raise SchemaMismatch(f"rows with another number of columns than {relation.name}")
    symbolic = symbolic_lanes(relation.schema)
    service.staged.add(request.key, [RowBlock(block, symbolic) for block in blocks])


@DATA_HANDLERS.handles(requests.ShardRequest)
def shard(service: DataService, request: requests.ShardRequest, blocks: Blocks) -> Answer[None]:
    """Send this rank's rows of an output or relation.

    A relation that no query has arranged has no rows to send: arranging it here would do so on one rank alone.
    """
    if not service.is_arranged(request.name):
        schema = service.find_input(request.name).schema
        return Answer(None, [RowBlock(no_updates(schema.width, 1), symbolic_lanes(schema))])
    schema, installed = service.arranged(request.name)
    keys = None
    if blocks:
        if request.keys != installed.schema.names[: len(request.keys)]:
            raise UndefinedName(f"{request.name} is not sorted by {', '.join(request.keys)}")
        keys = wanted_keys(blocks[0].data)
    since = service.holds.find(request.hold).handle.since if request.hold is not None else None
    return Answer(None, [shard_block(service.db, installed, schema, request.as_of, keys, since)])


@DATA_HANDLERS.handles(requests.UpdatesRequest)
def updates(service: DataService, request: requests.UpdatesRequest, blocks: Blocks) -> Answer[None]:
    """Send this rank's updates of an output or relation at times in [start, end)."""
    schema, _ = service.arranged(request.name)
    held = between(service.holds.find(request.hold), schema, request.start, request.end)
    return Answer(None, [RowBlock(held, symbolic_lanes(schema))])


# Commands


@DATA_COMMANDS.handles(PublishCommand)
def publish(service: DataService, command: PublishCommand, blocks: Blocks) -> int:
    """Insert staged rows at the open epoch."""
    relation = service.find_input(command.name)
    if command.replacing:
        service.complete(relation.base().dataflow)
    now, rows = constant(service.db.time.elements[0]), 0
    for key in command.keys:
        for block, _ in service.staged.take(key):
            if command.replacing:
                relation.replace_lanes(block.data)
            else:
                relation.take_lanes(Updates(block.data, now, block.diffs))
            rows += len(block)
    service.published_prefix = command.prefix
    return rows


@DATA_COMMANDS.handles(UnstageCommand)
def unstage(service: DataService, command: UnstageCommand, blocks: Blocks) -> None:
    """Drop staged rows by the prefix of their keys; may be repeated."""
    if command.final:
        service.staged.settle(command.prefix)
    else:
        service.staged.drop(command.prefix)


@DATA_COMMANDS.handles(PlacementCommand)
def placement(service: DataService, command: PlacementCommand, blocks: Blocks) -> tuple[str, ...] | None:
    """Return the columns that are hashed to choose the rank of a row; none if one rank has all rows."""
    return tuple(service.arranged(command.name)[1].placed) if service.is_arranged(command.name) else None


@DATA_COMMANDS.handles(HoldCommand)
def hold(service: DataService, command: HoldCommand, blocks: Blocks) -> int:
    """Keep history for a reader."""
    if command.name not in service.outputs:
        service.find_input(command.name).base()  # on all ranks at this point
    service.settle()
    installed = service.arranged(command.name)[1]
    since = service.holds.put(command.reader, installed, command.time)
    if command.lasting:  # the relations that the answer is made of are kept on disk as well, to compute it again
        service.db.set_reader(command.reader, since, installed.relations)
    return since


@DATA_COMMANDS.handles(ReleaseHoldCommand)
def release_hold(service: DataService, command: ReleaseHoldCommand, blocks: Blocks) -> None:
    """End a hold; may be repeated."""
    service.holds.release(command.reader)
    if command.reader in service.db.readers:
        service.db.drop_reader(command.reader)


@DATA_COMMANDS.handles(CountUpdatesCommand)
def count_updates(
    service: DataService, command: CountUpdatesCommand, blocks: Blocks
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Count the updates at the first times of an interval."""
    times, counts = counts_between(service.holds.find(command.reader), command.start, command.end)
    return tuple(times[: command.limit].tolist()), tuple(counts[: command.limit].tolist())
