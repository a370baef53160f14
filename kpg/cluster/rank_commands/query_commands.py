"""Commands about queries: install and release outputs, arrangements and probes, and read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kpg.api.query_limits import QueryLimits
from kpg.api.usage_groups import GroupLimits
from kpg.cluster.rank_commands.command_kinds import COMMANDS, Command, FrontierSpec, StructuralCommand, TimeSpec
from kpg.protocol.definitions import message
from kpg.protocol.parts import FailureSpec
from kpg.protocol.strict_decoder import TrustedJson


@dataclass(frozen=True, slots=True)
class NumberedGroup:
    """A session or tenant whose queries are limited together, on each rank."""

    number: int
    kind: str
    limits: GroupLimits


@dataclass(frozen=True, slots=True)
class AdmittedLimits:
    """The limits of a query on each rank."""

    query: QueryLimits
    groups: tuple[NumberedGroup, ...] = ()  # that its use counts for
    tenants: int = 1  # that share the query, and add their limits
    asking: int = 0  # of these tenants, those with new arguments at `asked_at`
    asked_at: int = -1  # an epoch


@message("output", COMMANDS)
class InstallOutputCommand(StructuralCommand):
    """Install a plan as an output."""

    name: str
    plan: TrustedJson
    keep: bool
    limits: AdmittedLimits | None = None


@message("build_output", COMMANDS)
class BuildOutputCommand(Command[bool]):
    """Begin to install a plan as an output, in parts; the result is whether it is installed already."""

    number: int  # of the build
    name: str
    plan: TrustedJson
    keep: bool
    limits: AdmittedLimits | None = None


@message("build_part", COMMANDS)
class BuildPartCommand(Command[bool]):
    """Build the next part of an output; the result is whether it is installed now.

    A rank of a later generation does not know the build, and does nothing.
    """

    number: int


@message("end_build", COMMANDS)
class EndBuildCommand(Command[None]):
    """Give up an output that is being built; may be repeated."""

    number: int


@message("arrangement", COMMANDS)
class InstallArrangementCommand(StructuralCommand):
    """Install a plan as an arrangement by `keys`, or share the one that input `of` has.

    If `in_place`, rows may stay on the rank that computes them.
    """

    number: int
    name: str
    keys: tuple[str, ...]
    of: str | None
    plan: TrustedJson
    limits: AdmittedLimits | None = None
    in_place: bool = False


@message("probe", COMMANDS)
class InstallProbeCommand(StructuralCommand):
    """Install a plan as a probe."""

    number: int
    plan: TrustedJson


@message("undo_install", COMMANDS)
class UndoInstallCommand(Command[int]):
    """Release what a command was to install, where it did; the result is the id of the next dataflow."""

    output: str | None = None
    arrangement: int | None = None
    probe: int | None = None
    build: int | None = None


@message("skip_dataflows", COMMANDS)
class SkipDataflowsCommand(Command[None]):
    """Give the next dataflow this id, which no dataflow of any rank has had: equal ids must mean the same."""

    next_id: int


@message("release_output", COMMANDS)
class ReleaseOutputCommand(Command[None]):
    """Release an output."""

    name: str


@message("release_arrangement", COMMANDS)
class ReleaseArrangementCommand(StructuralCommand):
    """Release an arrangement. Plans of later commands may still name it, so a new generation repeats this as well."""

    number: int


@message("release_probe", COMMANDS)
class ReleaseProbeCommand(Command[None]):
    """Release a probe."""

    number: int


@message("changes", COMMANDS)
class TakeChangesCommand(Command[FailureSpec | None]):
    """Send the unread changes of an output, as a block, and later ones with reports.

    The result is why it has no value now, if so. With `hold`, changes are sent only from `begin_changes` on.
    """

    name: str
    hold: bool = False


@message("begin_changes", COMMANDS)
class BeginChangesCommand(Command[bool]):
    """Drop the held changes of an output through an epoch that all ranks have completed, and report later ones.

    The result is False if this rank cannot tell them apart yet.
    """

    name: str
    after: int


@message("discard", COMMANDS)
class DiscardChangesCommand(Command[tuple[FailureSpec | None, ...]]):
    """Drop unread changes of outputs: the coordinator has them from the generation before, or reads rows instead.

    Later ones are sent with reports. The result is, for each output, why it has no value now.
    """

    names: tuple[str, ...]
    through: tuple[int, ...] | None = None  # for each, the epoch through which the coordinator has the changes


@message("snapshot", COMMANDS)
class SnapshotCommand(Command[None]):
    """Send the rows of an output as of a time, as a block."""

    name: str
    as_of: TimeSpec | None = None
    failing: bool = False  # send them also if the answer fails; as of the last complete time


@message("first_rows", COMMANDS)
class FirstRowsCommand(Command[str]):
    """Send the first `size` rows of an output as of a time, as a block.

    The result is the number of all rows, as text: it may leave 64 bits.
    """

    name: str
    size: int
    as_of: TimeSpec | None = None
    failing: bool = False  # send them also if the answer fails


@message("open_read", COMMANDS)
class OpenReadCommand(Command[str]):
    """Begin to read an output as of a time, in parts. The result is the number of all rows, as `first_rows` has it."""

    number: int  # of the read
    name: str
    as_of: TimeSpec | None = None
    failing: bool = False


@message("read_part", COMMANDS)
class ReadPartCommand(Command[bool]):
    """Send the next rows of a read, at least `size` of them if there are as many, as a block.

    The result is whether there may be more. A rank of a later generation does not know the read, and sends nothing.
    """

    number: int
    size: int


@message("close_read", COMMANDS)
class CloseReadCommand(Command[None]):
    """End a read in parts; may be repeated."""

    number: int


@message("lookup", COMMANDS)
class LookupCommand(Command[None]):
    """Send the rows of an arrangement with the keys of the block, as of a time."""

    number: int
    as_of: TimeSpec | None = None


@message("indexed_rows", COMMANDS)
class IndexedRowsCommand(Command[Literal["no index", "all", "some"]]):
    """Send the rows of an input or output with the values of the block in the columns `keys`, from an index by them.

    Without such an index, there is no block. With a size, at least as many rows are sent if there are as many; `some`
    means that the read goes on in parts, under its number.
    """

    of: Literal["input", "output"]
    name: str
    keys: tuple[str, ...]
    as_of: TimeSpec | None = None
    size: int | None = None
    read: int = -1


@message("scan", COMMANDS)
class ScanCommand(Command[None]):
    """Send all rows of an arrangement as of a time."""

    number: int
    as_of: TimeSpec | None = None


@message("output_frontier", COMMANDS)
class OutputFrontierCommand(Command[FrontierSpec]):
    """Return the frontier of an output."""

    name: str


@message("probe_frontier", COMMANDS)
class ProbeFrontierCommand(Command[FrontierSpec]):
    """Return the frontier of a probe."""

    number: int


@message("keep_times", COMMANDS)
class KeepTimesCommand(Command[None]):
    """Let the first changes of an output keep their times, however many they are."""

    name: str


@message("change_limits", COMMANDS)
class ChangeLimitsCommand(Command[None]):
    """Let other limits hold for an output: other tenants share it, or it replaces one that failed."""

    name: str
    limits: AdmittedLimits


@message("add_owner", COMMANDS)
class AddOwnerCommand(Command[None]):
    """Let an output be computed in the share of a session or tenant, too."""

    name: str
    group: NumberedGroup


@message("end_group", COMMANDS)
class EndGroupCommand(Command[None]):
    """Forget what the queries of a session used: it has ended, with all of them."""

    number: int


@message("rebuild_output", COMMANDS)
class RebuildOutputCommand(Command[bool]):
    """Replace the dataflow of an output by a new one that begins with the current rows: it lags too far.

    The result is whether this is possible, which it is on all ranks or on none.
    """

    name: str


@message("fail_output", COMMANDS)
class FailOutputCommand(Command[None]):
    """Stop an output with an error."""

    name: str
    failure: FailureSpec
