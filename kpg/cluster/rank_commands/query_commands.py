"""Commands about queries: install and release outputs, arrangements and probes, and read them."""

from __future__ import annotations

from kpg.cluster.rank_commands.command_kinds import COMMANDS, Command, FrontierSpec, StructuralCommand, TimeSpec
from kpg.protocol.definitions import message
from kpg.protocol.parts import FailureSpec
from kpg.protocol.strict_decoder import TrustedJson


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


@message("changes", COMMANDS)
class TakeChangesCommand(Command[FailureSpec | None]):
    """Send the unread changes of an output, as a block; the result is why it has no value now, if it has none."""

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
