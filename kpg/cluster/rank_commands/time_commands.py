"""Commands about time: the clock, the log of the open epoch, and the work before the clock."""

from __future__ import annotations

from kpg.cluster.rank_commands.command_kinds import COMMANDS, Command, FrontierSpec, OriginPair
from kpg.protocol.definitions import message, part
from kpg.protocol.parts import FailureSpec


@part("AdvanceResult")
class AdvanceResult:
    """The result of an advance on one rank. The changes of each output in `changed` are a block of the reply.

    An output that has no changes on this rank is not in `changed`, unless it fails, or has failed until now.
    """

    changed: tuple[str, ...]
    log_bytes: int
    failures: tuple[FailureSpec | None, ...] = ()  # for each of `changed`, why it has no value now
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


@message("mark", COMMANDS)
class MarkCommand(Command[None]):
    """Mark the rows that were inserted at the open epoch so far: a transaction begins."""


@message("take_back", COMMANDS)
class TakeBackCommand(Command[None]):
    """Remove all rows that were inserted at the open epoch; if `marked`, only those after the mark.

    Ranks without a mark have begun a new generation since, with the rows before the mark only.
    """

    marked: bool = False


@message("settle", COMMANDS)
class SettleCommand(Command[None]):
    """Work until nothing before the clock is in flight on any rank."""


@message("time", COMMANDS)
class TimeCommand(Command[FrontierSpec]):
    """Return the open time."""
