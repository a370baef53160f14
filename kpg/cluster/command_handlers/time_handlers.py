"""Handlers of commands about time: the clock, the log of the open epoch, and the work before the clock."""

from __future__ import annotations

from kpg.algebra.frontier import Frontier
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.cluster.rank_commands.command_kinds import FrontierSpec
from kpg.cluster.rank_commands.time_commands import (
    AdvanceCommand,
    AdvanceResult,
    LogCommand,
    MarkCommand,
    SettleCommand,
    TakeBackCommand,
    TimeCommand,
    UnlogCommand,
)
from kpg.cluster.rank_durability import RankDurable
from kpg.cluster.rank_generation import HANDLERS, Blocks, RankGeneration
from kpg.cluster.request_frames import Answer
from kpg.errors import ResourceError
from kpg.protocol.error_messages import failure_of
from kpg.protocol.parts import FailureSpec
from kpg.storage.record import Origin


@HANDLERS.handles(AdvanceCommand)
def advance(rank: RankGeneration, command: AdvanceCommand, blocks: Blocks) -> Answer[AdvanceResult]:
    """Move the clock and complete all work before it."""
    db = rank.db
    for name in command.dirty:  # on all ranks in the same order, whichever of them has rows
        rank.find_input(name).prepare()
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
    reports = [report for name in command.following if (report := rank.report(name)) is not None]
    changed, failures = tuple([one.name for one in reports]), tuple([one.failure for one in reports])
    result = AdvanceResult(changed, log_bytes, failures, exceeded_limit(db))
    return Answer(result, [one.changes for one in reports])


def exceeded_limit(db: EmbeddedDatabase) -> FailureSpec | None:
    """Return the memory limit that the db exceeds, if it does."""
    try:
        db.memory.check()
    except ResourceError as error:
        return failure_of(error)
    return None


@HANDLERS.handles(LogCommand)
def log(rank: RankGeneration, command: LogCommand, blocks: Blocks) -> None:
    """Write the rows of the open epoch to the log; forcing it to disk goes on in the background."""
    assert rank.db.durable is not None
    origins = tuple(Origin(*origin) for origin in command.origins)
    rank.db.durable.write(rank.db, Frontier(command.to), origins)


@HANDLERS.handles(UnlogCommand)
def unlog(rank: RankGeneration, command: UnlogCommand, blocks: Blocks) -> None:
    """Remove what was logged for the open epoch."""
    assert isinstance(rank.db.durable, RankDurable)
    rank.db.durable.unwrite(rank.db)


@HANDLERS.handles(MarkCommand)
def mark(rank: RankGeneration, command: MarkCommand, blocks: Blocks) -> None:
    """Mark the rows of the open epoch."""
    rank.mark = rank.db.pending.mark(rank.db.time)


@HANDLERS.handles(TakeBackCommand)
def take_back(rank: RankGeneration, command: TakeBackCommand, blocks: Blocks) -> None:
    """Remove the rows that were inserted since the last advance, or since the mark."""
    mark, rank.mark = rank.mark, None
    if command.marked:
        if mark is not None:
            rank.db.pending.restore(mark, rank.db.time)
        return
    rank.data_service.end_publication(committed=False)
    rank.db.pending.discard()


@HANDLERS.handles(SettleCommand)
def settle(rank: RankGeneration, command: SettleCommand, blocks: Blocks) -> None:
    """Complete all work before the clock."""
    rank.settle()


@HANDLERS.handles(TimeCommand)
def open_time(rank: RankGeneration, command: TimeCommand, blocks: Blocks) -> FrontierSpec:
    """Return the open time."""
    return rank.db.time.elements
