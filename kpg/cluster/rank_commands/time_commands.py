"""Commands about time: the clock, the log of the open epoch, and the work before the clock."""

from __future__ import annotations

from dataclasses import field

from kpg.cluster.rank_commands.command_kinds import COMMANDS, Command, FrontierSpec, OriginPair, StructuralCommand
from kpg.protocol.definitions import message, part
from kpg.protocol.parts import FailureSpec


@part("RankReport")
class RankReport:
    """What is new on one rank. It is the result of an advance; a rank with work left also sends it by itself.

    The changes of each output in `changed` are a block beside the report. An output that has no changes on this rank is
    not in `changed`, unless it fails, or has failed until now.
    """

    changed: tuple[str, ...] = ()
    failures: tuple[FailureSpec | None, ...] = ()  # for each of `changed`, why it has no value now
    log_bytes: int = 0
    trouble: FailureSpec | None = None  # a limit that was exceeded; the clock has moved all the same
    number: int = -1  # of this report: later ones of the rank have greater numbers
    after: int = -1  # the number of the last command before this report
    reached: int = -1  # the last epoch that all ranks have closed, as far as this one knows
    complete: int = -1  # the last epoch that all dataflows have completed
    lagging: dict[str, int] = field(default_factory=dict)  # by answer: the last completed epoch, if before `reached`
    circulating: dict[str, tuple[int, ...]] = field(default_factory=dict)  # by output that has failed: its values
    spare_bytes: int | None = None  # of memory before the limit, in the result of an advance; None without a limit
    behind: dict[str, tuple[int, int]] = field(default_factory=dict)  # by output beyond a limit: epochs, pinned bytes
    refused: FailureSpec | None = None  # why this rank could not make its rows: no clock has moved


@message("advance", COMMANDS)
class AdvanceCommand(Command[RankReport]):
    """Move the clock to a frontier. With `log`, all ranks first write the rows of the open epoch to their logs.

    With `wait`, complete all work before the clock first, and send the changes of the followed outputs. Otherwise the
    rank does this in slices, between other commands, and reports what is complete.
    """

    to: FrontierSpec
    dirty: tuple[str, ...] = ()  # the inputs that have rows on some rank
    origins: tuple[OriginPair, ...] = ()
    wait: bool = True
    sealed: int | None = None  # the last epoch that all ranks have completed, if they work in slices
    seal: bool = True  # whether the rank may seal what it has completed; otherwise the coordinator sends a `seal`
    made: bool = False  # ranks make some of the rows: they move their clocks only if all of them could
    log: bool = False  # a rank that cannot write refuses; the clocks of all ranks then stay where they are


@message("seal", COMMANDS)
class SealCommand(Command[None]):
    """Note the last epoch that all ranks have completed: history before it may go, as `history=` says."""

    epoch: int


@message("serve", COMMANDS)
class ServeCommand(StructuralCommand):
    """Work in slices between commands from now on. Commands that read name times that are complete."""


@message("mark", COMMANDS)
class MarkCommand(Command[None]):
    """Mark the rows that were inserted at the open epoch so far: a transaction begins."""


@message("take_back", COMMANDS)
class TakeBackCommand(Command[None]):
    """Remove all rows that were inserted at the open epoch; if `marked`, only those after the mark.

    Ranks without a mark have begun a new generation since, with the rows before the mark only.
    """

    marked: bool = False


@message("accept", COMMANDS)
class AcceptCommand(Command[FailureSpec | None]):
    """Return why this rank has refused rows of the open epoch; None if it has accepted all. Sent before an advance."""


@message("settle", COMMANDS)
class SettleCommand(Command[None]):
    """Work until nothing before the clock is in flight on any rank."""


@message("time", COMMANDS)
class TimeCommand(Command[FrontierSpec]):
    """Return the open time."""
