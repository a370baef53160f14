"""Commands about storage: checkpoints, the batches that writers have applied, and named readers."""

from __future__ import annotations

from kpg.cluster.rank_commands.command_kinds import COMMANDS, Command, FrontierSpec, OriginPair, TimeSpec
from kpg.protocol.definitions import message
from kpg.protocol.strict_decoder import Int64, TrustedJson


@message("checkpoint", COMMANDS)
class BeginCheckpointCommand(Command[None]):
    """Begin to write a checkpoint."""

    keep: FrontierSpec  # of the last checkpoint that all ranks have: it stays until all have a newer one


@message("end_checkpoint", COMMANDS)
class EndCheckpointCommand(Command[int | None]):
    """Return the number of new files of the last checkpoint; None if it is still being written. Raise if it failed."""

    wait: bool  # for the checkpoint


@message("applied", COMMANDS)
class IsAppliedCommand(Command[bool]):
    """Return whether a writer's batch was applied."""

    origin: OriginPair


@message("writers", COMMANDS)
class LatestBatchesCommand(Command[dict[str, Int64]]):
    """Return the latest batch of each writer with a name that begins with `prefix`."""

    prefix: str


@message("declare", COMMANDS)
class DeclareCommand(Command[None]):
    """Keep a value in the directory, by name; may be repeated."""

    name: str
    value: TrustedJson


@message("undeclare", COMMANDS)
class UndeclareCommand(Command[None]):
    """Remove a value from the directory; may be repeated."""

    name: str


@message("declarations", COMMANDS)
class DeclarationsCommand(Command[dict[str, TrustedJson]]):
    """Return the values that the directory keeps by name."""


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
