"""Handlers of commands that install, release and read queries."""

from __future__ import annotations

from functools import partial
from typing import Literal

from kpg.api.embedded_arrangement import wanted_keys
from kpg.api.embedded_installer import arrangement_source
from kpg.api.usage_guard import LimitedUsage
from kpg.cluster.rank_builds import RankBuild
from kpg.cluster.rank_commands.command_kinds import FrontierSpec
from kpg.cluster.rank_commands.query_commands import (
    AddOwnerCommand,
    BeginChangesCommand,
    BuildOutputCommand,
    BuildPartCommand,
    ChangeLimitsCommand,
    CloseReadCommand,
    DiscardChangesCommand,
    EndBuildCommand,
    EndGroupCommand,
    FailOutputCommand,
    FirstRowsCommand,
    IndexedRowsCommand,
    InstallArrangementCommand,
    InstallOutputCommand,
    InstallProbeCommand,
    KeepTimesCommand,
    LookupCommand,
    OpenReadCommand,
    OutputFrontierCommand,
    ProbeFrontierCommand,
    ReadPartCommand,
    RebuildOutputCommand,
    ReleaseArrangementCommand,
    ReleaseOutputCommand,
    ReleaseProbeCommand,
    ScanCommand,
    SkipDataflowsCommand,
    SnapshotCommand,
    TakeChangesCommand,
    UndoInstallCommand,
)
from kpg.cluster.rank_generation import HANDLERS, Blocks, RankGeneration, rank_limits
from kpg.cluster.rank_reports import index_key
from kpg.cluster.request_frames import Answer
from kpg.cluster.shard_blocks import ShardRead, first_rows_block, shard_block
from kpg.plan import plan_document
from kpg.protocol.error_messages import error_of
from kpg.protocol.parts import FailureSpec


@HANDLERS.handles(InstallOutputCommand)
def install_output(rank: RankGeneration, command: InstallOutputCommand, blocks: Blocks) -> None:
    """Install an output."""
    node = plan_document.read(command.plan, rank)
    with rank.limited(command.limits):
        output = rank.outputs[command.name] = rank.db.installer.output(node, command.name, command.keep)
    if command.limits is not None:
        output.share_limits(command.limits.tenants, command.limits.asking, command.limits.asked_at)
    rank.reports.add_output(output)


@HANDLERS.handles(BuildOutputCommand)
def build_output(rank: RankGeneration, command: BuildOutputCommand, blocks: Blocks) -> bool:
    """Begin to install an output, in parts."""
    install = InstallOutputCommand(command.name, command.plan, command.keep, command.limits)
    rank.builds[command.number] = RankBuild(partial(install_output, rank, install, blocks))
    return go_on(rank, command.number)


@HANDLERS.handles(BuildPartCommand)
def build_part(rank: RankGeneration, command: BuildPartCommand, blocks: Blocks) -> bool:
    """Build the next part of an output."""
    return command.number in rank.builds and go_on(rank, command.number)


def go_on(rank: RankGeneration, number: int) -> bool:
    """Build a part; forget the build if it has ended or failed."""
    is_done = True
    try:
        is_done = rank.builds[number].go_on()
    finally:
        if is_done:
            del rank.builds[number]
    return is_done


@HANDLERS.handles(EndBuildCommand)
def end_build(rank: RankGeneration, command: EndBuildCommand, blocks: Blocks) -> None:
    """Give up an output that is being built."""
    if (build := rank.builds.pop(command.number, None)) is not None:
        build.end()


@HANDLERS.handles(InstallArrangementCommand)
def install_arrangement(rank: RankGeneration, command: InstallArrangementCommand, blocks: Blocks) -> None:
    """Install an arrangement, or share that of an input."""
    node = plan_document.read(command.plan, rank)
    relation = rank.db.inputs.get(command.of) if command.of is not None else None
    with rank.limited(command.limits):
        rank.arrangements[command.number] = (
            rank.db.installer.arrangement(node, command.name, command.keys, command.in_place)
            if relation is None
            else relation.arrange(*command.keys)
        )
    rank.reports.add(index_key(command.number), rank.arrangements[command.number].installed.dataflow.id)


@HANDLERS.handles(InstallProbeCommand)
def install_probe(rank: RankGeneration, command: InstallProbeCommand, blocks: Blocks) -> None:
    """Install a probe."""
    rank.probes[command.number] = rank.db.installer.probe(plan_document.read(command.plan, rank))


@HANDLERS.handles(ReleaseOutputCommand)
def release_output(rank: RankGeneration, command: ReleaseOutputCommand, blocks: Blocks) -> None:
    """Release an output; may be repeated."""
    rank.reports.remove_output(command.name)
    if (output := rank.outputs.pop(command.name, None)) is not None:
        output.release()


@HANDLERS.handles(ReleaseArrangementCommand)
def release_arrangement(rank: RankGeneration, command: ReleaseArrangementCommand, blocks: Blocks) -> None:
    """Release an arrangement; may be repeated."""
    rank.reports.forget(index_key(command.number))
    if (arrangement := rank.arrangements.pop(command.number, None)) is not None:
        arrangement.release()


@HANDLERS.handles(ReleaseProbeCommand)
def release_probe(rank: RankGeneration, command: ReleaseProbeCommand, blocks: Blocks) -> None:
    """Release a probe; may be repeated."""
    if (probe := rank.probes.pop(command.number, None)) is not None:
        probe.release()


@HANDLERS.handles(UndoInstallCommand)
def undo_install(rank: RankGeneration, command: UndoInstallCommand, blocks: Blocks) -> int:
    """Release what a command was to install, which some ranks have refused."""
    if command.build is not None:
        end_build(rank, EndBuildCommand(command.build), blocks)
    if command.output is not None:
        release_output(rank, ReleaseOutputCommand(command.output), blocks)
    if command.arrangement is not None:
        release_arrangement(rank, ReleaseArrangementCommand(command.arrangement), blocks)
    if command.probe is not None:
        release_probe(rank, ReleaseProbeCommand(command.probe), blocks)
    return rank.db.worker.next_id


@HANDLERS.handles(SkipDataflowsCommand)
def skip_dataflows(rank: RankGeneration, command: SkipDataflowsCommand, blocks: Blocks) -> None:
    """Use the ids of dataflows that other ranks have used."""
    rank.db.worker.skip_dataflows(command.next_id)


@HANDLERS.handles(TakeChangesCommand)
def take_changes(rank: RankGeneration, command: TakeChangesCommand, blocks: Blocks) -> Answer[FailureSpec | None]:
    """Send the unread changes of an output, and why it has no value now, if so."""
    rank.settle()
    rank.reports.follow(command.name, command.hold)
    return Answer(rank.reports.failure(command.name), [rank.reports.changes_block(command.name)])


@HANDLERS.handles(BeginChangesCommand)
def begin_changes(rank: RankGeneration, command: BeginChangesCommand, blocks: Blocks) -> bool:
    """Report the changes of an output after an epoch."""
    return rank.reports.begin(command.name, command.after)


@HANDLERS.handles(DiscardChangesCommand)
def discard_changes(
    rank: RankGeneration, command: DiscardChangesCommand, blocks: Blocks
) -> tuple[FailureSpec | None, ...]:
    """Drop changes that the coordinator has from before, or does not need."""
    rank.settle()
    for name, through in zip(command.names, command.through or (None,) * len(command.names), strict=True):
        rank.reports.skip(name, through)
    return tuple([rank.reports.failure(name) for name in command.names])


@HANDLERS.handles(SnapshotCommand)
def snapshot(rank: RankGeneration, command: SnapshotCommand, blocks: Blocks) -> Answer[None]:
    """Send the rows of an output."""
    rank.settle()
    output = rank.outputs[command.name]
    block = shard_block(rank.db, output.readable(), output.schema, command.as_of, None, failing=command.failing)
    return Answer(None, [block])


@HANDLERS.handles(FirstRowsCommand)
def first_rows(rank: RankGeneration, command: FirstRowsCommand, blocks: Blocks) -> Answer[str]:
    """Send the first rows of an output, and count all."""
    rank.settle()
    output = rank.outputs[command.name]
    installed = output.readable()
    block, total = first_rows_block(rank.db, installed, output.schema, command.as_of, command.size, command.failing)
    return Answer(str(total), [block])


@HANDLERS.handles(OpenReadCommand)
def open_read(rank: RankGeneration, command: OpenReadCommand, blocks: Blocks) -> str:
    """Begin a read in parts, and count all rows."""
    rank.settle()
    output = rank.outputs[command.name]
    read = ShardRead(rank.db, output.readable(), output.schema, command.as_of, command.failing)
    rank.reads[command.number] = read
    return str(read.total)


@HANDLERS.handles(ReadPartCommand)
def read_part(rank: RankGeneration, command: ReadPartCommand, blocks: Blocks) -> Answer[bool]:
    """Send the next part of a read."""
    read = rank.reads.get(command.number)
    if read is None:
        return Answer(False)
    block = read.next_block(command.size)
    return Answer(not read.is_done, [block])


@HANDLERS.handles(CloseReadCommand)
def close_read(rank: RankGeneration, command: CloseReadCommand, blocks: Blocks) -> None:
    """End a read in parts."""
    rank.reads.pop(command.number, None)


@HANDLERS.handles(LookupCommand)
def lookup(rank: RankGeneration, command: LookupCommand, blocks: Blocks) -> Answer[None]:
    """Send the rows of an arrangement that have the keys of the block."""
    rank.settle()
    arrangement, keys = rank.arrangements[command.number], wanted_keys(blocks[0].data)
    return Answer(None, [shard_block(rank.db, arrangement.installed, arrangement.schema, command.as_of, keys)])


@HANDLERS.handles(IndexedRowsCommand)
def indexed_rows(
    rank: RankGeneration, command: IndexedRowsCommand, blocks: Blocks
) -> Answer[Literal["no index", "all", "some"]]:
    """Send the rows of an input or output that have the keys of the block, if it has an index by these columns."""
    rank.settle()
    source = rank.find_source(command.of, command.name)
    installed = arrangement_source(source).sorted_by(command.keys)
    if installed is None:
        return Answer("no index")
    rank.complete(installed.dataflow, None if command.as_of is None else command.as_of[0])
    keys = wanted_keys(blocks[0].data)
    if command.size is None:
        return Answer("all", [shard_block(rank.db, installed, source.schema, command.as_of, keys)])
    read = ShardRead(rank.db, installed, source.schema, command.as_of, keys=keys)
    block = read.next_block(command.size)
    if read.is_done:
        return Answer("all", [block])
    rank.reads[command.read] = read
    return Answer("some", [block])


@HANDLERS.handles(ScanCommand)
def scan(rank: RankGeneration, command: ScanCommand, blocks: Blocks) -> Answer[None]:
    """Send all rows of an arrangement."""
    rank.settle()
    arrangement = rank.arrangements[command.number]
    return Answer(None, [shard_block(rank.db, arrangement.installed, arrangement.schema, command.as_of, None)])


@HANDLERS.handles(OutputFrontierCommand)
def output_frontier(rank: RankGeneration, command: OutputFrontierCommand, blocks: Blocks) -> FrontierSpec:
    """Return the frontier of an output."""
    return rank.outputs[command.name].frontier().elements


@HANDLERS.handles(ProbeFrontierCommand)
def probe_frontier(rank: RankGeneration, command: ProbeFrontierCommand, blocks: Blocks) -> FrontierSpec:
    """Return the frontier of a probe."""
    return rank.probes[command.number].frontier().elements


@HANDLERS.handles(KeepTimesCommand)
def keep_times(rank: RankGeneration, command: KeepTimesCommand, blocks: Blocks) -> None:
    """Keep the times of the first changes of an output."""
    if command.name in rank.outputs:
        rank.outputs[command.name].keep_times_apart()


@HANDLERS.handles(ChangeLimitsCommand)
def change_limits(rank: RankGeneration, command: ChangeLimitsCommand, blocks: Blocks) -> None:
    """Change the limits of an output. It may leave its groups, but join no others."""
    if command.name in rank.outputs:
        usage = rank.outputs[command.name].dataflow.usage
        if isinstance(usage, LimitedUsage):
            usage.limits = rank_limits(command.limits.query)
            usage.share(command.limits.tenants, command.limits.asking, command.limits.asked_at)
            usage.stay_in_groups({group.number for group in command.limits.groups})


@HANDLERS.handles(AddOwnerCommand)
def add_owner(rank: RankGeneration, command: AddOwnerCommand, blocks: Blocks) -> None:
    """Let an output be computed in the share of a session or tenant, too."""
    if command.name in rank.outputs:
        rank.outputs[command.name].dataflow.add_owner(rank.group(command.group).owner)


@HANDLERS.handles(EndGroupCommand)
def end_group(rank: RankGeneration, command: EndGroupCommand, blocks: Blocks) -> None:
    """Forget a group."""
    rank.groups.pop(command.number, None)


@HANDLERS.handles(RebuildOutputCommand)
def rebuild_output(rank: RankGeneration, command: RebuildOutputCommand, blocks: Blocks) -> bool:
    """Rebuild an output, as all ranks do at this point."""
    output = rank.outputs[command.name]
    is_rebuilt = output.rebuild()
    if is_rebuilt:
        rank.reports.replace_output(output)
    return is_rebuilt


@HANDLERS.handles(FailOutputCommand)
def fail_output(rank: RankGeneration, command: FailOutputCommand, blocks: Blocks) -> None:
    """Stop an output."""
    if command.name in rank.outputs:
        rank.db.worker.fail(rank.outputs[command.name].dataflow, error_of(command.failure))
