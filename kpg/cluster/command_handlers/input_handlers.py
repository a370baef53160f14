"""Handlers of commands about inputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from kpg.api.embedded_installer import arrangement_source
from kpg.cluster.rank_commands.input_commands import (
    ArrangeInputCommand,
    BaseColumnsCommand,
    BaseSpec,
    ChangeRowsCommand,
    CheckUnreadCommand,
    CloseInputCommand,
    CreateInputCommand,
    DropInputCommand,
    DropStoredCommand,
    DropTemporaryCommand,
    InsertCommand,
    InsertOnlyCommand,
    MakeRowsCommand,
    PresentRowsCommand,
    RowsCommand,
    SizeCommand,
)
from kpg.cluster.rank_generation import HANDLERS, Blocks, RankGeneration
from kpg.cluster.request_frames import Answer, RowBlock, failure_on_worker, symbolic_lanes
from kpg.columns.updates import spread
from kpg.errors import KpgError
from kpg.plan.plan_values import function_of_name, read_schema

TEMPORARY_PREFIX = "temporary "  # of the declaration that names a temporary input; part of the disk format


@HANDLERS.handles(CreateInputCommand)
def create_input(rank: RankGeneration, command: CreateInputCommand, blocks: Blocks) -> None:
    """Create an input. A temporary one is on disk too: so a new generation has its rows."""
    note = TEMPORARY_PREFIX + command.name
    if not command.keep_on_disk and note not in rank.db.declarations:
        rank.db.declare(note, True)
    source = rank.db.input(command.name, read_schema(command.schema), key=command.key, keep=command.keep)
    source.is_log = command.is_log


@contextmanager
def keeping_refusal(rank: RankGeneration, command: RowsCommand) -> Iterator[None]:
    """Keep the error of rows that this rank refuses until the coordinator asks whether it has accepted all."""
    try:
        yield
    except KpgError as error:
        rank.refusals.setdefault(command.name, failure_on_worker(error))


@HANDLERS.handles(InsertCommand)
def insert(rank: RankGeneration, command: InsertCommand, blocks: Blocks) -> None:
    """Insert rows."""
    relation = rank.find_input(command.name)
    # This rank alone has the command: arranging the relation now would wait for the others forever.
    assert relation.is_arranged or not command.replacing, f"{command.name} is not arranged on all ranks"
    if command.replacing:
        rank.complete(relation.base().dataflow)
    with keeping_refusal(rank, command), rank.db.memory.unchecked() if command.admitted else nullcontext():
        for block in blocks:
            if command.replacing:
                relation.replace_lanes(block.data)
            else:
                relation.take_lanes(block)


@HANDLERS.handles(ChangeRowsCommand)
def change_rows(rank: RankGeneration, command: ChangeRowsCommand, blocks: Blocks) -> None:
    """Apply changes to rows that this rank owns."""
    relation = rank.find_input(command.name)
    assert relation.is_arranged, f"{command.name} is not arranged on all ranks"
    rank.complete(relation.base().dataflow)
    with keeping_refusal(rank, command), rank.db.memory.unchecked() if command.admitted else nullcontext():
        for block in blocks:
            diffs = spread(block.diffs, len(block))[0]
            relation.change_lanes(block.data, diffs, command.columns, command.order)


@HANDLERS.handles(MakeRowsCommand)
def make_rows(rank: RankGeneration, command: MakeRowsCommand, blocks: Blocks) -> None:
    """Insert or remove the rows that a function makes for this rank. An error is kept until the advance."""
    relation = rank.find_input(command.name)
    change = relation.insert_made if command.diff > 0 else relation.remove_made
    try:
        change(function_of_name(command.function), **command.options)
    except Exception as error:
        rank.refusals.setdefault(command.name, failure_on_worker(error))


@HANDLERS.handles(InsertOnlyCommand)
def set_insert_only(rank: RankGeneration, command: InsertOnlyCommand, blocks: Blocks) -> None:
    """Refuse removals from now on."""
    rank.find_input(command.name).set_insert_only()


@HANDLERS.handles(ArrangeInputCommand)
def arrange_input(rank: RankGeneration, command: ArrangeInputCommand, blocks: Blocks) -> None:
    """Arrange an input, as all ranks do at this point."""
    rank.find_input(command.name).base(command.keys)


@HANDLERS.handles(BaseColumnsCommand)
def base_columns(rank: RankGeneration, command: BaseColumnsCommand, blocks: Blocks) -> BaseSpec | None:
    """Return how an input is arranged."""
    relation = rank.find_input(command.name)
    return BaseSpec(relation.base().keys, tuple(relation.base().placed)) if relation.is_arranged else None


@HANDLERS.handles(PresentRowsCommand)
def present_rows(rank: RankGeneration, command: PresentRowsCommand, blocks: Blocks) -> Answer[None]:
    """Send the rows of an input that have the values of the block."""
    relation = rank.find_input(command.name)
    rank.complete(relation.base().dataflow)
    rows = relation.present(command.columns, blocks[0].data)
    return Answer(None, [RowBlock(rows, symbolic_lanes(relation.schema))])


@HANDLERS.handles(SizeCommand)
def size(rank: RankGeneration, command: SizeCommand, blocks: Blocks) -> int:
    """Return an estimate of the row count of an input, output or arrangement on this rank."""
    return arrangement_source(rank.find_source(command.of, command.name)).size


@HANDLERS.handles(CloseInputCommand)
def close_input(rank: RankGeneration, command: CloseInputCommand, blocks: Blocks) -> None:
    """Close an input."""
    rank.find_input(command.name).close()
    rank.settle()


@HANDLERS.handles(DropInputCommand)
def drop_input(rank: RankGeneration, command: DropInputCommand, blocks: Blocks) -> None:
    """Drop an input."""
    rank.find_input(command.name).drop()
    rank.refusals.pop(command.name, None)
    rank.db.undeclare(TEMPORARY_PREFIX + command.name)


@HANDLERS.handles(DropTemporaryCommand)
def drop_temporary(rank: RankGeneration, command: DropTemporaryCommand, blocks: Blocks) -> tuple[str, ...]:
    """Drop temporary relations of an earlier process."""
    notes = [name for name in rank.db.declarations if name.startswith(TEMPORARY_PREFIX)]
    dropped = tuple([note.removeprefix(TEMPORARY_PREFIX) for note in notes])
    drop_stored(rank, DropStoredCommand(dropped), [])
    for note in notes:
        rank.db.undeclare(note)
    return dropped


@HANDLERS.handles(CheckUnreadCommand)
def check_unread(rank: RankGeneration, command: CheckUnreadCommand, blocks: Blocks) -> None:
    """Fail if a query reads an input."""
    rank.find_input(command.name).require_unread()


@HANDLERS.handles(DropStoredCommand)
def drop_stored(rank: RankGeneration, command: DropStoredCommand, blocks: Blocks) -> None:
    """Drop relations from this rank's part of the directory, where they are there."""
    assert rank.db.durable is not None
    storage = rank.db.durable.storage
    for name in command.names:
        if name in storage.relations:
            storage.drop(name)
