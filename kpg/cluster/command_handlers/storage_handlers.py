"""Handlers of commands about storage: checkpoints, batches that writers have applied, and named readers."""

from __future__ import annotations

from typing import Any

from kpg.algebra.frontier import Frontier
from kpg.cluster.rank_commands.lifecycle_commands import ShareSinceCommand
from kpg.cluster.rank_commands.storage_commands import (
    BeginCheckpointCommand,
    DeclarationsCommand,
    DeclareCommand,
    DropReaderCommand,
    EndCheckpointCommand,
    IsAppliedCommand,
    LatestBatchesCommand,
    ReadersCommand,
    SetReaderCommand,
    UndeclareCommand,
)
from kpg.cluster.rank_durability import RankDurable
from kpg.cluster.rank_generation import HANDLERS, Blocks, RankGeneration
from kpg.storage.record import Origin


@HANDLERS.handles(BeginCheckpointCommand)
def begin_checkpoint(rank: RankGeneration, command: BeginCheckpointCommand, blocks: Blocks) -> None:
    """Begin to write a checkpoint."""
    rank.settle()
    rank.complete_inputs()
    assert isinstance(rank.db.durable, RankDurable)
    rank.db.durable.begin_common_checkpoint(rank.db, Frontier(command.keep))


@HANDLERS.handles(EndCheckpointCommand)
def end_checkpoint(rank: RankGeneration, command: EndCheckpointCommand, blocks: Blocks) -> int | None:
    """Return the outcome of the last checkpoint, if it has ended."""
    assert isinstance(rank.db.durable, RankDurable)
    return rank.db.durable.end_common_checkpoint(command.wait)


@HANDLERS.handles(ShareSinceCommand)
def share_since(rank: RankGeneration, command: ShareSinceCommand, blocks: Blocks) -> None:
    """Begin the history of recovered relations where all ranks have it."""
    rank.db.share_since({name: Frontier(since) for name, since in command.since.items()})


@HANDLERS.handles(IsAppliedCommand)
def is_applied(rank: RankGeneration, command: IsAppliedCommand, blocks: Blocks) -> bool:
    """Return whether a writer's batch was applied."""
    return Origin(*command.origin) in rank.db.applied


@HANDLERS.handles(LatestBatchesCommand)
def latest_batches(rank: RankGeneration, command: LatestBatchesCommand, blocks: Blocks) -> dict[str, int]:
    """Return the latest batch of each writer that has a prefix in its name."""
    writers = [writer for writer in rank.db.applied.to_json() if writer.startswith(command.prefix)]
    return {writer: rank.db.applied.latest(writer) or 0 for writer in writers}


@HANDLERS.handles(DeclareCommand)
def declare(rank: RankGeneration, command: DeclareCommand, blocks: Blocks) -> None:
    """Keep a value in the directory."""
    rank.db.declare(command.name, command.value)


@HANDLERS.handles(UndeclareCommand)
def undeclare(rank: RankGeneration, command: UndeclareCommand, blocks: Blocks) -> None:
    """Remove a value from the directory."""
    rank.db.undeclare(command.name)


@HANDLERS.handles(DeclarationsCommand)
def declarations(rank: RankGeneration, command: DeclarationsCommand, blocks: Blocks) -> dict[str, Any]:
    """Return the values that the directory keeps."""
    return dict(rank.db.declarations)


@HANDLERS.handles(SetReaderCommand)
def set_reader(rank: RankGeneration, command: SetReaderCommand, blocks: Blocks) -> None:
    """Keep history for a named reader."""
    rank.db.set_reader(command.name, command.time, command.of)


@HANDLERS.handles(DropReaderCommand)
def drop_reader(rank: RankGeneration, command: DropReaderCommand, blocks: Blocks) -> None:
    """End what a named reader keeps; may be repeated, since a rank may have done so before another was lost."""
    if command.name in rank.db.readers:
        rank.db.drop_reader(command.name)


@HANDLERS.handles(ReadersCommand)
def readers(rank: RankGeneration, command: ReadersCommand, blocks: Blocks) -> dict[str, Any]:
    """Return the named readers."""
    return {name: reader.to_json() for name, reader in rank.db.readers.items()}
