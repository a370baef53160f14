"""Handlers of commands about time: the clock, the log of the open epoch, and the work before the clock."""

from __future__ import annotations

from kpg.algebra.frontier import Frontier
from kpg.cluster.rank_commands.command_kinds import FrontierSpec
from kpg.cluster.rank_commands.time_commands import (
    AcceptCommand,
    AdvanceCommand,
    MarkCommand,
    RankReport,
    SealCommand,
    ServeCommand,
    SettleCommand,
    TakeBackCommand,
    TimeCommand,
)
from kpg.cluster.rank_durability import RankDurable
from kpg.cluster.rank_generation import HANDLERS, Blocks, RankGeneration, TransactionMark
from kpg.cluster.rank_reports import exceeded_limit
from kpg.cluster.request_frames import Answer
from kpg.kernels.warm import use_cached_code
from kpg.protocol.parts import FailureSpec
from kpg.storage.record import Origin


@HANDLERS.handles(AdvanceCommand)
def advance(rank: RankGeneration, command: AdvanceCommand, blocks: Blocks) -> Answer[RankReport]:
    """Move the clock, and complete all work before it if the coordinator waits for that.

    The log is forced to disk in the background, until all work is done.
    """
    db, origins = rank.db, tuple(Origin(*origin) for origin in command.origins)
    if command.sealed is not None:
        rank.completion.note_sealed(command.sealed)
    if command.made and not rank.agree(not rank.refusals):
        return Answer(RankReport(refused=next(iter(rank.refusals.values()), None)))
    if command.log:
        assert isinstance(db.durable, RankDurable)
        if not db.durable.write_with_all(db, Frontier(command.to), origins, rank.work_on_inputs):
            return Answer(RankReport())  # the coordinator gets the error of the rank that could not write
    for name in command.dirty:  # on all ranks in the same order, whichever of them has rows
        rank.find_input(name).prepare()
    busy, before = bool(db.pending), db.time
    db.move_clock(Frontier(command.to))
    if command.wait:
        rank.do_all_work()
    log_bytes = 0
    if db.durable is not None:
        db.durable.wait()
        log_bytes = db.durable.storage.log_bytes
    for origin in origins:
        db.applied.add(origin)
    rank.data_service.end_publication(committed=True)
    if not command.wait:
        rank.completion.unfinished = True
        return rank.reports.take(log_bytes)
    if command.seal:
        db.seal(before)
    db.idle_merge_after_advance(busy)
    return rank.reports.take(log_bytes, exceeded_limit(db))


@HANDLERS.handles(SealCommand)
def seal(rank: RankGeneration, command: SealCommand, blocks: Blocks) -> None:
    """Note what is complete everywhere."""
    rank.completion.note_sealed(command.epoch)


@HANDLERS.handles(ServeCommand)
def serve(rank: RankGeneration, command: ServeCommand, blocks: Blocks) -> None:
    """Work in slices from now on."""
    use_cached_code()  # no request should wait while the process changes to machine code
    rank.do_all_work()
    rank.completion.serving = True


@HANDLERS.handles(MarkCommand)
def mark(rank: RankGeneration, command: MarkCommand, blocks: Blocks) -> None:
    """Mark the rows of the open epoch."""
    rank.mark = TransactionMark(rank.db.pending.mark(rank.db.time), rank.refusals.copy())


@HANDLERS.handles(TakeBackCommand)
def take_back(rank: RankGeneration, command: TakeBackCommand, blocks: Blocks) -> None:
    """Remove the rows that were inserted since the last advance, or since the mark."""
    mark, rank.mark = rank.mark, None
    if command.marked:
        if mark is not None:
            rank.db.pending.restore(mark.rows, rank.db.time)
            rank.refusals = mark.refusals
        return
    rank.refusals.clear()
    rank.data_service.end_publication(committed=False)
    rank.db.pending.discard()


@HANDLERS.handles(AcceptCommand)
def accept(rank: RankGeneration, command: AcceptCommand, blocks: Blocks) -> FailureSpec | None:
    """Return the first refusal of rows of the open epoch."""
    return next(iter(rank.refusals.values()), None)


@HANDLERS.handles(SettleCommand)
def settle(rank: RankGeneration, command: SettleCommand, blocks: Blocks) -> None:
    """Complete all work before the clock."""
    rank.settle()


@HANDLERS.handles(TimeCommand)
def open_time(rank: RankGeneration, command: TimeCommand, blocks: Blocks) -> FrontierSpec:
    """Return the open time."""
    return rank.db.time.elements
