"""The commands that a new generation of ranks must repeat to restore the state of the last one.

    structure   the commands that made inputs, arrangements, outputs and probes, in order, without those undone since
    open_rows   the rows of the open transaction, and the rank that got them

Together with the directory, they restore everything that was acknowledged before a rank was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kpg.cluster import rank_commands as commands
from kpg.cluster.rank_commands import Command
from kpg.cluster.request_frames import RowBlock

ALL_RANKS = -1


class InsertedRows(NamedTuple):
    """A command of the open transaction: rows that one rank got, or a command to all ranks that made rows."""

    rank: int
    command: commands.InsertCommand | commands.MakeRowsCommand
    blocks: tuple[RowBlock, ...]


class RequestHistory:
    """The commands that are still in effect."""

    def __init__(self) -> None:
        self.structure: list[Command[None]] = []
        self.open_rows: list[InsertedRows] = []

    def record_rows(self, rank: int, command: commands.InsertCommand, blocks: Sequence[RowBlock]) -> None:
        """Record rows of the open transaction that were sent to a rank."""
        self.open_rows.append(InsertedRows(rank, command, tuple(blocks)))

    def record(self, command: Command[Any]) -> None:
        """Record a command that all ranks have performed."""
        match command:
            case commands.AdvanceCommand():
                self.open_rows.clear()
            case commands.MakeRowsCommand():
                self.open_rows.append(InsertedRows(ALL_RANKS, command, ()))
            case commands.ReleaseOutputCommand(name):
                self._remove(lambda past: isinstance(past, commands.InstallOutputCommand) and past.name == name)
            case commands.ReleaseProbeCommand(number):
                self._remove(lambda past: isinstance(past, commands.InstallProbeCommand) and past.number == number)
            case commands.DropInputCommand(name):
                self._drop_input(name)
            case commands.StructuralCommand():
                self.structure.append(command)

    def _remove(self, undone: Callable[[Command[None]], bool]) -> None:
        self.structure = [past for past in self.structure if not undone(past)]

    def _drop_input(self, name: str) -> None:
        """Remove an input, its rows, and the commands that make no sense without it."""
        arrangements = {
            past.number
            for past in self.structure
            if isinstance(past, commands.InstallArrangementCommand) and past.of == name
        }

        def depends_on_input(past: Command[None]) -> bool:
            match past:
                case commands.CreateInputCommand() | commands.CloseInputCommand() | commands.ArrangeInputCommand():
                    return past.name == name
                case commands.InstallArrangementCommand() | commands.ReleaseArrangementCommand():
                    return past.number in arrangements
            return False

        self._remove(depends_on_input)
        self.open_rows = [inserted for inserted in self.open_rows if inserted.command.name != name]
