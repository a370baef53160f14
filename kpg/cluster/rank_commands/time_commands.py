"""Commands about time: the clock, the log of the open epoch, and the work before the clock."""

from __future__ import annotations

from kpg.cluster.rank_commands.command_kinds import COMMANDS, Command, FrontierSpec, OriginPair
from kpg.protocol.definitions import message, part
from kpg.protocol.parts import FailureSpec


@part("AdvanceResult")
class AdvanceResult:
    """The result of an advance. The changes of each output in `changed` are a block of the reply, in that order."""

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


@message("take_back", COMMANDS)
class TakeBackCommand(Command[None]):
    """Remove all rows that were inserted at the open epoch."""


@message("settle", COMMANDS)
class SettleCommand(Command[None]):
    """Work until nothing before the clock is in flight on any rank."""


@message("time", COMMANDS)
class TimeCommand(Command[FrontierSpec]):
    """Return the open time."""
