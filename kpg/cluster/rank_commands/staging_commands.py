"""Commands about staged rows and holds, for the clients of data connections (see `kpg.cluster.data_service`)."""

from __future__ import annotations

from kpg.cluster.rank_commands.command_kinds import COMMANDS, Command, StagingKey
from kpg.protocol.definitions import message
from kpg.protocol.strict_decoder import Int64


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
