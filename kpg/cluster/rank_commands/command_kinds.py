"""What all commands to ranks have in common: their classes, their registry, and the types of their members.

`Command[R]` says that each rank answers with an R. `COMMANDS` finds the class of a command by its name on the wire.
"""

from __future__ import annotations

from typing import Final, TypeVar

from kpg.protocol.definitions import MessageKinds, TypedRequest
from kpg.protocol.strict_decoder import Int64

Result = TypeVar("Result", covariant=True)
TimeSpec = tuple[Int64, ...]
FrontierSpec = tuple[TimeSpec, ...]  # the elements of a frontier
OriginPair = tuple[str, Int64]  # a writer and the number of its batch
StagingKey = tuple[str | int, ...]  # names an attempt of a task; a prefix names all attempts of a batch

COMMANDS: Final = MessageKinds["Command[object]"](python_only=True)


class Command(TypedRequest[Result]):
    """A command to every rank."""

    __slots__ = ()


class StructuralCommand(Command[None]):
    """A command that a new generation of ranks must repeat to have the same dataflows."""

    __slots__ = ()


class LifecycleCommand(Command[Result]):
    """A command that ends the current generation; it also ends any wait for peers."""

    __slots__ = ()
