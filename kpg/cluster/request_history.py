"""The commands that a new generation of ranks must repeat to restore the state of the last one.

    structure   the commands that made inputs, arrangements, outputs and probes, in order, without those undone since;
                the first arrangement of an input right after it
    open_rows   the rows of the open transaction, and the rank that got them

Together with the directory, they restore everything that was acknowledged before a rank was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kpg.cluster.rank_commands.command_kinds import Command, StructuralCommand
from kpg.cluster.rank_commands.input_commands import (
    ArrangeInputCommand,
    CloseInputCommand,
    CreateInputCommand,
    DropInputCommand,
    InsertOnlyCommand,
    MakeRowsCommand,
    RowsCommand,
)
from kpg.cluster.rank_commands.query_commands import (
    AdmittedLimits,
    BuildOutputCommand,
    BuildPartCommand,
    ChangeLimitsCommand,
    InstallArrangementCommand,
    InstallOutputCommand,
    InstallProbeCommand,
    ReleaseArrangementCommand,
    ReleaseOutputCommand,
    ReleaseProbeCommand,
    UndoInstallCommand,
)
from kpg.cluster.rank_commands.time_commands import AdvanceCommand
from kpg.cluster.request_frames import RowBlock
from kpg.plan import plan_document

ALL_RANKS = -1


class InsertedRows(NamedTuple):
    """A command of the open transaction: rows that one rank got, or a command to all ranks to make rows."""

    rank: int
    command: RowsCommand | MakeRowsCommand
    blocks: tuple[RowBlock, ...]


class RequestHistory:
    """The commands that are still in effect."""

    def __init__(self) -> None:
        self.structure: list[Command[None]] = []
        self.open_rows: list[InsertedRows] = []

    def record_rows(self, rank: int, command: RowsCommand | MakeRowsCommand, blocks: Sequence[RowBlock]) -> None:
        """Record rows of the open transaction that were sent to a rank, or that ALL_RANKS make."""
        self.open_rows.append(InsertedRows(rank, command, tuple(blocks)))

    def record(self, command: Command[Any]) -> None:
        """Record a command that all ranks have performed."""
        match command:
            case AdvanceCommand():
                self.open_rows.clear()
            case ChangeLimitsCommand(name, limits):
                self.structure = [with_limits(past, name, limits) for past in self.structure]
            case ReleaseOutputCommand(name):
                self._remove(lambda past: isinstance(past, InstallOutputCommand) and past.name == name)
            case ReleaseProbeCommand(number):
                self._remove(lambda past: isinstance(past, InstallProbeCommand) and past.number == number)
            case ArrangeInputCommand():
                self._arrange_first(command)
            case DropInputCommand(name):
                self._drop_input(name)
            case ReleaseArrangementCommand():
                self.structure.append(command)  # queries may still read the arrangement
                self._remove(lambda past: False)
            case StructuralCommand():
                self.structure.append(command)

    @staticmethod
    def is_kept(command: Command[Any]) -> bool:
        """Return whether a command changes what a new generation must repeat, so that all ranks or none must do it."""
        return isinstance(command, (StructuralCommand, DropInputCommand, BuildOutputCommand, BuildPartCommand))

    def _remove(self, undone: Callable[[Command[None]], bool]) -> None:
        """Remove commands, and the arrangements that were released and that no command reads any more."""
        self.structure = [past for past in self.structure if not undone(past)]
        while unused := self._unused_arrangements():
            self.structure = [past for past in self.structure if arrangement_of(past) not in unused]

    def _unused_arrangements(self) -> set[int | None]:
        """Return the numbers of the released arrangements that no plan reads."""
        releases = [past for past in self.structure if isinstance(past, ReleaseArrangementCommand)]
        released: set[int | None] = {past.number for past in releases}
        return released - {number for past in self.structure if released for number in arrangements_read(past)}

    def _arrange_first(self, command: ArrangeInputCommand) -> None:
        """Record how an input is arranged right after the input: a query before it might arrange it otherwise."""
        created = [isinstance(past, CreateInputCommand) and past.name == command.name for past in self.structure]
        place = created.index(True) + 1 if True in created else len(self.structure)
        self.structure.insert(place, command)

    def _drop_input(self, name: str) -> None:
        """Remove an input and its rows. No query reads it."""
        about = (CreateInputCommand, CloseInputCommand, ArrangeInputCommand, InsertOnlyCommand)
        self._remove(lambda past: isinstance(past, about) and past.name == name)
        self.open_rows = [inserted for inserted in self.open_rows if inserted.command.name != name]


def undo_of(command: Command[Any], build: int | None = None) -> UndoInstallCommand | None:
    """Return the command that undoes an installation, of a build if it is one; None for other commands."""
    match command:
        case InstallOutputCommand():
            return UndoInstallCommand(output=command.name, build=build)
        case InstallArrangementCommand():
            return UndoInstallCommand(arrangement=command.number, build=build)
        case InstallProbeCommand():
            return UndoInstallCommand(probe=command.number, build=build)
    return None


def with_limits(command: Command[None], output: str, limits: AdmittedLimits) -> Command[None]:
    """Return a command with other limits if it installs an output of this name; otherwise the command itself."""
    if isinstance(command, InstallOutputCommand) and command.name == output:
        return replace(command, limits=limits)
    return command


def arrangement_of(command: Command[Any]) -> int | None:
    """Return the number of the arrangement that a command installs or releases."""
    if isinstance(command, (InstallArrangementCommand, ReleaseArrangementCommand)):
        return command.number
    return None


def arrangements_read(command: Command[Any]) -> set[int]:
    """Return the numbers of the arrangements that the plan of a command reads."""
    installs = (InstallOutputCommand, InstallArrangementCommand, InstallProbeCommand)
    references = plan_document.references(command.plan) if isinstance(command, installs) else []
    return {number for kind, number in references if kind in ("index", "shared index")}
