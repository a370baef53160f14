"""Commands about the life of a generation of ranks. The rank itself performs most of them, in kpg/cluster/rank.py."""

from __future__ import annotations

from dataclasses import field

from kpg.cluster.rank_commands.command_kinds import COMMANDS, Command, FrontierSpec, LifecycleCommand
from kpg.config import Config
from kpg.protocol.definitions import message, part
from kpg.storage.transaction_log import Durability


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
    """The state in which a rank begins a generation: the open time, and the relations that it has on disk.

    `since` has the time from which the rank has recovered the history of each of them.
    """

    time: FrontierSpec
    stored: tuple[str, ...]
    since: dict[str, FrontierSpec] = field(default_factory=dict)


@message("meet", COMMANDS)
class MeetCommand(LifecycleCommand[Met]):
    """Begin a generation: connect to all peers and recover."""

    generation: int
    peers: tuple[tuple[str, int], ...]  # the address of each rank
    config: Config
    upto: FrontierSpec | None = None  # recover updates before this frontier …
    checkpoint: FrontierSpec | None = None  # … from the checkpoint at this one
    sealed: int | None = None  # the last epoch that all answers had completed, if they lagged


@message("since", COMMANDS)
class ShareSinceCommand(Command[None]):
    """Begin the history of recovered relations where all ranks have it: each has compacted its own rows."""

    since: dict[str, FrontierSpec]


@message("stop", COMMANDS)
class StopCommand(LifecycleCommand[None]):
    """End the rank."""
