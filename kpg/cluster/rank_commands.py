"""The commands that a coordinator sends to its ranks, and their results.

Every rank gets the same commands in the same order, except rows: a rank gets only its own (`InsertCommand`). A command
is a frozen dataclass with a literal name on the wire; `Command[R]` says that each rank answers with an R. Rows travel
as blocks beside a command or its result (`kpg.cluster.request_frames`). The handlers are in
`kpg.cluster.command_handlers` and `kpg.cluster.data_service`; `docs/workers.md` lists the commands.
"""

from __future__ import annotations

from typing import Final, TypeVar

from kpg.config import Config
from kpg.protocol.definitions import MessageKinds, TypedRequest, message, part
from kpg.protocol.parts import FailureSpec
from kpg.protocol.strict_decoder import Int64, TrustedJson
from kpg.storage.transaction_log import Durability

Result = TypeVar("Result", covariant=True)
TimeSpec = tuple[Int64, ...]
FrontierSpec = tuple[TimeSpec, ...]  # the elements of a frontier
OriginPair = tuple[str, Int64]  # a writer and the number of its batch
StagingKey = tuple[str | int, ...]  # names an attempt of a task; a prefix names all attempts of a batch

COMMANDS: Final = MessageKinds["Command[object]"](python_only=True)


class Command(TypedRequest[Result]):
    """A command to every rank."""

    __slots__ = ()


class StructuralCommand(Command[None]):
    """A command that a new generation of ranks must repeat to have the same dataflows."""

    __slots__ = ()


# The life of a generation: performed by the rank itself


class LifecycleCommand(Command[Result]):
    """A command that ends the current generation; it also ends any wait for peers."""

    __slots__ = ()


@part("Recoverable")
class Recoverable:
    """The frontiers that a rank can recover from its part of the directory."""

    durable: FrontierSpec
    checkpoints: tuple[FrontierSpec, ...]


@message("prepare", COMMANDS)
class PrepareCommand(LifecycleCommand[Recoverable]):
    """Drop the current generation, open the rank's part of a directory, and report what is recoverable."""

    place: str
    durability: Durability


@part("Met")
class Met:
    """The state in which a rank begins a generation: the open time, and the relations that it has on disk."""

    time: FrontierSpec
    stored: tuple[str, ...]


@message("meet", COMMANDS)
class MeetCommand(LifecycleCommand[Met]):
    """Begin a generation: connect to all peers and recover."""

    generation: int
    peers: tuple[tuple[str, int], ...]  # the address of each rank
    config: Config
    upto: FrontierSpec | None = None  # recover updates before this frontier …
    checkpoint: FrontierSpec | None = None  # … from the checkpoint at this one


@message("stop", COMMANDS)
class StopCommand(LifecycleCommand[None]):
    """End the rank."""


# Inputs


@message("input", COMMANDS)
class CreateInputCommand(StructuralCommand):
    """Create an input."""

    name: str
    schema: TrustedJson
    key: tuple[str, ...] | None


@message("insert", COMMANDS)
class InsertCommand(Command[None]):
    """Insert the rows of the blocks at the open epoch. Sent to one rank, without waiting for a reply."""

    name: str
    replacing: bool = False  # each row replaces the row with its key


@message("make", COMMANDS)
class MakeRowsCommand(Command[int]):
    """Insert (diff 1) or remove (diff -1) the rows that `function(rank, ranks, **options)` returns on each rank.

    The result is the number of rows.
    """

    name: str
    function: str
    options: TrustedJson
    diff: int


@message("base", COMMANDS)
class ArrangeInputCommand(StructuralCommand):
    """Arrange an input, by some columns or by those that its queries need."""

    name: str
    keys: tuple[str, ...] | None


@message("close_input", COMMANDS)
class CloseInputCommand(StructuralCommand):
    """Close an input that has no pending rows on any rank."""

    name: str


@message("drop_input", COMMANDS)
class DropInputCommand(Command[None]):
    """Drop an input and its rows."""

    name: str


@message("drop_stored", COMMANDS)
class DropStoredCommand(Command[None]):
    """Drop relations that are on the disks of some ranks only; no input reads them yet. May be repeated."""

    names: tuple[str, ...]


# Time


@part("AdvanceResult")
class AdvanceResult:
    """The result of an advance. The changes of each output in `changed` are a block of the reply, in that order."""

    changed: tuple[str, ...]
    log_bytes: int
    trouble: FailureSpec | None = None  # a limit that was exceeded; the clock has moved all the same


@message("advance", COMMANDS)
class AdvanceCommand(Command[AdvanceResult]):
    """Move the clock to a frontier, complete all work before it, and send the changes of the followed outputs."""

    to: FrontierSpec
    dirty: tuple[str, ...] = ()  # the inputs that have rows on some rank
    following: tuple[str, ...] = ()  # the outputs that send their changes along
    origins: tuple[OriginPair, ...] = ()


@message("log", COMMANDS)
class LogCommand(Command[None]):
    """Write the rows of the open epoch to the log, before any rank moves its clock."""

    to: FrontierSpec
    origins: tuple[OriginPair, ...] = ()


@message("unlog", COMMANDS)
class UnlogCommand(Command[None]):
    """Remove what `LogCommand` wrote: another rank could not write its part."""


@message("take_back", COMMANDS)
class TakeBackCommand(Command[None]):
    """Remove all rows that were inserted at the open epoch."""


@message("settle", COMMANDS)
class SettleCommand(Command[None]):
    """Work until nothing before the clock is in flight on any rank."""


@message("time", COMMANDS)
class TimeCommand(Command[FrontierSpec]):
    """Return the open time."""


# Queries


@message("output", COMMANDS)
class InstallOutputCommand(StructuralCommand):
    """Install a plan as an output."""

    name: str
    plan: TrustedJson
    keep: bool


@message("arrangement", COMMANDS)
class InstallArrangementCommand(StructuralCommand):
    """Install a plan as an arrangement by `keys`, or share the one that input `of` has."""

    number: int
    name: str
    keys: tuple[str, ...]
    of: str | None
    plan: TrustedJson


@message("probe", COMMANDS)
class InstallProbeCommand(StructuralCommand):
    """Install a plan as a probe."""

    number: int
    plan: TrustedJson


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


# Reading


@message("changes", COMMANDS)
class TakeChangesCommand(Command[None]):
    """Send the unread changes of an output, as a block."""

    name: str


@message("discard", COMMANDS)
class DiscardChangesCommand(Command[None]):
    """Drop unread changes of outputs, which the coordinator has from the generation before."""

    names: tuple[str, ...]


@message("snapshot", COMMANDS)
class SnapshotCommand(Command[None]):
    """Send the rows of an output as of a time, as a block."""

    name: str
    as_of: TimeSpec | None = None


@message("lookup", COMMANDS)
class LookupCommand(Command[None]):
    """Send the rows of an arrangement with the keys of the block, as of a time."""

    number: int
    as_of: TimeSpec | None = None


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


# Storage


@message("checkpoint", COMMANDS)
class CheckpointCommand(Command[int]):
    """Write a checkpoint; the result is the number of new files."""

    keep: FrontierSpec  # of the last checkpoint that all ranks have: it stays until all have a newer one


@message("applied", COMMANDS)
class IsAppliedCommand(Command[bool]):
    """Return whether a writer's batch was applied."""

    origin: OriginPair


@message("writers", COMMANDS)
class LatestBatchesCommand(Command[dict[str, Int64]]):
    """Return the latest batch of each writer with a name that begins with `prefix`."""

    prefix: str


@message("set_reader", COMMANDS)
class SetReaderCommand(Command[None]):
    """Keep the history of some relations, or of all, from a time on, for a named reader."""

    name: str
    time: TimeSpec
    of: tuple[str, ...] | None


@message("drop_reader", COMMANDS)
class DropReaderCommand(Command[None]):
    """End what a named reader keeps."""

    name: str


@message("readers", COMMANDS)
class ReadersCommand(Command[dict[str, TrustedJson]]):
    """Return the named readers."""


# Staged rows and holds, for clients of data connections (see `kpg.cluster.data_service`)


@message("publish", COMMANDS)
class PublishCommand(Command[int]):
    """Insert staged rows into an input at the open epoch; the result is the number of rows."""

    name: str
    keys: tuple[StagingKey, ...]
    prefix: StagingKey
    replacing: bool = False


@message("unstage", COMMANDS)
class UnstageCommand(Command[None]):
    """Drop staged rows by the prefix of their keys; if `final`, later ones with that prefix as well."""

    prefix: StagingKey
    final: bool = True


@message("placement", COMMANDS)
class PlacementCommand(Command[tuple[str, ...] | None]):
    """Return the columns that are hashed to choose the rank of a row; null if that is undecided."""

    name: str


@message("hold", COMMANDS)
class HoldCommand(Command[Int64]):
    """Keep the history of an output or relation from a time on, for a reader; the result is where it begins."""

    reader: str
    name: str
    time: Int64 | None
    lasting: bool = False  # the history of its relations is kept on disk too


@message("release_hold", COMMANDS)
class ReleaseHoldCommand(Command[None]):
    """End a reader's hold."""

    reader: str


@message("count_updates", COMMANDS)
class CountUpdatesCommand(Command[tuple[tuple[Int64, ...], tuple[Int64, ...]]]):
    """Return the first `limit` times in [start, end) that have updates, and the number of updates at each."""

    reader: str
    start: Int64
    end: Int64
    limit: int


# Inspection


@part("RankFigures")
class RankFigures:
    """Figures of one rank."""

    rank: int
    steps: int
    staged_rows: int
    readers: tuple[str, ...]


@message("describe", COMMANDS)
class DescribeCommand(Command[TrustedJson]):
    """Describe the rank's db."""


@message("explain", COMMANDS)
class ExplainCommand(Command[str]):
    """Explain the rank's db, or one output."""

    name: str | None


@message("figures", COMMANDS)
class FiguresCommand(Command[RankFigures]):
    """Return figures of the rank."""


@message("call", COMMANDS)
class CallCommand(Command[TrustedJson]):
    """Call `function(db, **options)` on each rank, for measurements and tests."""

    function: str
    options: TrustedJson


# Symbols


@message("forget", COMMANDS)
class ForgetSymbolsCommand(Command[None]):
    """Forget which symbols the other ends of all connections know: symbols are about to be renumbered."""


@message("reclaim", COMMANDS)
class ReclaimSymbolsCommand(Command[int]):
    """Free the symbols that no row has; the result is their number. Follows a settle and a forget on all ranks."""
