"""Commands about inputs: create, fill, arrange, close and drop them."""

from __future__ import annotations

from typing import Literal

from kpg.cluster.rank_commands.command_kinds import COMMANDS, Command, StructuralCommand
from kpg.protocol.definitions import message, part
from kpg.protocol.strict_decoder import TrustedJson


@message("input", COMMANDS)
class CreateInputCommand(StructuralCommand):
    """Create an input."""

    name: str
    schema: TrustedJson
    key: tuple[str, ...] | None
    keep: bool = True  # False: a stream, whose rows are not kept
    keep_on_disk: bool = True  # False: it is dropped when the db is opened again
    is_log: bool = False  # whether the db itself writes it, with events of the workers


@message("insert", COMMANDS)
class InsertCommand(Command[None]):
    """Insert the rows of the blocks at the open epoch. Sent to one rank, without waiting for a reply.

    A rank that refuses rows says so when it is asked to accept them; see `AcceptCommand`.
    """

    name: str
    replacing: bool = False  # each row replaces the row with its key
    admitted: bool = False  # the rank must accept the rows, whatever memory it uses


@message("change", COMMANDS)
class ChangeRowsCommand(Command[None]):
    """Apply changes at the open epoch to rows that this rank owns. Sent to one rank, without waiting for a reply."""

    name: str
    columns: tuple[str, ...]  # of the rows with equal values here, one stays
    order: str | None  # the column with the greatest value in the row that stays; None: the last one stays
    admitted: bool = False  # as in InsertCommand


RowsCommand = InsertCommand | ChangeRowsCommand  # what a single rank gets


@message("make", COMMANDS)
class MakeRowsCommand(Command[None]):
    """Insert (diff 1) or remove (diff -1) the rows that `function(rank, ranks, **options)` returns on each rank.

    Sent to all ranks, without waiting for a reply. A rank that fails refuses the next advance, and so do the others.
    """

    name: str
    function: str
    options: TrustedJson
    diff: int


@message("insert_only", COMMANDS)
class InsertOnlyCommand(StructuralCommand):
    """Refuse removals from an input from now on."""

    name: str


@message("base", COMMANDS)
class ArrangeInputCommand(StructuralCommand):
    """Arrange an input, by some columns or by those that its queries need."""

    name: str
    keys: tuple[str, ...] | None


@part("BaseSpec")
class BaseSpec:
    """The columns by which an input is arranged, and those that are hashed to find the rank that owns a row."""

    keys: tuple[str, ...]
    placed: tuple[str, ...]


@message("base_columns", COMMANDS)
class BaseColumnsCommand(Command[BaseSpec | None]):
    """Return how an input is arranged; None if it is not."""

    name: str


@message("present", COMMANDS)
class PresentRowsCommand(Command[None]):
    """Send the rows of an input with the values of the block in some columns: complete and pending ones, summed."""

    name: str
    columns: tuple[str, ...]


@message("size", COMMANDS)
class SizeCommand(Command[int]):
    """Return an estimate of the row count that the rank holds of an input, output or arrangement."""

    of: Literal["input", "output", "index"]
    name: str | int


@message("close_input", COMMANDS)
class CloseInputCommand(StructuralCommand):
    """Close an input that has no pending rows on any rank."""

    name: str


@message("drop_input", COMMANDS)
class DropInputCommand(Command[None]):
    """Drop an input and its rows."""

    name: str


@message("check_unread", COMMANDS)
class CheckUnreadCommand(Command[None]):
    """Fail if a query reads an input, so that it cannot be dropped."""

    name: str


@message("drop_temporary", COMMANDS)
class DropTemporaryCommand(Command[tuple[str, ...]]):
    """Drop the relations that an earlier process created with keep_on_disk=False; the result is their names."""


@message("drop_stored", COMMANDS)
class DropStoredCommand(Command[None]):
    """Drop relations that are on the disks of some ranks only; no input reads them yet. May be repeated."""

    names: tuple[str, ...]
